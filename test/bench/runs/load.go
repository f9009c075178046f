package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/dispatcher"
	"github.com/roadstead/roadstead/internal/store"
)

const (
	queued     = 100_000
	loadRounds = 3
	loadLimit  = 2.0 // seconds
)

// load measures how long a new owner of a pool takes to build it from its rows, with many Runs that wait: the best of the
// rounds, as it is no ratio.
func (b *bench) load(ctx context.Context) error {
	y, err := openYard(ctx, b.dir, "load.db", 0)
	if err != nil {
		return err
	}
	defer func() { _ = y.Close() }() // the folder goes next
	for range queued / 1000 {
		if _, err := y.submit(ctx, 1000); err != nil {
			return err
		}
	}
	var took []time.Duration
	for range loadRounds {
		d, err := y.loaded(ctx)
		if err != nil {
			return err
		}
		took = append(took, d)
	}
	b.stated("runs_load_100000_queued_seconds", slices.Min(took).Seconds(), loadLimit)
	return nil
}

// nobody is woken.
type nobody struct{}

func (nobody) Wake(...string) {}

// loaded starts a dispatcher over the database and waits until it has loaded the pool.
func (y *yard) loaded(ctx context.Context) (time.Duration, error) {
	heard := make(chan time.Duration, 1)
	d, err := dispatcher.New(dispatcher.Config{
		NewID: store.NewID, Owner: "dsp_" + store.NewID(), Alone: true, Log: slog.New(loadLog{heard}),
	}, y.Store, nobody{}, clock.NewSystem(), nil)
	if err != nil {
		return 0, err
	}
	inner, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- d.Run(inner) }()
	select {
	case took := <-heard:
		stop()
		return took, <-ended
	case err := <-ended:
		return 0, errors.Join(err, errors.New("the pool was not loaded"))
	}
}

// loadLog hears from a dispatcher's log how long the load took.
type loadLog struct{ heard chan time.Duration }

func (loadLog) Enabled(context.Context, slog.Level) bool { return true }
func (l loadLog) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l loadLog) WithGroup(string) slog.Handler          { return l }

func (l loadLog) Handle(_ context.Context, r slog.Record) error {
	var took, waits int64
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "milliseconds":
			took = a.Value.Int64()
		case "queued":
			waits = a.Value.Int64()
		case "error":
			fmt.Println("#", r.Message, a.Value)
		}
		return true
	})
	if r.Message == "pool loaded" {
		fmt.Printf("# %d queued Runs were loaded in %d ms\n", waits, took)
		l.heard <- time.Duration(took) * time.Millisecond
	}
	return nil
}
