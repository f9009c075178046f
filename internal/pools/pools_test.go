package pools_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/attempts"
	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/dispatch"
	"github.com/roadstead/roadstead/internal/dispatcher"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/pools"
	"github.com/roadstead/roadstead/internal/store"
)

// wall is a clock that stands until it is set.
type wall struct{ at time.Time }

func (w *wall) Now() clock.Mono { return clock.Mono(w.at.UnixNano()) }
func (w *wall) Wall() time.Time { return w.at }

// live is a dispatcher that decides for the default pool.
type live struct{}

func (live) Figures() []dispatcher.Figures {
	return []dispatcher.Figures{{Pool: "default", Counts: dispatch.Counts{TenantCounts: dispatch.TenantCounts{Queued: 7}}, OldestAge: 90 * time.Second}}
}

func (live) Fairness(string) []api.TenantShare {
	return []api.TenantShare{{Tenant: "t2", Weight: 100}, {Tenant: "t1", Weight: 300}}
}

// world is the service over a real store with two tenants.
type world struct {
	*pools.Service
	t     *testing.T
	db    *store.Store
	clock *wall
}

var (
	operator = identity.Principal{ID: "op", Kind: identity.User, Tenant: "t0", Operator: true}
	admin    = identity.Principal{ID: "ann", Kind: identity.User, Tenant: "t1", Role: identity.TenantAdmin}
	member   = identity.Principal{ID: "bob", Kind: identity.User, Tenant: "t1"}
	other    = identity.Principal{ID: "eve", Kind: identity.User, Tenant: "t2", Role: identity.TenantAdmin}
)

func newWorld(t *testing.T) *world {
	t.Helper()
	db, err := store.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	w := &world{t: t, db: db, clock: &wall{time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}}
	for _, id := range []string{"t0", "t1", "t2"} {
		w.ok(db.CreateTenant(t.Context(), identity.Tenant{ID: id, Name: id, CreatedAt: w.clock.at}, audit.Entry{ID: store.NewID(), At: w.clock.at}))
	}
	w.Service, err = pools.New(pools.Config{NewID: store.NewID, Lease: 90 * time.Second, Heartbeat: 10 * time.Second, Live: live{}}, db, w.clock)
	w.ok(err)
	w.ok(w.EnsureDefault(t.Context()))
	w.ok(w.EnsureDefault(t.Context()))
	_, err = w.Set(t.Context(), admin, "own", api.PoolChange{Tenant: "t1"})
	w.ok(err)
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) refused(err error, code fault.Code, words string) {
	w.t.Helper()
	if !fault.Is(err, code) || !strings.Contains(err.Error(), words) {
		w.t.Fatalf("got %v, want %s %q", err, code, words)
	}
}

func (w *world) register(pool string, by identity.Principal) (id, key string) {
	w.t.Helper()
	token, err := w.NewToken(w.t.Context(), by, pool)
	w.ok(err)
	in := api.RegisterRunner{Token: token.Token, Name: "m1", Protocol: api.RunnerProtocol, Capacity: api.Resources{Slots: 4, MilliCPU: 1000, MemoryBytes: 1 << 30, DiskBytes: 1 << 30}}
	made, err := w.Register(w.t.Context(), in)
	w.ok(err)
	_, err = w.Register(w.t.Context(), in)
	w.refused(err, fault.Unauthorized, "used")
	return made.Runner, made.Key
}

