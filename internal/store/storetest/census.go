package storetest

import (
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/attempts"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/store"
)

// census: holds agree with living Attempts all the while; leases that nobody ends are found (R01), and uploads that
// became no result.
func census(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	count := func(overdue time.Time) attempts.Census {
		t.Helper()
		c, err := b.Census(ctx, overdue)
		ok(t, err)
		return c
	}
	one := y.launch(y.submit(order(lane("k", "queue"))).ID)
	y.launch(y.submit(order()).ID)
	g, err := a.NewGrant(ctx, one, attempts.Grant{
		ID: "grt_" + store.NewID(), Attempt: one.Attempt, Kind: "result", Name: "out", Digest: "sha256:aa", Size: 5, Hash: "h1", ExpiresAt: at().Add(time.Hour),
	})
	ok(t, err)
	ok(t, a.FinishGrant(ctx, g.ID, at()))
	c := count(at())
	equal(t, c.Drifted()+c.Overdue+c.Orphans, int64(0))
	c = count(at().Add(100 * time.Hour))
	equal(t, c.Overdue, int64(2))

	y.end(one, lifecycle.AttemptFailed, lifecycle.ExitCode)
	c = count(at())
	equal(t, c.Drifted(), int64(0))
	equal(t, [2]int64{c.Orphans, c.Bytes}, [2]int64{1, 5})
}

// loads: what came to a pool and what became of it are counted by class, in the window only, and of one tenant only when
// it asks.
func loads(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	y.submit(order(), order())
	h := y.launch(y.submit(order()).ID)
	y.end(h, lifecycle.AttemptFailed, lifecycle.ExitCode)
	got, err := b.Loads(ctx, "p", "", at().Add(-time.Hour))
	ok(t, err)
	equal(t, got.Runs["background"], int64(3))
	equal(t, len(got.Samples), 1)
	equal(t, got.Samples[0].Class, "background")
	equal(t, got.Samples[0].Slots, int64(1))
	equal(t, got.First.Equal(at()) && got.CutAt.IsZero(), true)
	for _, none := range []struct {
		pool, tenant string
		since        time.Time
	}{{"q", "", at()}, {"p", "t-other", at()}, {"p", "", at().Add(1000 * time.Hour)}} {
		got, err := b.Loads(ctx, none.pool, none.tenant, none.since)
		ok(t, err)
		equal(t, len(got.Runs)+len(got.Samples), 0)
		equal(t, got.First.IsZero(), true)
	}
}
