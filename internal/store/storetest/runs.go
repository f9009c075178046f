package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/attempts"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/dispatcher"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/pools"
	"github.com/roadstead/roadstead/internal/runs"
	"github.com/roadstead/roadstead/internal/store"
)

// yard is a pool with its owner and one runner, in which tests submit and run.
type yard struct {
	t      *testing.T
	a, b   *store.Store
	owner  dispatcher.Owner
	runner string
}

const acme = "t-acme"

func newYard(t *testing.T, a, b *store.Store) *yard {
	t.Helper()
	y := &yard{t: t, a: a, b: b}
	ok(t, a.CreateTenant(t.Context(), identity.Tenant{ID: acme, Name: "acme", CreatedAt: at()}, entry()))
	y.owner = y.pool("p")
	y.runner = y.newRunner("p")
	return y
}

// pool makes a pool and its first owner.
func (y *yard) pool(name string) dispatcher.Owner {
	y.t.Helper()
	ok(y.t, y.a.CreatePool(y.t.Context(), pools.Pool{Name: name, Revision: 1, CreatedAt: at()}, entry()))
	o, err := y.a.TakePool(y.t.Context(), name, "owner-1", 0)
	ok(y.t, err)
	return o
}

func (y *yard) newRunner(pool string) string {
	y.t.Helper()
	token := "hash-" + store.NewID()
	ok(y.t, y.a.CreateToken(y.t.Context(), pools.Token{ID: store.NewID(), Pool: pool, Hash: token, ExpiresAt: at().Add(time.Hour)}, entry()))
	r, err := y.a.RegisterRunner(y.t.Context(), token, pools.Runner{
		ID: "rnr_" + store.NewID(), Name: "m1", Hash: "h", Capacity: api.Resources{Slots: 4}, Labels: map[string]string{"zone": "a"}, Protocol: 1, CreatedAt: at(),
	}, at(), entry())
	ok(y.t, err)
	return r.ID
}

// order is a Run to be submitted, as the edits want it.
func order(edits ...func(n *runs.NewRecord)) runs.NewRecord {
	n := runs.NewRecord{
		Run: runs.Run{
			ID: "run_" + store.NewID(), Tenant: acme, Pool: "p", State: lifecycle.Queued, Version: 1, CreatedAt: at(), CreatedBy: "acc", CreatedName: "ann",
			NextEligible: at(), EligibleAt: at(), Class: "background", Inserted: at().UnixMilli(),
		},
		Spec: runs.Spec{
			Command: []string{"true"}, Resources: api.Resources{Slots: 1}, Timeout: 60, Retry: api.Retry{Failures: 1, Losses: 1, BackoffSeconds: 10},
		},
	}
	for _, edit := range edits {
		edit(&n)
	}
	return n
}

func after(run, when string) func(n *runs.NewRecord) {
	return func(n *runs.NewRecord) {
		n.After = append(n.After, runs.Need{Field: "after[0].run", On: run, When: when})
	}
}

func lane(key, policy string) func(n *runs.NewRecord) {
	return func(n *runs.NewRecord) { n.Run.Lane, n.Spec.Lane, n.LanePolicy = key, key, policy }
}

func element(array string, index int) func(n *runs.NewRecord) {
	return func(n *runs.NewRecord) { n.Run.Array, n.Run.Index = array, index }
}

func submission(all ...runs.NewRecord) runs.Submission {
	return runs.Submission{Tenant: acme, Runs: all, At: at()}
}

// submit submits Runs that must be taken, and gives the first one.
func (y *yard) submit(all ...runs.NewRecord) runs.Run {
	y.t.Helper()
	out, err := y.a.SubmitRuns(y.t.Context(), submission(all...))
	ok(y.t, err)
	equal(y.t, out.Refused, "")
	equal(y.t, len(out.Runs), len(all))
	return out.Runs[0]
}

// now is a Run as it is stored.
func (y *yard) now(id string) runs.Run {
	y.t.Helper()
	r, err := y.b.Run(y.t.Context(), id)
	ok(y.t, err)
	return r
}

