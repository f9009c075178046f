package dispatcher

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/runs"
)

// rows is a database of one pool in memory, with the rules of the real one and faults on demand.
type rows struct {
	pool     PoolState
	clock    string
	runs     map[string]*RunRow
	attempts map[string]*LiveRow // that have not ended
	runners  map[string]*RunnerRow
	shares   []ShareRow
	limits   map[string]int64 // of tenants' budgets
	spent    map[string]int64

	read  int      // Runs whose rows were asked for by their ids
	order []string // Runs in the order of their assignments
	tries map[string]int
	ends  map[string]runs.Ending // by attempt

	down   error // every call fails with it
	before error // the next Assign fails with it and has done nothing
	after  error // the next Assign fails with it and has done all
}

func newRows() *rows {
	return &rows{
		pool: PoolState{Name: "p"}, runs: map[string]*RunRow{}, attempts: map[string]*LiveRow{}, runners: map[string]*RunnerRow{},
		limits: map[string]int64{}, spent: map[string]int64{}, tries: map[string]int{}, ends: map[string]runs.Ending{},
	}
}

func sortedRows[V any](m map[string]V) []V {
	var out []V
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}

func (d *rows) PoolStates(context.Context) ([]PoolState, error) { return []PoolState{d.pool}, d.down }

func (d *rows) TakePool(_ context.Context, pool, owner string, epoch int64) (Owner, error) {
	if d.down != nil {
		return Owner{}, d.down
	}
	if d.pool.Epoch != epoch {
		return Owner{}, refuse()
	}
	d.pool.Owner, d.pool.Epoch, d.pool.Beats = owner, epoch+1, d.pool.Beats+1
	return Owner{Pool: pool, ID: owner, Epoch: epoch + 1}, nil
}

func refuse() error {
	f := fault.New(fault.Conflict, "another owner")
	f.Reason = ReasonDeposed
	return f
}

func (d *rows) owned(o Owner) error {
	if d.down != nil {
		return d.down
	}
	if o.ID != d.pool.Owner || o.Epoch != d.pool.Epoch {
		return refuse()
	}
	return nil
}

func (d *rows) KeepPool(_ context.Context, o Owner, clock string) error {
	if err := d.owned(o); err != nil {
		return err
	}
	d.clock, d.pool.Beats = clock, d.pool.Beats+1
	return nil
}

func (d *rows) PoolClock(context.Context, string) (string, error) { return d.clock, d.down }

