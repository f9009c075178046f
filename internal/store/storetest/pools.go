package storetest

import (
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/pools"
	"github.com/roadstead/roadstead/internal/runs"
	"github.com/roadstead/roadstead/internal/store"
)

// poolRows: a pool is made once, changed at its revision, and deleted only when nobody needs it.
func poolRows(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	own := pools.Pool{Name: "own", Tenant: acme, Policy: api.PoolPolicy{Excess: "reject", PriceMicro: 7}, Revision: 1, CreatedAt: at()}
	ok(t, a.CreatePool(ctx, own, entry()))
	refused(t, b.CreatePool(ctx, own, entry()), fault.AlreadyExists)
	refused(t, b.CreatePool(ctx, pools.Pool{Name: "lost", Tenant: "t-none"}, entry()), fault.NotFound)
	got, err := b.Pool(ctx, "own")
	ok(t, err)
	equal(t, got, own)
	_, err = b.Pool(ctx, "none")
	refused(t, err, fault.NotFound)
	own.Draining, own.DrainBy, own.Revision, own.Policy.PriceMicro = true, at().Add(time.Hour), 2, 8
	ok(t, a.ChangePool(ctx, own, entry()))
	refused(t, b.ChangePool(ctx, own, entry()), fault.RevisionMismatch)
	refused(t, b.ChangePool(ctx, pools.Pool{Name: "none", Revision: 2}, entry()), fault.NotFound)
	all, err := b.ListPools(ctx)
	ok(t, err)
	equal(t, len(all) == 2 && all[0] == own && all[1].Name == "p", true)
	for n := int64(2); n < 7; n++ {
		oneWins(t, together(a, b, func(_ int, s *store.Store) error {
			return s.ChangePool(ctx, pools.Pool{Name: "own", Revision: n + 1}, entry())
		}), fault.RevisionMismatch)
	}

	run := y.submit(order())
	refused(t, a.DeletePool(ctx, "p", entry()), fault.Conflict)
	_, err = a.CancelRun(ctx, runs.Cancellation{Run: run.ID, At: at()}, entry())
	ok(t, err)
	refused(t, a.DeletePool(ctx, "p", entry()), fault.Conflict) // its runner is there
	ok(t, a.RevokeRunner(ctx, y.runner, at(), entry()))
	ok(t, a.DeletePool(ctx, "p", entry()))
	refused(t, a.DeletePool(ctx, "p", entry()), fault.NotFound)
	clock, err := b.PoolClock(ctx, "p")
	ok(t, err)
	equal(t, clock, "")
}

// poolShares: a tenant's weight and cap in a pool, which a submit does not touch.
func poolShares(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	newYard(t, a, b)
	refused(t, a.SetShare(ctx, api.PoolShare{Pool: "p", Tenant: "t-none", Weight: 1}, entry()), fault.NotFound)
	share := api.PoolShare{Pool: "p", Tenant: acme, Weight: 300, MaxSlots: 4}
	ok(t, a.SetShare(ctx, api.PoolShare{Pool: "p", Tenant: acme, Weight: 1}, entry()))
	ok(t, b.SetShare(ctx, share, entry()))
	sub := submission(order())
	sub.Bounds = []runs.Bounds{{Pool: "p", TenantDepth: 5, Depth: 5}}
	_, err := a.SubmitRuns(ctx, sub)
	ok(t, err)
	all, err := b.Shares(ctx, "p")
	ok(t, err)
	equal(t, text(all), text([]api.PoolShare{share}))
	rows, err := b.ShareRows(ctx, "p")
	ok(t, err)
	equal(t, len(rows) == 1 && rows[0].Weight == 300 && rows[0].MaxSlots == 4, true)
	all, err = b.Shares(ctx, "q")
	ok(t, err)
	equal(t, len(all), 0)
}

// budgets: a tenant's limit goes by compare-and-set, from none on.
func budgets(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	newYard(t, a, b)
	none, err := a.Budget(ctx, acme)
	ok(t, err)
	equal(t, none, pools.Budget{Tenant: acme})
	refused(t, a.SetBudget(ctx, pools.Budget{Tenant: "t-none", Limit: 5, Revision: 1}, entry()), fault.NotFound)
	_, limited, err := a.BudgetLeft(ctx, acme)
	ok(t, err)
	equal(t, limited, false)
	refused(t, a.SetBudget(ctx, pools.Budget{Tenant: acme, Limit: 5, Revision: 2}, entry()), fault.RevisionMismatch)
	for n := int64(0); n < 5; n++ {
		winner := oneWins(t, together(a, b, func(i int, s *store.Store) error {
			return s.SetBudget(ctx, pools.Budget{Tenant: acme, Limit: 10*n + int64(i), Revision: n + 1}, entry())
		}), fault.RevisionMismatch)
		got, err := b.Budget(ctx, acme)
		ok(t, err)
		equal(t, got, pools.Budget{Tenant: acme, Limit: 10*n + int64(winner), Revision: n + 1})
	}
}

// runnerRows: a token makes one runner, of its pool, before it expires; a revoked runner stays revoked.
func runnerRows(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	token := pools.Token{ID: "tok", Pool: "p", Hash: "secret", ExpiresAt: at().Add(time.Minute)}
	ok(t, a.CreateToken(ctx, token, entry()))
	runner := func() pools.Runner {
		return pools.Runner{ID: "rnr_" + store.NewID(), Name: "a1", Hash: "k", Capacity: api.Resources{Slots: 2}, Labels: map[string]string{"gpu": "yes"}, Version: "v1",
			Protocol: 1, CreatedAt: at()}
	}
	_, err := a.RegisterRunner(ctx, "secret", runner(), token.ExpiresAt, entry())
	refused(t, err, fault.Unauthorized)
	_, err = a.RegisterRunner(ctx, "other", runner(), at(), entry())
	refused(t, err, fault.Unauthorized)
	var made [2]pools.Runner
	winner := oneWins(t, together(a, b, func(i int, s *store.Store) (err error) {
		made[i], err = s.RegisterRunner(ctx, "secret", runner(), at(), entry())
		return err
	}), fault.Unauthorized)
	r := made[winner]
	equal(t, r.Pool, "p")
	got, err := b.Runner(ctx, r.ID)
	ok(t, err)
	equal(t, text(got), text(r))
	for _, pool := range []string{"p", ""} {
		all, err := b.Runners(ctx, pool)
		ok(t, err)
		equal(t, len(all) == 2 && all[0].ID == r.ID && all[1].ID == y.runner, true) // by name
	}
	all, err := b.Runners(ctx, "q")
	ok(t, err)
	equal(t, len(all), 0)

	for _, drain := range []bool{true, false} {
		ok(t, a.DrainRunner(ctx, r.ID, drain, entry()))
		got, err = b.Runner(ctx, r.ID)
		ok(t, err)
		equal(t, got.Draining, drain)
	}
	ok(t, a.RevokeRunner(ctx, r.ID, at(), entry()))
	refused(t, a.RevokeRunner(ctx, r.ID, at().Add(time.Hour), entry()), fault.NotFound)
	refused(t, a.DrainRunner(ctx, r.ID, true, entry()), fault.NotFound)
	got, err = b.Runner(ctx, r.ID)
	ok(t, err)
	equal(t, got.RevokedAt, at())
	rows, err := b.RunnerRows(ctx, "p")
	ok(t, err)
	equal(t, len(rows), 1)
}