// is fails unless the Run is in the state for the reason.
func (y *yard) is(id string, state lifecycle.Run, reason lifecycle.Reason) {
	y.t.Helper()
	r := y.now(id)
	if r.State != state || r.Reason != reason {
		y.t.Fatalf("Run is %s (%s), want %s (%s)", r.State, r.Reason, state, reason)
	}
}

func assignment(r runs.Run, runner string) dispatcher.Assignment {
	return dispatcher.Assignment{
		Run: r.ID, Tenant: r.Tenant, Fence: r.Fence, Attempt: "att_" + store.NewID(), Runner: runner, Resources: api.Resources{Slots: 1}, Lane: r.Lane,
		At: at().Add(time.Hour), LeaseUntil: at().Add(2 * time.Hour), Decision: `{"seq":1}`,
	}
}

// assign gives a Run to the yard's runner.
func (y *yard) assign(id string) attempts.Holder {
	y.t.Helper()
	r := y.now(id)
	one := assignment(r, y.runner)
	out, err := y.a.Assign(y.t.Context(), y.owner, []dispatcher.Assignment{one})
	ok(y.t, err)
	equal(y.t, out[0], dispatcher.Assigned{Won: true})
	return attempts.Holder{Runner: y.runner, Attempt: one.Attempt, Fence: r.Fence + 1}
}

// launch gives a Run to the runner and starts it.
func (y *yard) launch(id string) attempts.Holder {
	y.t.Helper()
	h := y.assign(id)
	_, _, _, err := y.a.StartAttempt(y.t.Context(), h, at())
	ok(y.t, err)
	_, err = y.b.LaunchAttempt(y.t.Context(), h, at().Add(time.Second))
	ok(y.t, err)
	return h
}

// end ends an Attempt from whatever state it may be in.
func (y *yard) end(h attempts.Holder, state lifecycle.Attempt, reason lifecycle.Reason) runs.Ended {
	y.t.Helper()
	ended, err := y.b.EndAttempt(y.t.Context(), ending(h, state, reason))
	ok(y.t, err)
	return ended
}

func ending(h attempts.Holder, state lifecycle.Attempt, reason lifecycle.Reason) runs.Ending {
	return runs.Ending{
		Attempt: h.Attempt, Fence: h.Fence, From: []lifecycle.Attempt{lifecycle.Assigned, lifecycle.Starting, lifecycle.Running, lifecycle.Finalizing},
		State: state, Reason: reason, At: at().Add(time.Minute),
	}
}

// succeed reports an Attempt that runs and ends it.
func (y *yard) succeed(h attempts.Holder) runs.Ended {
	y.t.Helper()
	_, _, err := y.a.ReportAttempt(y.t.Context(), h, `{"outcome":"exited"}`, at())
	ok(y.t, err)
	return y.end(h, lifecycle.AttemptSucceeded, lifecycle.Done)
}

func (y *yard) kinds(run string) string {
	y.t.Helper()
	events, err := y.b.RunEvents(y.t.Context(), run, 0, 100)
	ok(y.t, err)
	var kinds []string
	for i, e := range events {
		equal(y.t, e.Seq, int64(i+1))
		kinds = append(kinds, e.Kind)
	}
	return strings.Join(kinds, " ")
}

