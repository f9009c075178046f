package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

// livePlan asks the server for a plan of what it measured.
func (a *app) livePlan(ctx context.Context, p planArgs) error {
	return a.withClient(ctx, func(ctx context.Context, c *sdk.Client) error {
		got, err := c.Plan(ctx, api.PlanQuery{
			Pool: p.pool, WindowSeconds: int64(time.Duration(p.window) / time.Second), TargetLoad: p.load, Forecast: !p.averages,
		})
		if err != nil {
			return err
		}
		if a.flags.output == "json" {
			return a.json(got)
		}
		return a.showLive(got)
	})
}

func (a *app) showLive(p api.Plan) error {
	slots := map[string]api.ClassSlots{}
	for _, c := range p.Classes {
		slots[c.Class] = c
	}
	err := show(a, p.Measured, []string{"CLASS", "RUNS/MIN", "MEAN", "P95", "CPU USED", "BUSY", "SLOTS"}, func(c api.ClassLoad) []string {
		of := slots[c.Class]
		return []string{
			c.Class, fmt.Sprintf("%.2f", c.RunsPerMinute), fmt.Sprintf("%.1f s", c.Seconds), fmt.Sprintf("%.1f s", c.P95Seconds),
			fmt.Sprintf("%.2f", c.UsedMilliCPU/1000), fmt.Sprintf("%.1f", of.Busy), strconv.FormatInt(of.Slots, 10),
		}
	})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(a.out, "%d slots for a load of %g: %.1f were busy on average, measured in pool %s over %s\n",
		p.Slots, p.TargetLoad, p.Busy, p.Pool, span(p.To.Sub(p.From)))
	for _, note := range p.Notes {
		_, _ = fmt.Fprintln(a.out, "note: "+note)
	}
	f := p.Forecast
	switch {
	case f == nil:
	case !f.Stable:
		_, err = fmt.Fprintf(a.out, "forecast: more comes than %d slots can do (load %.2f): waits grow for ever\n", f.Slots, f.Load)
	default:
		_, err = fmt.Fprintf(a.out, "forecast of the wait on %d slots (load %.2f): p50 %.1f s, p95 %.1f s, p99 %.1f s\n"+
			"a forecast on a random load of %d Runs; the measured p95 of durations is no part of it, and neither is proof: measure\n",
			f.Slots, f.Load, f.P50, f.P95, f.P99, f.Runs)
	}
	return err
}
