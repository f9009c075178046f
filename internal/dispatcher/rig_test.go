package dispatcher

import (
	"fmt"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/runs"
)

// fakeClock is both clocks of one process; only the wall's can be set.
type fakeClock struct {
	mono clock.Mono
	wall time.Time
}

func (c *fakeClock) Now() clock.Mono { return c.mono }
func (c *fakeClock) Wall() time.Time { return c.wall }

func (c *fakeClock) pass(d time.Duration) { c.mono, c.wall = c.mono.Add(d), c.wall.Add(d) }

type nobody struct{}

func (nobody) Wake(...string) {}

// rig is a dispatcher over rows, stepped by hand.
type rig struct {
	t     *testing.T
	rows  *rows
	clock *fakeClock
	s     *Service
	ids   int
	born  int
	alone bool
}

func newRig(t *testing.T, slots int64) *rig {
	t.Helper()
	r := &rig{t: t, rows: newRows(), clock: &fakeClock{mono: 1, wall: time.UnixMilli(1_800_000_000_000).UTC()}, alone: true}
	r.rows.pool.Policy = api.PoolPolicy{MaxAge: 7 * 24 * 3600}
	r.addRunner("r1", slots)
	r.restart()
	return r
}

func (r *rig) addRunner(id string, slots int64) {
	r.rows.runners[id] = &RunnerRow{ID: id, Capacity: api.Resources{Slots: slots, MilliCPU: 1e6, MemoryBytes: 1 << 40, DiskBytes: 1 << 40}, SeenAt: r.clock.wall}
}

// restart puts a new process in the place of the old one, whose end nobody heard of. Its clock begins anew.
func (r *rig) restart() {
	r.t.Helper()
	r.born++
	s, err := New(Config{NewID: func() string { r.ids++; return fmt.Sprintf("%06d", r.ids) }, Owner: fmt.Sprintf("owner-%d", r.born), Alone: r.alone},
		r.rows, nobody{}, r.clock, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.s = s
}

func (r *rig) submit(id, tenant string, change ...func(*RunRow)) {
	row := &RunRow{
		Run: runs.Run{
			ID: id, Tenant: tenant, Pool: "p", State: lifecycle.Queued, CreatedAt: r.clock.wall, NextEligible: r.clock.wall, EligibleAt: r.clock.wall, Inserted: r.clock.wall.UnixMilli(),
		},
		Spec: runs.Spec{Command: []string{"x"}, Resources: api.Resources{Slots: 1}, Timeout: 3600},
	}
	for _, c := range change {
		c(row)
	}
	r.rows.runs[id] = row
	r.s.Wake("p", id)
}

func notBefore(at time.Time) func(*RunRow) {
	return func(row *RunRow) {
		row.Run.NextEligible, row.Run.EligibleAt, row.Spec.Request.NotBefore = at, at, &at
	}
}

func retries(failures, losses int) func(*RunRow) {
	return func(row *RunRow) {
		row.Spec.Retry = api.Retry{Failures: failures, Losses: losses, BackoffSeconds: 1}
	}
}

// step is one round of the service, as at a poll.
func (r *rig) step() {
	r.s.discover(r.t.Context())
	for _, p := range r.s.owned() {
		r.s.step(r.t.Context(), p, true)
	}
}

// beat lets every runner live and renew what it has.
func (r *rig) beat() {
	for _, one := range r.rows.runners {
		one.Beats++
		one.SeenAt = r.clock.wall
	}
	for _, l := range r.rows.attempts {
		l.Attempt.Beats++
	}
}

// pass lets time pass in steps of a second; live says whether runners renew.
func (r *rig) pass(d time.Duration, live bool) {
	for ; d > 0; d -= time.Second {
		r.clock.pass(min(d, time.Second))
		if live {
			r.beat()
		}
		r.step()
	}
}

// end ends the Run's Attempt as its runner reported it.
func (r *rig) end(run string, state lifecycle.Attempt, reason lifecycle.Reason) {
	r.t.Helper()
	for id, l := range r.rows.attempts {
		if l.Attempt.Run != run {
			continue
		}
		if _, err := r.rows.EndAttempt(r.t.Context(), runs.Ending{
			Attempt: id, Fence: l.Attempt.Fence, From: []lifecycle.Attempt{l.Attempt.State}, State: state, Reason: reason, At: r.clock.wall,
		}); err != nil {
			r.t.Fatal(err)
		}
		r.s.Wake("p", run)
		return
	}
	r.t.Fatalf("%s has no Attempt", run)
}

func (r *rig) live(run string) int {
	n := 0
	for _, l := range r.rows.attempts {
		if l.Attempt.Run == run {
			n++
		}
	}
	return n
}

func (r *rig) state(run string) lifecycle.Run { return r.rows.runs[run].Run.State }

// want fails unless exactly these Runs have a living Attempt, one each.
func (r *rig) want(when string, ids ...string) {
	r.t.Helper()
	for _, id := range ids {
		if r.live(id) != 1 {
			r.t.Errorf("%s: %s has %d Attempts, and is %s", when, id, r.live(id), r.state(id))
		}
	}
	if len(r.rows.attempts) != len(ids) {
		r.t.Errorf("%s: %d Attempts, not %d: %v", when, len(r.rows.attempts), len(ids), r.rows.order)
	}
}