// submitKept: what a submit acknowledges is there, for tenants and for the dispatcher.
func submitKept(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	n := order(element("arr_1", 3), lane("nightly", "queue"), func(n *runs.NewRecord) {
		n.Run.Priority, n.Run.Package, n.Spec.Request.Labels = 4, "backtest@1.2.0", map[string]string{"kind": "sweep"}
		n.Run.NextEligible = at().Add(time.Minute)
		n.Spec.Command, n.Spec.Request.NotBefore = []string{"true", "--or-not"}, &n.Run.NextEligible
		n.Spec.Placement, n.Spec.Expected, n.Spec.ArrayLimit, n.Spec.HoldMicro, n.Spec.PriceMicro = map[string]string{"zone": "a"}, 30, 2, 600, 10
	})
	y.submit(n)
	got, err := b.Run(ctx, n.Run.ID)
	ok(t, err)
	equal(t, got, n.Run)
	spec, err := b.RunSpec(ctx, n.Run.ID)
	ok(t, err)
	equal(t, text(spec), text(n.Spec))
	details, err := b.RunDetails(ctx, n.Run.ID)
	ok(t, err)
	equal(t, details.Labels["kind"] == "sweep" && details.Progress == nil && len(details.Results) == 0, true)
	equal(t, y.kinds(n.Run.ID), "submitted")
	_, err = a.Run(ctx, "run_x")
	refused(t, err, fault.NotFound)
	_, err = a.RunSpec(ctx, "run_x")
	refused(t, err, fault.NotFound)

	want := text([]dispatcher.RunRow{brief(n.Run, n.Spec)})
	for _, read := range []func() ([]dispatcher.RunRow, error){
		func() ([]dispatcher.RunRow, error) { return b.QueuedRows(ctx, "p", "", 10) },
		func() ([]dispatcher.RunRow, error) { return b.RunRows(ctx, []string{n.Run.ID, "run_x"}) },
	} {
		rows, err := read()
		ok(t, err)
		equal(t, text(rows), want)
	}
	for _, read := range []func() ([]dispatcher.RunRow, error){
		func() ([]dispatcher.RunRow, error) { return b.QueuedRows(ctx, "p", n.Run.ID, 10) },
		func() ([]dispatcher.RunRow, error) { return b.QueuedRows(ctx, "other", "", 10) },
		func() ([]dispatcher.RunRow, error) { return b.RunRows(ctx, nil) },
	} {
		rows, err := read()
		ok(t, err)
		equal(t, len(rows), 0)
	}
	y.newRows(n.Run)
}

// brief is what dispatching gets to see of a Run.
func brief(r runs.Run, s runs.Spec) dispatcher.RunRow {
	r = runs.Run{
		ID: r.ID, Tenant: r.Tenant, Pool: r.Pool, State: r.State, Fence: r.Fence, Version: r.Version, CreatedAt: r.CreatedAt, NextEligible: r.NextEligible,
		EligibleAt: r.EligibleAt, Priority: r.Priority, Package: r.Package, Array: r.Array, WaitsFor: r.WaitsFor, Failures: r.Failures, Losses: r.Losses, Cancel: r.Cancel,
	}
	return dispatcher.RunRow{Run: r, Spec: runs.Spec{
		Resources: s.Resources, Placement: s.Placement, Timeout: s.Timeout, Expected: s.Expected, Lane: s.Lane, ArrayLimit: s.ArrayLimit,
		HoldMicro: s.HoldMicro, PriceMicro: s.PriceMicro, Command: s.Command[:1], Request: api.NewRun{NotBefore: s.Request.NotBefore},
	}}
}

// newRows fails unless the pool has the Run and nothing else that is new.
func (y *yard) newRows(r runs.Run) {
	y.t.Helper()
	for _, c := range []struct {
		pool  string
		since time.Time
		after string
		want  int
	}{{"p", at(), "", 1}, {"p", at().Add(-time.Millisecond), "run_z", 1}, {"p", at(), r.ID, 0}, {"p", at().Add(time.Millisecond), "", 0}, {"other", at(), "", 0}} {
		marks, err := y.b.NewRows(y.t.Context(), c.pool, c.since, c.after, 10)
		ok(y.t, err)
		equal(y.t, len(marks), c.want)
		if c.want > 0 {
			equal(y.t, marks[0], dispatcher.Mark{Run: r.ID, Version: r.Version, Inserted: r.Inserted})
		}
	}
}

