package runs

import (
	"context"
	"slices"
	"testing"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/identity"
)

// listed answers listings with what the filter asks for, and notes what was cancelled.
type listed struct {
	Records
	all       []Run
	cancelled []string
}

func (l *listed) ListRuns(_ context.Context, f Filter) (out []Run, err error) {
	for _, r := range l.all {
		if slices.Contains(f.States, r.State) {
			out = append(out, r)
		}
	}
	return out, nil
}

func (l *listed) Run(_ context.Context, id string) (Run, error) {
	return l.all[slices.IndexFunc(l.all, func(r Run) bool { return r.ID == id })], nil
}

func (l *listed) CancelRun(_ context.Context, c Cancellation, _ audit.Entry) (Ended, error) {
	l.cancelled = append(l.cancelled, c.Run)
	return Ended{}, nil
}

func (l *listed) RunSpec(context.Context, string) (Spec, error)          { return Spec{}, nil }
func (l *listed) RunAttempts(context.Context, string) ([]Attempt, error) { return nil, nil }
func (l *listed) RunDetails(context.Context, string) (Details, error)    { return Details{}, nil }

type places struct{ Places }

func (places) Wake(string, ...string)  {}
func (places) Place(Run) (p api.Place) { return p }

// A bulk cancel touches only the states that were asked for, and never more than what has not ended.
func TestCancelAllKeepsToTheStates(t *testing.T) {
	caller := identity.Principal{ID: "a", Tenant: "t", Kind: identity.User}
	for _, c := range []struct {
		states []string
		want   []string
	}{
		{nil, []string{"q", "a"}},
		{[]string{"queued"}, []string{"q"}},
		{[]string{"active", "failed"}, []string{"a"}},
		{[]string{"succeeded"}, nil},
	} {
		records := &listed{all: []Run{
			{ID: "q", Tenant: "t", State: lifecycle.Queued}, {ID: "a", Tenant: "t", State: lifecycle.Active}, {ID: "s", Tenant: "t", State: lifecycle.Succeeded},
		}}
		s, err := New(Config{NewID: func() string { return "id" }}, Ports{Records: records, Places: places{}}, clock.NewSystem())
		if err != nil {
			t.Fatal(err)
		}
		n, err := s.CancelAll(t.Context(), caller, Query{States: c.states})
		if err != nil || n != len(c.want) || !slices.Equal(records.cancelled, c.want) {
			t.Errorf("states %v: cancelled %v (%d, %v), want %v", c.states, records.cancelled, n, err, c.want)
		}
	}
}
