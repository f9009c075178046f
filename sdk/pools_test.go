package sdk

import (
	"io"
	"net/http"
	"testing"

	"github.com/roadstead/roadstead/api"
)

// Each call about pools, runners and budgets says the right thing to the right address.
func TestPoolCallsOnTheWire(t *testing.T) {
	var got string
	c := serveJSON(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.URL.RequestURI() + " " + string(body)
		_, _ = io.WriteString(w, "{}")
	})
	ctx := t.Context()
	for _, tt := range []struct {
		want string
		call func() error
	}{
		{"GET /api/v1/pools?limit=1000 ", func() error { _, err := all(c.Pools(ctx)); return err }},
		{"GET /api/v1/pools/p ", func() error { _, err := c.Pool(ctx, "p"); return err }},
		{`PUT /api/v1/pools/p {"expectedRevision":2,"policy":{"pids":9}}`, func() error {
			_, err := c.PutPool(ctx, "p", api.PoolChange{ExpectedRevision: 2, Policy: api.PoolPolicy{Pids: 9}})
			return err
		}},
		{"DELETE /api/v1/pools/p ", func() error { return c.DeletePool(ctx, "p") }},
		{`POST /api/v1/pools/p/drain {"deadlineSeconds":60}`, func() error { _, err := c.DrainPool(ctx, "p", api.PoolDrain{DeadlineSeconds: 60}); return err }},
		{"GET /api/v1/pools/p/shares?limit=1000 ", func() error { _, err := all(c.PoolShares(ctx, "p")); return err }},
		{`PUT /api/v1/pools/p/shares/t%2F1 {"weight":5}`, func() error { _, err := c.SetPoolShare(ctx, "p", "t/1", api.ShareChange{Weight: 5}); return err }},
		{"GET /api/v1/pools/p/fairness?limit=1000 ", func() error { _, err := all(c.PoolFairness(ctx, "p")); return err }},
		{"POST /api/v1/pools/p/runner-tokens ", func() error { _, err := c.NewRunnerToken(ctx, "p"); return err }},
		{"GET /api/v1/runners?limit=1000 ", func() error { _, err := all(c.Runners(ctx, "")); return err }},
		{"GET /api/v1/runners?limit=1000&pool=p ", func() error { _, err := all(c.Runners(ctx, "p")); return err }},
		{"GET /api/v1/runners/r ", func() error { _, err := c.Runner(ctx, "r"); return err }},
		{`POST /api/v1/runners/r/drain {"resume":true}`, func() error { _, err := c.DrainRunner(ctx, "r", true); return err }},
		{"DELETE /api/v1/runners/r ", func() error { return c.RevokeRunner(ctx, "r") }},
		{"GET /api/v1/budgets/t ", func() error { _, err := c.Budget(ctx, "t"); return err }},
		{`PUT /api/v1/budgets/t {"expectedRevision":1,"limitMicro":5}`, func() error {
			_, err := c.SetBudget(ctx, "t", api.BudgetChange{ExpectedRevision: 1, LimitMicro: 5})
			return err
		}},
	} {
		if err := tt.call(); err != nil || got != tt.want {
			t.Errorf("%v: sent %q, want %q", err, got, tt.want)
		}
	}
}

func all[T any](seq func(func(T, error) bool)) (items []T, err error) {
	for item, err := range seq {
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}