// submitKeys: a key gives its first answer for its first body; a refused submit leaves it unused.
func submitKeys(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	keyed := func(name, body string, all ...runs.NewRecord) runs.Submission {
		sub := submission(all...)
		sub.Key = &runs.Key{Principal: "ann", Route: "runs", Name: name, Body: body}
		return sub
	}
	full := keyed("k", "body", order())
	full.Bounds = []runs.Bounds{{Pool: "p", TenantDepth: 1}}
	y.submit(order())
	out, err := a.SubmitRuns(ctx, full)
	ok(t, err)
	equal(t, out.Refused == "tenant_depth" && out.Queued == 1 && len(out.Runs) == 0, true)
	out, err = a.SubmitRuns(ctx, keyed("k", "body"))
	ok(t, err)
	equal(t, out.Repeat, false) // asked without anything to submit: unknown, and it stays so

	first, err := a.SubmitRuns(ctx, keyed("k", "body", order(element("arr_1", 0)), order(element("arr_1", 1))))
	ok(t, err)
	equal(t, len(first.Runs) == 2 && !first.Repeat, true)
	for _, again := range []runs.Submission{keyed("k", "body", order()), keyed("k", "body"), full} {
		out, err = b.SubmitRuns(ctx, again)
		ok(t, err)
		equal(t, out.Repeat && text(out.Runs) == text(first.Runs), true)
	}
	_, err = b.SubmitRuns(ctx, keyed("k", "another", order()))
	refused(t, err, fault.IdempotencyMismatch)
	for _, other := range []func(s *runs.Submission){
		func(s *runs.Submission) { s.Key.Principal = "bob" }, func(s *runs.Submission) { s.Key.Route = "batch" }, func(s *runs.Submission) { s.Tenant = "t-other" },
	} {
		sub := keyed("k", "another", order())
		other(&sub)
		out, err = b.SubmitRuns(ctx, sub)
		ok(t, err)
		equal(t, out.Repeat, false)
	}
}

// submitKeyRace: of the same submit over two connections at once, one makes Runs and both get its answer.
func submitKeyRace(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	newYard(t, a, b)
	for i := range 20 {
		var out [2]runs.Outcome
		errs := together(a, b, func(j int, s *store.Store) (err error) {
			sub := submission(order())
			sub.Key = &runs.Key{Principal: "ann", Route: "runs", Name: fmt.Sprint("k", i), Body: "body"}
			out[j], err = s.SubmitRuns(ctx, sub)
			return err
		})
		ok(t, errs[0])
		ok(t, errs[1])
		equal(t, out[0].Repeat != out[1].Repeat, true)
		equal(t, out[0].Runs[0].ID, out[1].Runs[0].ID)
	}
	all, err := a.ListRuns(ctx, runs.Filter{Tenant: acme, Limit: 100})
	ok(t, err)
	equal(t, len(all), 20)
}