// Whose a pool is, and who may see and change it.
func TestWhoMayWhat(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	for _, c := range []struct {
		who  identity.Principal
		sees string
	}{{operator, "default own"}, {admin, "default own"}, {member, "default own"}, {other, "default"}} {
		all, next, err := w.List(ctx, c.who, "", 10)
		w.ok(err)
		var names []string
		for _, p := range all {
			names = append(names, p.Name)
		}
		if strings.Join(names, " ") != c.sees || next != "" {
			t.Errorf("%s sees %v, want %s", c.who.ID, names, c.sees)
		}
	}
	page, next, err := w.List(ctx, admin, "", 1)
	if err != nil || len(page) != 1 || next != "default" {
		t.Errorf("%v %q %v", page, next, err)
	}
	runner, _ := w.register("default", operator)
	for name, try := range map[string]func(p identity.Principal, pool string) error{
		"set": func(p identity.Principal, pool string) error {
			_, err := w.Set(ctx, p, pool, api.PoolChange{ExpectedRevision: 99})
			return err
		},
		"drain": func(p identity.Principal, pool string) error {
			_, err := w.Drain(ctx, p, pool, api.PoolDrain{})
			return err
		},
		"share": func(p identity.Principal, pool string) error {
			_, err := w.SetShare(ctx, p, api.PoolShare{Pool: pool, Tenant: "t1", Weight: 1})
			return err
		},
		"token": func(p identity.Principal, pool string) error { _, err := w.NewToken(ctx, p, pool); return err },
		"runners": func(p identity.Principal, pool string) error {
			_, _, err := w.Runners(ctx, p, pool, "", 10)
			return err
		},
		"delete": func(p identity.Principal, pool string) error { return w.Delete(ctx, p, pool) },
	} {
		for _, c := range []struct {
			who  identity.Principal
			pool string
			code fault.Code
		}{{member, "own", fault.Forbidden}, {member, "default", fault.Forbidden}, {admin, "default", fault.Forbidden}, {other, "own", fault.NotFound}, {operator, "none", fault.NotFound}} {
			if err := try(c.who, c.pool); !fault.Is(err, c.code) {
				t.Errorf("%s of %s by %s: %v, want %s", name, c.pool, c.who.ID, err, c.code)
			}
		}
	}
	_, err = w.Set(ctx, admin, "more", api.PoolChange{})
	w.refused(err, fault.Forbidden, "operator")
	_, err = w.Set(ctx, admin, "more", api.PoolChange{Tenant: "t2"})
	w.refused(err, fault.Forbidden, "operator")
	_, err = w.Set(ctx, operator, "more", api.PoolChange{Tenant: "t9"})
	w.refused(err, fault.NotFound, "t9")
	_, err = w.Runner(ctx, admin, runner)
	w.refused(err, fault.NotFound, runner)
	w.refused(w.RevokeRunner(ctx, admin, runner), fault.NotFound, runner)
	if all, _, err := w.Runners(ctx, admin, "", "", 10); err != nil || len(all) != 0 {
		t.Errorf("%v %v", all, err)
	}
}

// Wrong fields are named, and nothing changes at another revision.
func TestSetAndDelete(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	for _, c := range []struct {
		pool  string
		in    api.PoolChange
		code  fault.Code
		words string
	}{
		{"Own", api.PoolChange{}, fault.InvalidInput, "pool: "},
		{"-own", api.PoolChange{}, fault.InvalidInput, "pool: "},
		{"own", api.PoolChange{ExpectedRevision: -1}, fault.InvalidInput, "expectedRevision: "},
		{"own", api.PoolChange{Policy: api.PoolPolicy{Excess: "maybe"}}, fault.InvalidInput, "policy.excess: "},
		{"own", api.PoolChange{Policy: api.PoolPolicy{Pids: 1}}, fault.InvalidInput, "policy.pids: "},
		{"own", api.PoolChange{Policy: api.PoolPolicy{TenantSoftDepth: 9, TenantHardDepth: 8}}, fault.InvalidInput, "policy.tenantSoftDepth: "},
		{"own", api.PoolChange{}, fault.AlreadyExists, ""},
		{"own", api.PoolChange{ExpectedRevision: 2}, fault.RevisionMismatch, "revision 1"},
		{"own", api.PoolChange{ExpectedRevision: 1, Tenant: "t2"}, fault.InvalidInput, "tenant: "},
	} {
		_, err := w.Set(ctx, operator, c.pool, c.in)
		w.refused(err, c.code, c.words)
	}
	got, err := w.Set(ctx, admin, "own", api.PoolChange{ExpectedRevision: 1, Policy: api.PoolPolicy{PriceMicro: 7}})
	w.ok(err)
	if got.Revision != 2 || got.Policy != (api.PoolPolicy{PriceMicro: 7}) || got.Effective.MaxAge != pools.Defaults().MaxAge || got.State != "offline" {
		t.Errorf("%+v", got)
	}
	w.refused(w.Delete(ctx, operator, "default"), fault.Conflict, "stays")
	runner, _ := w.register("own", admin)
	w.refused(w.Delete(ctx, admin, "own"), fault.Conflict, "runners")
	w.ok(w.RevokeRunner(ctx, admin, runner))
	w.ok(w.Delete(ctx, admin, "own"))
	_, err = w.Get(ctx, admin, "own")
	w.refused(err, fault.NotFound, "own")
	log, err := w.db.ListAudit(ctx, "", 100)
	w.ok(err)
	var actions []string
	for _, e := range log {
		if e.Action != "" {
			actions = append(actions, e.Action)
		}
	}
	want := "pool.created pool.created pool.changed runner_token.created runner.registered runner.revoked pool.deleted"
	if strings.Join(actions, " ") != want {
		t.Errorf("audited %v\nwant    %s", actions, want)
	}
}

