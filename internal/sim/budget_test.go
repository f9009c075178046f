package sim

import (
	"testing"

	"github.com/roadstead/roadstead/internal/core/session"
)

// A poll budget makes the polls of a long queue few, and costs those who wait next to nothing: whoever is near the head
// asks as often as before (D-6.2, 0015-the-queue-explains-itself.md). Where turns are so short that the budget does not
// suffice for that, the polls are more and not the waits longer.
func TestPollBudgetCostsNoTime(t *testing.T) {
	for name, c := range map[string]struct {
		clients int
		sizes   Sizes
		fewer   float64
	}{"long turns": {600, Sizes{5e8, 2e9}, 3}, "short turns": {2000, Sizes{5e7, 2e8}, 2}} {
		t.Run(name, func(t *testing.T) {
			free, bound := budgeted(t, c.clients, c.sizes, 0), budgeted(t, c.clients, c.sizes, 2)
			polls := func(r Report) float64 { return float64(r.Polls) / r.Makespan }
			t.Logf("polls a second %.2f and %.2f, mean finish %.0f s and %.0f s", polls(free), polls(bound), free.Finish.Mean, bound.Finish.Mean)
			if polls(bound) > polls(free)/c.fewer {
				t.Errorf("polls a second %.2f without a budget, %.2f with", polls(free), polls(bound))
			}
			if bound.Finish.Mean > 1.02*free.Finish.Mean || bound.Makespan > 1.02*free.Makespan {
				t.Errorf("all through after %.0f s without, %.0f s with", free.Makespan, bound.Makespan)
			}
		})
	}
}

// budgeted is a fleet under a poll budget.
func budgeted(t *testing.T, clients int, sizes Sizes, budget int) Report {
	c := Default()
	c.Clients, c.Seats, c.Sizes = clients, 8, sizes
	p := c.Policy()
	p.PollBudget = budget
	m, err := session.New(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(c, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(t.Context())
	if err != nil || r.Finished != c.Clients {
		t.Fatalf("%d finished, %v", r.Finished, err)
	}
	return r
}