// submitBounds: each bound counts what is queued now, in its pool.
func submitBounds(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	y.pool("q")
	try := func(bound runs.Bounds, all ...runs.NewRecord) string {
		t.Helper()
		sub := submission(all...)
		sub.Bounds = []runs.Bounds{bound}
		out, err := a.SubmitRuns(ctx, sub)
		ok(t, err)
		return out.Refused
	}
	first := y.submit(order(), order(func(n *runs.NewRecord) { n.Run.Pool = "q" }), order(func(n *runs.NewRecord) { n.Run.Tenant = "t-other" }))
	for _, c := range []struct {
		name  string
		bound runs.Bounds
		all   []runs.NewRecord
		want  string
	}{
		{"the tenant has one there", runs.Bounds{Pool: "p", TenantDepth: 1}, []runs.NewRecord{order()}, "tenant_depth"},
		{"two at once", runs.Bounds{Pool: "p", TenantDepth: 2}, []runs.NewRecord{order(), order()}, "tenant_depth"},
		{"all tenants have two", runs.Bounds{Pool: "p", TenantDepth: 5, Depth: 2}, []runs.NewRecord{order()}, "depth"},
		{"the oldest is too old", runs.Bounds{Pool: "p", OldestAt: at().Add(time.Millisecond)}, []runs.NewRecord{order()}, "age"},
		{"the oldest is as old as may be", runs.Bounds{Pool: "p", OldestAt: at()}, []runs.NewRecord{order()}, ""},
		{"the last places", runs.Bounds{Pool: "p", TenantDepth: 3, Depth: 4}, []runs.NewRecord{order()}, ""},
	} {
		if got := try(c.bound, c.all...); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	h := y.launch(first.ID)
	equal(t, try(runs.Bounds{Pool: "p", TenantDepth: 3, Depth: 4}, order()), "") // what runs is not queued
	y.end(h, lifecycle.AttemptFailed, lifecycle.ExitCode)
	equal(t, try(runs.Bounds{Pool: "p", TenantDepth: 3}, order()), "tenant_depth") // its retry is
}

// submitRace: the last place is given once: to one submit of a tenant, and to one tenant.
func submitRace(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	y.submit(order())
	for _, tenants := range [][2]string{{acme, acme}, {acme, "t-other"}} {
		for range 20 {
			before, err := a.QueuedRows(ctx, "p", "", 1000)
			ok(t, err)
			depth := len(before) + 1
			var out [2]runs.Outcome
			errs := together(a, b, func(i int, s *store.Store) (err error) {
				sub := submission(order(func(n *runs.NewRecord) { n.Run.Tenant = tenants[i] }))
				sub.Tenant = tenants[i]
				sub.Bounds = []runs.Bounds{{Pool: "p", TenantDepth: depth, Depth: depth}}
				out[i], err = s.SubmitRuns(ctx, sub)
				return err
			})
			ok(t, errs[0])
			ok(t, errs[1])
			if (out[0].Refused == "") == (out[1].Refused == "") {
				t.Fatalf("%v: one should get the last place: %+v", tenants, out)
			}
		}
	}
}

// listRuns: the newest first, page by page, by whatever is asked.
func listRuns(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	var all []runs.NewRecord
	for i := range 7 {
		all = append(all, order(func(n *runs.NewRecord) {
			n.Run.CreatedAt = at().Add(time.Duration(i/2) * time.Second) // two of each instant
			n.Run.Package = []string{"back_test@1", "back_test@2", "backxtest@1", ""}[i%4]
			n.Spec.Request.Labels = map[string]string{"odd": fmt.Sprint(i%2 == 1), "all": "yes"}
			if i < 3 {
				n.Run.Array, n.Run.Index = "arr_1", i
			}
		}))
	}
	y.submit(all...)
	y.submit(order(func(n *runs.NewRecord) { n.Run.Tenant, n.Run.CreatedAt = "t-other", at().Add(time.Hour) }))
	_, err := a.CancelRun(ctx, runs.Cancellation{Run: all[6].Run.ID, Reason: lifecycle.CancelRequested, At: at()}, entry())
	ok(t, err)
	walk := func(f runs.Filter) (indexes []int) {
		t.Helper()
		for f.Limit = 2; ; {
			page, err := b.ListRuns(ctx, f)
			ok(t, err)
			for _, r := range page {
				indexes = append(indexes, slices.IndexFunc(all, func(n runs.NewRecord) bool { return n.Run.ID == r.ID }))
			}
			if len(page) < f.Limit {
				return indexes
			}
			f.After, f.AfterAt = page[1].ID, page[1].CreatedAt
		}
	}
	for _, c := range []struct {
		name string
		f    runs.Filter
		want []int
	}{
		{"of a tenant", runs.Filter{Tenant: acme}, []int{6, 5, 4, 3, 2, 1, 0}},
		{"of all tenants", runs.Filter{}, []int{-1, 6, 5, 4, 3, 2, 1, 0}},
		{"in a state", runs.Filter{Tenant: acme, States: []lifecycle.Run{lifecycle.Cancelled, lifecycle.Failed}}, []int{6}},
		{"by a label", runs.Filter{Tenant: acme, Labels: map[string]string{"odd": "true"}}, []int{5, 3, 1}},
		{"by labels and state", runs.Filter{Tenant: acme, States: []lifecycle.Run{lifecycle.Queued}, Labels: map[string]string{"odd": "false", "all": "yes"}}, []int{4, 2, 0}},
		{"by another's label", runs.Filter{Tenant: "t-other", Labels: map[string]string{"all": "yes"}}, nil},
		{"of a package", runs.Filter{Tenant: acme, Package: "back_test"}, []int{5, 4, 1, 0}},
		{"of a version", runs.Filter{Tenant: acme, Package: "back_test@2"}, []int{5, 1}},
		{"of an array", runs.Filter{Tenant: acme, Array: "arr_1"}, []int{2, 1, 0}},
		{"of another pool", runs.Filter{Tenant: acme, Pool: "q"}, nil},
	} {
		if got := walk(c.f); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
