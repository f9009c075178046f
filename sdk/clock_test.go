package sdk

import (
	"context"
	"errors"
	"testing"
	"time"
)

// fakeClock lets the two clocks disagree: each sleep advances monotonic time by what was asked, and wall time by what
// drift says.
type fakeClock struct {
	mono   time.Duration
	wall   time.Time
	drift  func(sleep int, d time.Duration) time.Duration
	sleeps []time.Duration
}

func (c *fakeClock) Mono() time.Duration { return c.mono }
func (c *fakeClock) Wall() time.Time     { return c.wall }
func (c *fakeClock) Sleep(ctx context.Context, d time.Duration) error {
	c.sleeps = append(c.sleeps, d)
	c.mono += d
	if c.drift != nil {
		d = c.drift(len(c.sleeps), d)
	}
	c.wall = c.wall.Add(d)
	return context.Cause(ctx)
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// D-1.4: a Retry-After wait is over when either clock has advanced by it.
func TestWaitForGoesByTheFasterClock(t *testing.T) {
	tests := []struct {
		name  string
		drift func(int, time.Duration) time.Duration
		mono  time.Duration
	}{
		{"both agree", nil, time.Hour},
		{"wall set back an hour", func(n int, d time.Duration) time.Duration {
			if n == 3 {
				return -time.Hour
			}
			return d
		}, time.Hour},
		{"laptop slept half an hour", func(n int, d time.Duration) time.Duration {
			if n == 2 {
				return 30 * time.Minute
			}
			return d
		}, 30*time.Minute + 30*time.Second},
	}
	for _, tt := range tests {
		c := &fakeClock{wall: noon, drift: tt.drift}
		if err := waitFor(context.Background(), c, time.Hour); err != nil || c.mono != tt.mono {
			t.Errorf("%s: %v, monotonic %v, want %v", tt.name, err, c.mono, tt.mono)
		}
	}
}

// D-1.4, D-5.1: notBefore follows the wall, however it moves, in steps of at most a minute.
func TestWaitUntilFollowsTheWall(t *testing.T) {
	c := &fakeClock{wall: noon, drift: func(n int, d time.Duration) time.Duration {
		switch n {
		case 5:
			return 3 * time.Hour // slept
		case 7:
			return -2 * time.Hour // set back
		}
		return d
	}}
	at := noon.Add(6 * time.Hour)
	if err := waitUntil(context.Background(), c, at); err != nil || !c.wall.Equal(at) {
		t.Errorf("%v, ended at %v", err, c.wall)
	}
	for _, d := range c.sleeps {
		if d > time.Minute {
			t.Fatalf("slept %v at once", d)
		}
	}
}

func TestWaitsEndWithTheContext(t *testing.T) {
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stop)
	c := &fakeClock{wall: noon}
	if err := waitFor(ctx, c, time.Hour); !errors.Is(err, stop) {
		t.Error(err)
	}
	if err := waitUntil(ctx, c, noon); !errors.Is(err, stop) {
		t.Error(err)
	}
}

func TestJitterBounds(t *testing.T) {
	for _, asked := range []time.Duration{0, time.Second, 40 * time.Second, 10 * time.Minute, 5 * time.Hour} {
		for range 200 {
			base, got := busyWait(&Error{Status: 503, Code: "busy", RetryAfter: asked, hasRetry: true})
			want := min(max(asked, shortestWait), time.Hour)
			if base != want || got < want || got > want+min(want/10, 5*time.Second) {
				t.Fatalf("asked %v, waits %v of %v", asked, got, base)
			}
		}
	}
}