func (d *rows) Assign(_ context.Context, o Owner, all []Assignment) ([]Assigned, error) {
	if err := cmp.Or(d.owned(o), d.before); err != nil {
		d.before = nil
		return nil, err
	}
	out := make([]Assigned, len(all))
	for i, a := range all {
		out[i] = d.assign(a)
	}
	err := d.after
	d.after = nil
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (d *rows) assign(a Assignment) Assigned {
	r := d.runs[a.Run]
	left, limited := d.left(a.Tenant)
	switch {
	case limited && a.HoldMicro > left:
		return Assigned{Loss: LossBudget}
	case r == nil || r.Run.State != lifecycle.Queued || r.Run.Fence != a.Fence || r.Run.WaitsFor > 0 || r.Run.NextEligible.After(a.At):
		return Assigned{Loss: LossChanged}
	case d.runners[a.Runner] == nil || d.runners[a.Runner].Revoked:
		return Assigned{Loss: LossRunner}
	}
	r.Run.State, r.Run.Fence, r.Run.Version = lifecycle.Active, a.Fence+1, r.Run.Version+1
	d.attempts[a.Attempt] = &LiveRow{
		Attempt: runs.Attempt{
			ID: a.Attempt, Run: a.Run, Tenant: a.Tenant, Runner: a.Runner, Fence: a.Fence + 1, State: lifecycle.Assigned, AssignedAt: a.At, Resources: a.Resources,
		}, Decision: a.Decision,
	}
	d.order = append(d.order, a.Run)
	d.tries[a.Run]++
	return Assigned{Won: true}
}

func (d *rows) left(tenant string) (int64, bool) {
	limit, limited := d.limits[tenant]
	for _, l := range d.attempts {
		if l.Attempt.Tenant == tenant {
			limit -= d.runs[l.Attempt.Run].Spec.HoldMicro
		}
	}
	return limit - d.spent[tenant], limited
}

func (d *rows) QueuedRows(_ context.Context, _, after string, limit int) (out []RunRow, err error) {
	for _, r := range sortedRows(d.runs) {
		if r.Run.State == lifecycle.Queued && r.Run.ID > after && len(out) < limit {
			out = append(out, *r)
		}
	}
	return out, d.down
}

func (d *rows) NewRows(_ context.Context, _ string, since time.Time, after string, limit int) (out []Mark, err error) {
	for _, r := range sortedRows(d.runs) {
		if m := (Mark{r.Run.ID, r.Run.Version, r.Run.Inserted}); r.Run.State == lifecycle.Queued && compareMarks(m, Mark{after, 0, since.UnixMilli()}) > 0 {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, compareMarks)
	out = out[:min(len(out), limit)]
	return out, d.down
}

func compareMarks(a, b Mark) int {
	return cmp.Or(cmp.Compare(a.Inserted, b.Inserted), cmp.Compare(a.Run, b.Run))
}

func (d *rows) RunRows(_ context.Context, ids []string) (out []RunRow, err error) {
	d.read += len(ids)
	for _, id := range ids {
		if r := d.runs[id]; r != nil {
			out = append(out, *r)
		}
	}
	return out, d.down
}

func (d *rows) LiveRows(context.Context, string) (out []LiveRow, err error) {
	for _, l := range sortedRows(d.attempts) {
		l.Row = *d.runs[l.Attempt.Run]
		out = append(out, *l)
	}
	return out, d.down
}

func (d *rows) Beats(context.Context, string) (out []Beat, err error) {
	for _, l := range sortedRows(d.attempts) {
		out = append(out, Beat{Attempt: l.Attempt.ID, State: l.Attempt.State, Beats: l.Attempt.Beats})
	}
	return out, d.down
}

func (d *rows) RunnerRows(context.Context, string) (out []RunnerRow, err error) {
	for _, r := range sortedRows(d.runners) {
		out = append(out, *r)
	}
	return out, d.down
}

func (d *rows) ShareRows(context.Context, string) ([]ShareRow, error) { return d.shares, d.down }

func (d *rows) BudgetLeft(_ context.Context, tenant string) (int64, bool, error) {
	left, limited := d.left(tenant)
	return left, limited, d.down
}

func (d *rows) RecentDurations(context.Context, string, int) ([]Duration, error) { return nil, d.down }

func (d *rows) EndAttempt(_ context.Context, e runs.Ending) (runs.Ended, error) {
	if d.down != nil {
		return runs.Ended{}, d.down
	}
	l := d.attempts[e.Attempt]
	if l == nil || l.Attempt.Fence != e.Fence || !slices.Contains(e.From, l.Attempt.State) {
		return runs.Ended{}, fault.New(fault.Conflict, "not so any more")
	}
	delete(d.attempts, e.Attempt)
	d.ends[e.Attempt] = e
	d.spent[l.Attempt.Tenant] += e.CostMicro
	r := d.runs[l.Attempt.Run]
	state, wait := lifecycle.Next(lifecycle.Ending{State: e.State, Reason: e.Reason, Cancel: r.Run.Cancel}, r.Spec.RetryPolicy(), r.Run.Failures, r.Run.Losses)
	switch {
	case e.State == lifecycle.AttemptFailed:
		r.Run.Failures++
	case e.State == lifecycle.AttemptInterrupted && e.Reason != lifecycle.NotStarted:
		r.Run.Losses++
	}
	r.Run.State, r.Run.Reason, r.Run.Version = state, e.Reason, r.Run.Version+1
	if state == lifecycle.Queued {
		r.Run.NextEligible = e.At.Add(wait)
		r.Run.EligibleAt, r.Run.Inserted = r.Run.NextEligible, e.At.UnixMilli()
	}
	return runs.Ended{Run: r.Run}, nil
}

func (d *rows) EndQueuedRun(_ context.Context, id string, version int64, state lifecycle.Run, reason lifecycle.Reason, _ string, _ time.Time) (runs.Ended, error) {
	r := d.runs[id]
	if d.down != nil {
		return runs.Ended{}, d.down
	}
	if r.Run.State != lifecycle.Queued || r.Run.Version != version {
		return runs.Ended{}, fault.New(fault.Conflict, "not so any more")
	}
	r.Run.State, r.Run.Reason, r.Run.Version = state, reason, version+1
	return runs.Ended{Run: r.Run}, nil
}
