package attempts

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/runs"
)

// world is one runner's Attempts in memory, and everything else that the service lies on.
type world struct {
	mu       sync.Mutex
	attempts map[string]*runs.Attempt
	cancel   map[string]bool
	spec     runs.Spec
	grants   map[string]*Grant // by hash
	objects  map[string]int64
	broken   error // of the objects
	ends     []runs.Ending
	lines    []api.JobLine
	acked    int64
	jump     time.Duration // of the wall clock
	mono     clock.System
}

func newWorld() *world {
	return &world{
		attempts: map[string]*runs.Attempt{}, cancel: map[string]bool{}, grants: map[string]*Grant{}, objects: map[string]int64{}, mono: clock.NewSystem(),
	}
}

func (w *world) Now() clock.Mono { return w.mono.Now() }
func (w *world) Wall() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mono.Wall().Add(w.jump)
}

// assign gives the runner r1 an Attempt.
func (w *world) assign(id string, sequence int64, state lifecycle.Attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts[id] = &runs.Attempt{ID: id, Run: "run-" + id, Tenant: "t", Pool: "p", Runner: "r1", Number: 1, Fence: 1, Sequence: sequence, State: state}
}

func (w *world) find(h Holder) (*runs.Attempt, error) {
	a := w.attempts[h.Attempt]
	if a == nil || a.Runner != h.Runner || a.Fence != h.Fence {
		return nil, Lost(h.Attempt)
	}
	return a, nil
}

func (w *world) Beat(_ context.Context, b Beat) (Held, error) {
	w.mu.Lock()
	w.acked = max(w.acked, b.Acknowledged)
	w.mu.Unlock()
	return w.Held(context.Background(), b.Runner, b.Holds)
}

func (w *world) Held(_ context.Context, runner string, holds []api.HeldLease) (held Held, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(w.attempts)) {
		if a := w.attempts[id]; a.Runner == runner && !a.State.Ended() {
			held.Live = append(held.Live, Lease{Attempt: *a, Cancel: w.cancel[a.Run]})
			held.Latest = max(held.Latest, a.Sequence)
		}
	}
	for _, h := range holds {
		if a, err := w.find(Holder{runner, h.Attempt, h.Fence}); err != nil || a.State.Ended() {
			held.Lost = append(held.Lost, h.Attempt)
		}
	}
	return held, nil
}

func (w *world) StartAttempt(_ context.Context, h Holder, _ time.Time) (runs.Attempt, runs.Run, runs.Spec, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, err := w.find(h)
	if err != nil {
		return runs.Attempt{}, runs.Run{}, w.spec, err
	}
	a.State = lifecycle.Starting
	return *a, runs.Run{ID: a.Run}, w.spec, nil
}

func (w *world) LaunchAttempt(_ context.Context, h Holder, at time.Time) (runs.Attempt, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, err := w.find(h)
	if err != nil {
		return runs.Attempt{}, err
	}
	a.State, a.StartedAt = lifecycle.Running, at
	return *a, nil
}

func (w *world) LiveAttempt(_ context.Context, h Holder) (runs.Attempt, runs.Spec, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, err := w.find(h)
	if err != nil {
		return runs.Attempt{}, w.spec, err
	}
	return *a, w.spec, nil
}

func (w *world) AppendLogs(_ context.Context, h Holder, _ int64, lines []api.JobLine, _ *api.Progress) (runs.Attempt, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, err := w.find(h)
	if err != nil {
		return runs.Attempt{}, err
	}
	w.lines = append(w.lines, lines...)
	return *a, nil
}

func (w *world) ReportAttempt(_ context.Context, h Holder, report string, at time.Time) (runs.Attempt, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, err := w.find(h)
	switch {
	case err != nil:
		return runs.Attempt{}, false, err
	case a.Report == report:
		return *a, true, nil
	case a.Report != "":
		return *a, false, fault.New(fault.Conflict, "reported otherwise")
	}
	a.State, a.Report, a.EndedAt = lifecycle.Finalizing, report, at
	return *a, false, nil
}

func (w *world) EndAttempt(_ context.Context, e runs.Ending) (runs.Ended, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.attempts[e.Attempt]
	if a == nil || !slices.Contains(e.From, a.State) {
		return runs.Ended{}, fault.New(fault.Conflict, "not so")
	}
	a.State, a.Reason = e.State, e.Reason
	w.ends = append(w.ends, e)
	return runs.Ended{Run: runs.Run{ID: a.Run}}, nil
}

func (w *world) Unfinished(_ context.Context, after string, limit int) (out []Unfinished, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(w.attempts)) {
		if a := w.attempts[id]; a.State == lifecycle.Finalizing && id > after && len(out) < limit {
			out = append(out, Unfinished{*a, w.spec})
		}
	}
	return out, nil
}

func (w *world) NewGrant(_ context.Context, h Holder, g Grant) (Grant, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.find(h)
	w.grants[g.Hash] = &g
	return g, err
}

func (w *world) UseGrant(_ context.Context, hash string, now time.Time) (Grant, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.grants[hash]
	if g == nil || !g.ExpiresAt.After(now) {
		return Grant{}, fault.Missing("grant")
	}
	return *g, nil
}

func (w *world) FinishGrant(_ context.Context, id string, at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.grants {
		if g.ID == id && g.ExpiresAt.After(at) {
			g.DoneAt = at
			return nil
		}
	}
	return Lost(id)
}

func (w *world) AttemptGrants(_ context.Context, attempt string) (out []Grant, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.grants {
		if g.Attempt == attempt && !g.DoneAt.IsZero() {
			out = append(out, *g)
		}
	}
	return out, nil
}

func (w *world) LastCheckpoint(context.Context, string, int) (Grant, bool, error) {
	return Grant{}, false, nil
}
func (w *world) Results(context.Context, string) ([]ElementResult, error) { return nil, nil }

// stored are the objects.
type stored struct{ *world }

func (s stored) Put(_ context.Context, digest string, size int64, body io.Reader) error {
	n, err := io.Copy(io.Discard, body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[digest] = size
	if n != size {
		err = errors.Join(err, fault.New(fault.IntegrityMismatch, "%d bytes", n))
	}
	return err
}

func (s stored) Has(_ context.Context, digest string, size int64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	have, known := s.objects[digest]
	return known && have == size, s.broken
}

// open are the other ports: nothing is secret, everything may be used, nobody listens.
type open struct{}

func (open) Give(context.Context, runs.Attempt, runs.Spec) (map[string][]byte, error) {
	return nil, nil
}
func (open) Check(context.Context, string, runs.Spec) error { return nil }
func (open) Changed(string, ...string)                      {}
func (open) Mask(_ context.Context, _ runs.Attempt, _ runs.Spec, lines []api.JobLine) error {
	for i := range lines {
		lines[i].Text = mask(lines[i].Text)
	}
	return nil
}
