package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

// The objectives of, in seconds.
const (
	waitObjective = 30
	callObjective = 0.5
)

// even is a stream that comes evenly and fills 0.7 of the slots, as measured first.
func even(ctx context.Context, w *world) error {
	t, err := w.addTenant(ctx, "even")
	if err != nil {
		return err
	}
	for range slots {
		if _, err := w.submit(ctx, t, "warm", sh("sleep 1")); err != nil {
			return err
		}
	}
	warm, err := w.ended(ctx, t, "warm", time.Minute)
	if err != nil {
		return err
	}
	every := time.Duration(float64(held(warm)) / slots / 0.7)
	w.say("even: a Run holds its slot for %v: one every %v", held(warm).Round(time.Millisecond), every.Round(time.Millisecond))
	w.mu.Lock()
	w.calls = nil
	w.mu.Unlock()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for range w.scale.runs {
		if _, err := w.submit(ctx, t, "even", sh("sleep 1")); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	all, err := w.ended(ctx, t, "even", time.Minute)
	if err != nil {
		return err
	}
	w.mu.Lock()
	calls := w.calls
	w.mu.Unlock()
	w.report("even.succeeded", part(all, succeeded), exactly, 1)
	w.report("even.wait_p95_seconds", p95(waits(all)), atMost, waitObjective)
	w.report("even.call_p95_seconds", p95(calls), atMost, callObjective)
	return planned(ctx, w, t)
}

// planned: the plan of what was measured knows every Run of the stream, to its tenant only and to operators.
func planned(ctx context.Context, w *world, t *tenant) error {
	counted := func(t *sdk.Client) (n float64, err error) {
		p, err := t.Plan(ctx, api.PlanQuery{WindowSeconds: 3600, Forecast: true})
		for _, c := range p.Measured {
			n += float64(c.Attempts)
		}
		if p.Forecast == nil || p.Forecast.Label != "forecast" || p.Slots < 1 {
			w.say("even: planned %+v", p)
			return 0, err
		}
		return n, err
	}
	own, err := counted(t.Client)
	if err != nil {
		return err
	}
	all, err := counted(w.op)
	if err != nil {
		return err
	}
	foreign, err := w.spy.Plan(ctx, api.PlanQuery{WindowSeconds: 3600})
	w.report("even.planned_of_runs", own/float64(w.scale.runs+slots), exactly, 1)
	w.report("even.planned_by_operator", all/own, atLeast, 1)
	w.report("even.planned_for_strangers", float64(len(foreign.Measured)), exactly, 0)
	return err
}

// noisy is one tenant with a backlog beside three that submit a Run now and then: these wait for a slot to come free, and
// not for the backlog.
func noisy(ctx context.Context, w *world) error {
	loud, err := w.addTenant(ctx, "noisy")
	if err != nil {
		return err
	}
	n := sh("sleep 0.5")
	n.Array = &api.Array{First: 0, Last: w.scale.backlog - 1}
	if _, err := w.submit(ctx, loud, "noisy", n); err != nil {
		return err
	}
	var quiet []api.Run
	for i := range 3 {
		t, err := w.addTenant(ctx, fmt.Sprintf("quiet-%d", i))
		if err != nil {
			return err
		}
		for range 2 {
			if _, err := w.submit(ctx, t, "quiet", sh("sleep 0.5")); err != nil {
				return err
			}
			all, err := w.ended(ctx, t, "quiet", time.Minute)
			if err != nil {
				return err
			}
			quiet = append(quiet, all[0])
		}
	}
	waited := p95(waits(quiet))
	all, err := w.ended(ctx, loud, "noisy", 2*time.Minute)
	if err != nil {
		return err
	}
	w.report("noisy.succeeded", part(append(all, quiet...), succeeded), exactly, 1)
	// Half of the slots' turn would do; the rest is for a machine that is busy with other things.
	w.report("noisy.quiet_wait_in_runs", waited/held(all).Seconds(), atMost, 2)
	w.report("noisy.quiet_wait_of_backlogs", waited/p95(waits(all)), atMost, 0.5)
	unfair, err := w.metric(ctx, `roadstead_pool_fairness_ratio{pool="default"}`)
	if err != nil {
		return err
	}
	w.report("noisy.fairness_ratio", unfair, atMost, 1)
	return nil
}

// burstSpread is over how long the schedules of one minute are spread.
const burstSpread = 10 * time.Second

// plantBurst makes schedules that all fire in each minute.
func plantBurst(ctx context.Context, w *world) error {
	n := sh("true")
	n.Labels = map[string]string{"scenario": "burst"}
	template, err := json.Marshal(n)
	if err != nil {
		return err
	}
	for i := range w.scale.schedules {
		plan := api.SchedulePlan{Rule: "* * * * *", Zone: "UTC", SpreadSeconds: int64(burstSpread / time.Second), Overlap: "allow", Template: template}
		if _, err := w.victim.PutSchedule(ctx, "", fmt.Sprintf("burst-%d", i), api.ScheduleChange{Plan: plan}); err != nil {
			return err
		}
	}
	return nil
}

// burst is a mass of schedules of one minute: each fires once for it, and the spread keeps them from coming at once.
func burst(ctx context.Context, w *world) error {
	if err := plantBurst(ctx, w); err != nil {
		return err
	}
	minute := time.Now().Truncate(time.Minute).Add(time.Minute)
	var all []api.ScheduleFire
	fired := func() bool {
		all = all[:0]
		for i := range w.scale.schedules {
			for f, err := range w.victim.ScheduleFires(ctx, "", fmt.Sprintf("burst-%d", i)) {
				if err != nil {
					break // asked again
				}
				if f.Instant.Equal(minute) && f.Run != "" { // one that is being made has none yet
					all = append(all, f)
				}
			}
		}
		return len(all) >= w.scale.schedules
	}
	select {
	case <-time.After(time.Until(minute)):
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := wait(ctx, "every schedule fires", burstSpread+15*time.Second, fired); err != nil {
		return err
	}
	var came []time.Time
	for _, f := range all {
		r, err := w.victim.Run(ctx, f.Run)
		if err != nil {
			return err
		}
		came = append(came, r.CreatedAt)
	}
	w.report("burst.fires_per_schedule", float64(len(all))/float64(w.scale.schedules), exactly, 1)
	w.report("burst.in_one_second", crest(came), atMost, 0.5)
	return nil
}

// crest is the largest part of the instants that lie in one second.
func crest(all []time.Time) (most float64) {
	for _, from := range all {
		n := 0
		for _, at := range all {
			if !at.Before(from) && at.Before(from.Add(time.Second)) {
				n++
			}
		}
		most = max(most, float64(n)/float64(len(all)))
	}
	return most
}