// A pool tells who is there, what they can and what waits; a runner's key works until it is revoked.
func TestWhatAPoolDoes(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	state := func(want string, runners int, slots int64) {
		t.Helper()
		p, err := w.Get(ctx, member, "default")
		w.ok(err)
		if p.State != want || p.Runners != runners || p.Capacity.Slots != slots || p.Queued != 7 || p.OldestAge != 90 {
			t.Errorf("%+v, want %s with %d runners", p, want, runners)
		}
	}
	state("offline", 0, 0)
	id, key := w.register("default", operator)
	state("open", 1, 4)
	w.clock.at = w.clock.at.Add(2 * time.Minute)
	state("offline", 0, 0)
	_, err := w.db.Beat(ctx, attempts.Beat{Runner: id, At: w.clock.at, LeaseUntil: w.clock.at})
	w.ok(err)
	state("open", 1, 4)
	caller, err := w.AuthenticateRunner(ctx, key)
	if err != nil || caller.Runner != id || caller.Draining {
		t.Errorf("%+v %v", caller, err)
	}
	r, err := w.DrainRunner(ctx, operator, id, false)
	if err != nil || r.State != "draining" {
		t.Errorf("%+v %v", r, err)
	}
	if r, err = w.DrainRunner(ctx, operator, id, true); err != nil || r.State != "online" {
		t.Errorf("%+v %v", r, err)
	}
	_, err = w.Drain(ctx, operator, "default", api.PoolDrain{DeadlineSeconds: 7*24*3600 + 1})
	w.refused(err, fault.InvalidInput, "deadlineSeconds: ")
	p, err := w.Drain(ctx, operator, "default", api.PoolDrain{DeadlineSeconds: 60})
	if err != nil || p.State != "drained" || !p.DrainBy.Equal(w.clock.at.Add(time.Minute)) {
		t.Errorf("%+v %v", p, err)
	}
	if caller, err = w.AuthenticateRunner(ctx, key); err != nil || !caller.Draining || !caller.DrainBy.Equal(*p.DrainBy) {
		t.Errorf("%+v %v", caller, err)
	}
	if p, err = w.Drain(ctx, operator, "default", api.PoolDrain{Resume: true}); err != nil || p.State != "open" || p.DrainBy != nil {
		t.Errorf("%+v %v", p, err)
	}
	w.ok(w.RevokeRunner(ctx, operator, id))
	for _, bad := range []string{key, key + "x", "rsr_none_x", "rsk_x", ""} {
		_, err = w.AuthenticateRunner(ctx, bad)
		w.refused(err, fault.Unauthorized, "")
	}
	if r, err = w.Runner(ctx, operator, id); err != nil || r.State != "revoked" {
		t.Errorf("%+v %v", r, err)
	}
}

