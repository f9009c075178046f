package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/sim"
	"github.com/roadstead/roadstead/internal/sim/storm"
)

// faultFlags are the options of the fault simulation.
type faultFlags struct {
	on      bool
	seed    uint64
	seeds   string
	hours   float64
	workers int
}

// span reads the seeds A-B, or one.
func (f faultFlags) span() (first, last uint64, err error) {
	if f.seeds == "" {
		return f.seed, f.seed, nil
	}
	a, b, two := strings.Cut(f.seeds, "-")
	if !two {
		b = a
	}
	first, err1 := strconv.ParseUint(a, 10, 32)
	last, err2 := strconv.ParseUint(b, 10, 32)
	if err1 != nil || err2 != nil || last < first {
		return 0, 0, fault.Invalid("--seeds", "must be like 1-500, is %q", f.seeds)
	}
	return first, last, nil
}

// simulateFaults runs the seeds and prints what happened; a seed that broke a rule tells its story.
func simulateFaults(ctx context.Context, f faultFlags, stdout io.Writer) error {
	first, last, err := f.span()
	if err != nil {
		return err
	}
	if !(f.hours > 0 && f.hours <= 24*365) {
		return fault.Invalid("--hours", "must be over 0 and at most 8760, is %g", f.hours)
	}
	if f.workers < 1 || f.workers > 1024 {
		return fault.Invalid("--workers", "must be between 1 and 1024, is %d", f.workers)
	}
	begun, bad := time.Now(), 0
	length := time.Duration(f.hours * float64(time.Hour))
	all, err := storm.Many(ctx, first, last, length, f.workers, func(v *storm.Violation) {
		bad++
		fmt.Fprintf(stdout, "%v\n%sreplay: roadstead simulate --faults --seed %d --hours %g\n\n", v, v.Story, v.Seed, f.hours)
	})
	if err != nil {
		return err
	}
	took := time.Since(begun).Seconds()
	fmt.Fprintf(stdout, "%d seeds: %.0f virtual hours, %.0f with clients waiting; %.1f virtual hours per second (%d at once)\n",
		all.Seeds, all.Time.Hours(), all.Waiting.Hours(), all.Time.Hours()/took, f.workers)
	fmt.Fprintf(stdout, "%d requests, %d starts, %d downloads whole, %d no-shows, %d pauses, %d yields, %d moved aside, %d refusals, %d crashes, %d freezes\n",
		all.Requests, all.Starts, all.Downloads, all.NoShows, all.Paused, all.Yielded, all.Aside, all.Refused, all.Crashes, all.Freezes)
	measures := []sim.Measure{{Name: "sim.faults.violations", Value: float64(bad), OK: bad == 0}}
	if all.Promised > 0 {
		inside := float64(all.Inside) / float64(all.Promised)
		measures = append(measures, sim.Measure{Name: "sim.faults.calm_started_inside", Value: inside, Limit: 0.9, OK: inside >= 0.9})
	}
	for _, m := range measures {
		fmt.Fprintln(stdout, m)
		if !m.OK {
			err = errors.Join(err, errGate)
		}
	}
	return err
}
