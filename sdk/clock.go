package sdk

import (
	"context"
	"time"
)

// Clock supplies both kinds of time and the art of waiting; tests bring their own.
type Clock interface {
	Mono() time.Duration // monotonic time since any fixed instant
	Wall() time.Time     // wall time
	// Sleep returns after d, or earlier with the context's error.
	Sleep(ctx context.Context, d time.Duration) error
}

type systemClock struct{ start time.Time }

func (c systemClock) Mono() time.Duration { return time.Since(c.start) }

// Wall drops the monotonic reading: differences of wall times must follow the wall, that is their purpose here.
func (c systemClock) Wall() time.Time { return time.Now().Round(0) }

func (c systemClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// piece is the longest single sleep: after a laptop's sleep or a change of the clock, the wait is judged anew within
// it (D-1.4).
const piece = 30 * time.Second

// waitFor waits a duration. It is over when monotonic or wall time has advanced by it, whichever is first: the
// monotonic clock stands still while a laptop sleeps, the wall clock may be set back (D-1.4).
func waitFor(ctx context.Context, c Clock, d time.Duration) error {
	mono, wall := c.Mono(), c.Wall()
	for {
		left := d - max(c.Mono()-mono, c.Wall().Sub(wall))
		if left <= 0 {
			return context.Cause(ctx)
		}
		if err := c.Sleep(ctx, min(left, piece)); err != nil {
			return err
		}
	}
}

// waitUntil waits for an instant of the wall clock, which it reads again at least each minute (D-1.4, D-5.1).
func waitUntil(ctx context.Context, c Clock, at time.Time) error {
	for {
		left := at.Sub(c.Wall())
		if left <= 0 {
			return context.Cause(ctx)
		}
		if err := c.Sleep(ctx, min(left, time.Minute)); err != nil {
			return err
		}
	}
}
