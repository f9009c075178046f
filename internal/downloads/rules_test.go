package downloads

import (
	"context"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/ticket"
)

// A long tick is paid for with a longer pause, so that ticks never take more than a tenth of the time (D-7.2).
func TestPauseAfterALongTick(t *testing.T) {
	for _, c := range []struct{ asked, last, want time.Duration }{
		{500 * time.Millisecond, time.Millisecond, 500 * time.Millisecond}, {500 * time.Millisecond, 70 * time.Millisecond, 700 * time.Millisecond},
	} {
		if got := pause(c.asked, c.last); got != c.want {
			t.Errorf("after a tick of %v comes a pause of %v, want %v", c.last, got, c.want)
		}
	}
}

// Under the strategy shared every request is admitted by itself, whatever its size, and the view says so (D-3.3).
func TestSharedAdmitsPerRequest(t *testing.T) {
	run(t, 1, &memory{}, 0, func(ctx context.Context, s *Service) {
		configure(t, s, func(n *Settings) { n.Shared = true })
		var open []*Pass
		for _, who := range []string{"ann", "bob", "cid"} {
			open = append(open, mustServe(t, s, ctx, whole(who, who)))
		}
		if c := s.machine.Counts(); c.Sessions != 0 {
			t.Errorf("%d sessions were made", c.Sessions)
		}
		if q := s.Queue(); q.Strategy != "shared" {
			t.Errorf("the strategy shown is %q", q.Strategy)
		}
		for _, p := range open {
			p.Close(0, size, true)
		}
	})
}

// jumpy is a clock whose wall can be set while its monotonic side goes on.
type jumpy struct {
	clock.System
	ahead time.Duration
}

func (j *jumpy) Wall() time.Time { return j.System.Wall().Add(j.ahead) }

// The wall may jump: the order, the seats and the waits go on by the monotonic clock, and the arrival in a ticket stays
// what it was (D-8.4, D-7.3).
func TestWallJumps(t *testing.T) {
	clk := &jumpy{System: clock.NewSystem()}
	signer := ticket.New([]byte("a key"))
	conf := Default(1)
	conf.Policy.LinkRate = 10 << 20
	s, err := New(t.Context(), conf, clk, &memory{}, signer)
	if err != nil {
		t.Fatal(err)
	}
	first := mustServe(t, s, t.Context(), whole("ann", "a"))
	before := mustWait(t, s, t.Context(), whole("bob", "b"))
	k := whole("bob", "b").Key()
	arrival, ok := signer.Verify(before.Ticket, k, clk.Wall())
	if !ok {
		t.Fatal("the ticket is not good")
	}
	for _, jump := range []time.Duration{time.Hour, -time.Hour, 40 * 24 * time.Hour} {
		clk.ahead = jump
		s.tick()
		w := mustWait(t, s, t.Context(), whole("bob", "b"))
		got, ok := signer.Verify(w.Ticket, k, clk.Wall())
		if jump < 0 { // a wall behind the arrival: the ticket is clamped to its issue
			if !ok || got.After(clk.Wall()) {
				t.Errorf("after %v: arrival %v, ok %v", jump, got, ok)
			}
		} else if !ok || !got.Equal(arrival) {
			t.Errorf("after %v: arrival %v, want %v", jump, got, arrival)
		}
		if w.Wait.Position != 1 || w.Fault.RetryAfter > time.Minute {
			t.Errorf("after %v: place %d, back in %v", jump, w.Wait.Position, w.Fault.RetryAfter)
		}
	}
	if _, err := s.Admit(t.Context(), whole("cid", "c")); !fault.Is(err, fault.Busy) {
		t.Errorf("a seat came of a jump: %v", err)
	}
	first.Close(0, 0, false)
}
