package storm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/roadstead/roadstead/internal/core/session"
)

// Stats is what happened in a run, or in many.
type Stats struct {
	Seeds     int
	Time      time.Duration // virtual, while the server ticked
	Waiting   time.Duration // of it, with clients waiting
	Requests  int
	Starts    int
	Downloads int // that their clients got whole
	Finished  int
	NoShows   int
	Paused    int
	Yielded   int
	Aside     int // slow readers that left their seat
	Refused   int
	Crashes   int
	Freezes   int
	Promised  int     // starts announced in calm seeds
	Inside    int     // of them inside the first interval told
	Passed    float64 // the most one was passed by, of its bound
	Lead      float64 // the most a class led another, of its bound

	calm  bool
	beats int
}

func (s *Stats) started(e *session.Effect) {
	s.Starts++
	if s.calm && e.Promised {
		s.Promised++
		if e.Earliest <= e.At && e.At <= e.Latest {
			s.Inside++
		}
	}
}

// Add sums up another run.
func (s *Stats) Add(o Stats) {
	s.Seeds += o.Seeds
	s.Time += o.Time
	s.Waiting += o.Waiting
	s.Requests += o.Requests
	s.Starts += o.Starts
	s.Downloads += o.Downloads
	s.Finished += o.Finished
	s.NoShows += o.NoShows
	s.Paused += o.Paused
	s.Yielded += o.Yielded
	s.Aside += o.Aside
	s.Refused += o.Refused
	s.Crashes += o.Crashes
	s.Freezes += o.Freezes
	s.Promised += o.Promised
	s.Inside += o.Inside
	s.Passed, s.Lead = max(s.Passed, o.Passed), max(s.Lead, o.Lead)
}

// Violation is a rule that a seed broke.
type Violation struct {
	Seed     uint64
	Scenario string
	At       time.Duration
	Rule     error
	Story    string // the last events about the session at fault, and of the server
}

// Error says which rule, when, and how to see it again.
func (v *Violation) Error() string {
	return fmt.Sprintf("seed %d, %s into %s: %v", v.Seed, v.At.Round(time.Millisecond), v.Scenario, v.Rule)
}

// Unwrap gives the rule.
func (v *Violation) Unwrap() error { return v.Rule }

// insideLeast is the least part of the starts of a calm seed that must lie inside the first interval told (D-6.3).
const insideLeast = 0.9

// Run plays one seed for a length of virtual time. The error is a *Violation when a rule was broken.
func Run(ctx context.Context, seed uint64, length time.Duration) (Stats, error) {
	sc := newScenario(seed, length)
	about := sc.String()
	w, err := newWorld(&sc)
	if err != nil {
		return Stats{}, err
	}
	w.stats.calm, w.stats.Seeds = sc.weather == calm, 1
	err = w.run(ctx)
	if err == nil && w.stats.Promised >= 100 && float64(w.stats.Inside) < insideLeast*float64(w.stats.Promised) {
		err = fmt.Errorf("%d of %d starts inside the first interval told (D-6.3)", w.stats.Inside, w.stats.Promised)
	}
	if err != nil && ctx.Err() == nil {
		err = &Violation{Seed: seed, Scenario: about, At: time.Duration(w.now), Rule: err, Story: w.story.tell(w.victim)}
	}
	return w.stats, err
}

// Many plays seeds first to last, some at once, and sums them up; broken is told of every seed that broke a rule, one at a
// time.
func Many(ctx context.Context, first, last uint64, length time.Duration, workers int, broken func(*Violation)) (all Stats, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		stats Stats
		err   error
	}
	seeds, done := make(chan uint64), make(chan outcome)
	go func() {
		defer close(seeds)
		for seed := first; ; seed++ {
			select {
			case seeds <- seed:
			case <-ctx.Done():
				return
			}
			if seed == last {
				return
			}
		}
	}()
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for seed := range seeds {
				stats, err := Run(ctx, seed, length)
				done <- outcome{stats, err}
			}
		})
	}
	go func() { running.Wait(); close(done) }()
	for o := range done {
		all.Add(o.stats)
		if v := (*Violation)(nil); errors.As(o.err, &v) {
			broken(v)
		} else if o.err != nil && err == nil {
			err = o.err
			cancel()
		}
	}
	return all, err
}
