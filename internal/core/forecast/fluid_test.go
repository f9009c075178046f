package forecast

import (
	"math"
	"testing"
	"time"
)

func same(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if d := got - want; d < -10*time.Millisecond || d > 10*time.Millisecond {
		t.Errorf("%s: after %v, want %v", what, got, want)
	}
}

// Kinds share by weight while they last; what flows in of a higher one goes first, as long as it flows.
func TestFluid(t *testing.T) {
	kinds := [Kinds]Liquid{1: {Waiting: 600, Weight: 3}, 2: {Waiting: 600, Weight: 1}}
	var f Fluid
	f.Play(100, kinds, 0)
	same(t, "600 at three quarters", f.When(1, 600), 8*time.Second)
	same(t, "200 at a quarter", f.When(2, 200), 8*time.Second)
	same(t, "all", f.When(2, 600), 12*time.Second)
	if got := f.Served(2, 10*time.Second); math.Abs(got-400) > 1 {
		t.Errorf("served %.0f, want 400", got)
	}
	if got := f.Served(2, time.Hour); math.Abs(got-600) > 1 {
		t.Errorf("served %.0f in the end, want 600", got)
	}
	kinds[0] = Liquid{Inflow: 20, Weight: 8} // takes what flows in
	f.Play(100, kinds, 10*time.Second)
	same(t, "600 at three quarters of 80", f.When(1, 600), 10*time.Second)
	same(t, "the rest at the full rate", f.When(2, 600), 14*time.Second)
	kinds[0].Inflow = 1e6 // more than its share: it keeps what it can't have until later, and the others theirs
	f.Play(100, kinds, time.Second)
	same(t, "300 at a quarter", f.When(1, 250), 10*time.Second)
}

// Nothing known is nothing served, at any time.
func TestFluidOfNothing(t *testing.T) {
	var f Fluid
	if f.Served(1, time.Hour) != 0 || f.When(1, 5) != 0 {
		t.Error("something is served of nothing")
	}
	f.Play(100, [Kinds]Liquid{}, time.Hour)
	if f.Served(1, time.Hour) != 0 || f.When(1, 0) != 0 {
		t.Error("something is served of nothing")
	}
}
