package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roadstead/roadstead/internal/class"
)

// Measure is one promise and what a run came to.
type Measure struct {
	Name  string
	Value float64
	Limit float64
	OK    bool
}

// String is the measure's line for scripts.
func (m Measure) String() string {
	return fmt.Sprintf("measure=%s value=%.4g limit=%.4g ok=%t", m.Name, m.Value, m.Limit, m.OK)
}

func atMost(name string, value, limit float64) Measure {
	return Measure{name, value, limit, value <= limit}
}

func atLeast(name string, value, limit float64) Measure {
	return Measure{name, value, limit, value >= limit}
}

// GateFleet is the fleet of the document: 1,000 clients, 4-20 GB each, one gigabit.
func GateFleet(seed uint64) Config {
	c := Default()
	c.Clients, c.Sizes, c.Link, c.Seats, c.Seed = 1000, Sizes{4e9, 20e9}, 125e6, 4, seed
	return c
}

// replayFleet is small and full of trouble: every class, shared principals, clients that leave, stall, or have no id.
func replayFleet(seed uint64) Config {
	c := GateFleet(seed)
	c.Clients, c.Principals, c.Spread = 100, 17, 10*time.Minute
	c.Classes = Mix{class.Interactive: 0.1, class.Release: 0.3, class.Bulk: 0.4, class.Background: 0.2}
	c.Vanish, c.Stall, c.Stock = 0.1, 0.2, 0.2
	return c
}

// Gate checks what is promised of the simulated fleets and hands each measure on as it is known: nobody fails, mean
// completion against even sharing for equal and for uniform sizes, starts inside the first interval told, a full link,
// and a replay that is the same every time (D-13.1).
func Gate(ctx context.Context, seed uint64, replays int, watch Progress, emit func(Measure)) error {
	uniform, equal := GateFleet(seed), GateFleet(seed)
	equal.Sizes = Sizes{12e9, 12e9}
	reports, err := runBoth(ctx, equal, uniform, watch)
	if err != nil {
		return err
	}
	fleetMeasures("equal", reports[0], 0.53, emit)
	fleetMeasures("uniform", reports[1], 0.66, emit)
	same, first := 0, ""
	for range replays {
		r, err := Run(ctx, replayFleet(seed), watch)
		if err != nil {
			return err
		}
		if first == "" {
			first = r.Hash
		}
		if r.Hash == first {
			same++
		}
	}
	emit(atLeast("sim.replays_same", float64(same), float64(replays)))
	return nil
}

// fleetMeasures hands on what is promised of one fleet.
func fleetMeasures(name string, r Report, ratio float64, emit func(Measure)) {
	emit(atMost("sim."+name+".failed", float64(r.Config.Clients-r.Finished), 0))
	emit(atMost("sim."+name+".mean_of_even", r.MeanRatio, ratio))
	emit(atLeast("sim."+name+".started_inside", r.Estimates.Inside, 0.9))
	emit(atLeast("sim."+name+".busy", r.Busy, 0.95))
}

// runBoth runs two fleets side by side, since each takes some seconds; only the second one is watched.
func runBoth(ctx context.Context, a, b Config, watch Progress) (reports [2]Report, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		var err error
		if reports[0], err = Run(ctx, a, nil); err != nil {
			cancel()
		}
		done <- err
	}()
	if reports[1], err = Run(ctx, b, watch); err != nil {
		cancel()
	}
	// When one run fails the other is cancelled; the cause is the failure that is not the cancelling.
	if other := <-done; err == nil || other != nil && errors.Is(err, context.Canceled) {
		err = other
	}
	return reports, err
}