// Shares and budgets: bounds are named, a tenant sees its own, only operators give money.
func TestSharesAndBudgets(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	for _, c := range []struct {
		share api.PoolShare
		words string
	}{{api.PoolShare{}, "weight: "}, {api.PoolShare{Weight: 10_001}, "weight: "}, {api.PoolShare{Weight: 1, MaxSlots: -1}, "maxSlots: "}} {
		c.share.Pool, c.share.Tenant = "default", "t1"
		_, err := w.SetShare(ctx, operator, c.share)
		w.refused(err, fault.InvalidInput, c.words)
	}
	for _, tenant := range []string{"t1", "t2"} {
		_, err := w.SetShare(ctx, operator, api.PoolShare{Pool: "default", Tenant: tenant, Weight: 300, MaxSlots: 2})
		w.ok(err)
	}
	for who, want := range map[*identity.Principal]int{&operator: 2, &member: 1, &other: 1} {
		shares, _, err := w.Shares(ctx, *who, "default", "", 10)
		w.ok(err)
		fair, _, err := w.Fairness(ctx, *who, "default", "", 10)
		w.ok(err)
		if len(shares) != want || len(fair) != want {
			t.Errorf("%s sees %v and %v", who.ID, shares, fair)
		}
	}
	_, err := w.Budget(ctx, other, "t1")
	w.refused(err, fault.NotFound, "t1")
	b, err := w.Budget(ctx, member, "t1")
	if err != nil || b != (api.Budget{Tenant: "t1"}) {
		t.Errorf("%+v %v", b, err)
	}
	_, err = w.SetBudget(ctx, admin, "t1", api.BudgetChange{LimitMicro: 5})
	w.refused(err, fault.Forbidden, "operator")
	_, err = w.SetBudget(ctx, other, "t1", api.BudgetChange{LimitMicro: 5})
	w.refused(err, fault.NotFound, "t1")
	_, err = w.SetBudget(ctx, operator, "t1", api.BudgetChange{LimitMicro: -1})
	w.refused(err, fault.InvalidInput, "limitMicro: ")
	_, err = w.SetBudget(ctx, operator, "t9", api.BudgetChange{LimitMicro: 1})
	w.refused(err, fault.NotFound, "t9")
	for revision := range int64(2) {
		b, err = w.SetBudget(ctx, operator, "t1", api.BudgetChange{ExpectedRevision: revision, LimitMicro: 5 + revision})
		if err != nil || b != (api.Budget{Tenant: "t1", LimitMicro: 5 + revision, Revision: revision + 1}) {
			t.Errorf("%+v %v", b, err)
		}
	}
	_, err = w.SetBudget(ctx, operator, "t1", api.BudgetChange{LimitMicro: 9})
	w.refused(err, fault.RevisionMismatch, "revision 2")
	left, limited, err := w.MoneyLeft(ctx, "t1")
	if err != nil || !limited || left != 6 {
		t.Error(left, limited, err)
	}
}

// A runner says of itself only what has a form.
func TestRegisterNamesTheField(t *testing.T) {
	w := newWorld(t)
	good := api.Resources{Slots: 1, MilliCPU: 1, MemoryBytes: 1, DiskBytes: 1}
	many := map[string]string{}
	for i := range 65 {
		many[fmt.Sprint("l", i)] = ""
	}
	for _, c := range []struct {
		in    api.RegisterRunner
		words string
	}{
		{api.RegisterRunner{Capacity: good}, "name: "}, {api.RegisterRunner{Name: "a\nb", Capacity: good}, "name: "},
		{api.RegisterRunner{Name: "m", Version: strings.Repeat("v", 201), Capacity: good}, "version: "},
		{api.RegisterRunner{Name: "m", Capacity: good, Labels: many}, "labels: "},
		{api.RegisterRunner{Name: "m", Capacity: good, Labels: map[string]string{"Zone": "a"}}, "labels.Zone: "},
		{api.RegisterRunner{Name: "m"}, "capacity.slots: "},
	} {
		c.in.Protocol = api.RunnerProtocol
		_, err := w.Register(t.Context(), c.in)
		w.refused(err, fault.InvalidInput, c.words)
	}
}
