package main

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/app"
	"github.com/roadstead/roadstead/internal/attempts"
	"github.com/roadstead/roadstead/internal/fault"
)

// slowObjects is a store of results at the end of a slow line that is down for the first calls.
type slowObjects struct {
	attempts.Objects
	delay time.Duration
	down  *atomic.Int64 // calls that still fail
}

func (s slowObjects) Put(ctx context.Context, digest string, size int64, body io.Reader) error {
	if err := s.pass(ctx); err != nil {
		return err
	}
	return s.Objects.Put(ctx, digest, size, body)
}

func (s slowObjects) Has(ctx context.Context, digest string, size int64) (bool, error) {
	if err := s.pass(ctx); err != nil {
		return false, err
	}
	return s.Objects.Has(ctx, digest, size)
}

func (s slowObjects) pass(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.delay):
	}
	if s.down.Add(-1) >= 0 {
		return &fault.Error{Code: fault.Busy, RetryAfter: time.Second, Message: "the object store is away"}
	}
	return nil
}

// openSlow starts the server in this process, with the slow store in between: its runners are processes as ever.
func (w *world) openSlow(ctx context.Context, addr string) error {
	cfg := app.Default()
	cfg.Data, cfg.Listen, cfg.DiskReserve, cfg.RunnerSlots, cfg.Drain = w.data(), addr, 0, 0, time.Second
	cfg.RunnerLease, cfg.RunnerHeartbeat = lease, heartbeat
	down := &atomic.Int64{}
	down.Store(3)
	a, err := app.Open(ctx, cfg, app.Options{Version: "scenario", WrapResults: func(o attempts.Objects) attempts.Objects {
		return slowObjects{o, 2 * time.Second, down}
	}})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- a.Run(running) }()
	w.stop = func() error {
		stop()
		if err := <-done; err != nil {
			return err
		}
		return a.Close()
	}
	return wait(ctx, "the server answers", 30*time.Second, func() bool { return answers(w.url + "/readyz") })
}

// slow is an object store that answers late, and at first not at all: a Run with results ends later, none succeeds before
// its results were verified, and Runs without results are kept waiting by none of it.
func slow(ctx context.Context, w *world) error {
	heavy, light := sh("echo 1 > $ROADSTEAD_OUTPUTS/out"), sh("true")
	heavy.Outputs = []api.Output{{Name: "out"}}
	for range 2 {
		if _, err := w.submit(ctx, w.victim, "heavy", heavy); err != nil {
			return err
		}
	}
	for range slots {
		if _, err := w.submit(ctx, w.victim, "light", light); err != nil {
			return err
		}
	}
	quick, err := w.ended(ctx, w.victim, "light", time.Minute)
	if err != nil {
		return err
	}
	late, err := w.ended(ctx, w.victim, "heavy", time.Minute)
	if err != nil {
		return err
	}
	w.report("slow.succeeded", part(append(late, quick...), succeeded), exactly, 1)
	w.report("slow.tried_once", part(append(late, quick...), triedOnce), exactly, 1)
	w.report("slow.verified", part(late, func(r api.Run) bool { return len(r.Results) == 1 }), exactly, 1)
	w.report("slow.light_of_heavy", ending(quick)/ending(late), atMost, 0.8)
	return nil
}

// ending is how long Runs took from their submit to their end, on average, in seconds.
func ending(all []api.Run) float64 {
	var sum time.Duration
	for _, r := range all {
		if r.EndedAt != nil {
			sum += r.EndedAt.Sub(r.CreatedAt)
		}
	}
	return sum.Seconds() / float64(max(1, len(all)))
}
