package sdk

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/roadstead/roadstead/api"
)

func (c *Client) poolURL(pool, rest string) string {
	return c.at(apiRoot+"pools/"+url.PathEscape(pool)+rest, nil)
}

// Pools lists the pools that the caller may use, and what they do now.
func (c *Client) Pools(ctx context.Context) iter.Seq2[api.Pool, error] {
	return pages[api.Pool](ctx, c, "pools", nil)
}

// Pool is one pool: its policy, its runners, what waits and what runs.
func (c *Client) Pool(ctx context.Context, name string) (out api.Pool, err error) {
	err = c.call(ctx, http.MethodGet, c.poolURL(name, ""), nil, &out)
	return out, err
}

// PutPool makes a pool (expected revision 0) or replaces its policy; at another revision the error's Code is
// revision_mismatch.
func (c *Client) PutPool(ctx context.Context, name string, change api.PoolChange) (out api.Pool, err error) {
	err = c.call(ctx, http.MethodPut, c.poolURL(name, ""), change, &out)
	return out, err
}

// DeletePool removes a pool without runners and without Runs that have not ended.
func (c *Client) DeletePool(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, c.poolURL(name, ""), nil, nil)
}

// DrainPool lets a pool start nothing new, or ends that.
func (c *Client) DrainPool(ctx context.Context, name string, drain api.PoolDrain) (out api.Pool, err error) {
	err = c.call(ctx, http.MethodPost, c.poolURL(name, "/drain"), drain, &out)
	return out, err
}

// PoolShares lists the tenants' weights and caps in a pool, as far as the caller may see them.
func (c *Client) PoolShares(ctx context.Context, pool string) iter.Seq2[api.PoolShare, error] {
	return pages[api.PoolShare](ctx, c, "pools/"+url.PathEscape(pool)+"/shares", nil)
}

// SetPoolShare sets a tenant's weight and cap in a pool.
func (c *Client) SetPoolShare(ctx context.Context, pool, tenant string, share api.ShareChange) (out api.PoolShare, err error) {
	err = c.call(ctx, http.MethodPut, c.poolURL(pool, "/shares/"+url.PathEscape(tenant)), share, &out)
	return out, err
}

// PoolFairness tells how fairly a pool serves its tenants, against the bound of its order.
func (c *Client) PoolFairness(ctx context.Context, pool string) iter.Seq2[api.TenantShare, error] {
	return pages[api.TenantShare](ctx, c, "pools/"+url.PathEscape(pool)+"/fairness", nil)
}

// NewRunnerToken lets one runner register with the pool, once; the token is only in this answer.
func (c *Client) NewRunnerToken(ctx context.Context, pool string) (out api.RunnerToken, err error) {
	err = c.call(ctx, http.MethodPost, c.poolURL(pool, "/runner-tokens"), nil, &out)
	return out, err
}

func (c *Client) runnerURL(id, rest string) string {
	return c.at(apiRoot+"runners/"+url.PathEscape(id)+rest, nil)
}

// Runners lists the runners of a pool, or with an empty one of every pool that the caller may change.
func (c *Client) Runners(ctx context.Context, pool string) iter.Seq2[api.Runner, error] {
	query := url.Values{}
	if pool != "" {
		query.Set("pool", pool)
	}
	return pages[api.Runner](ctx, c, "runners", query)
}

// Runner is one runner.
func (c *Client) Runner(ctx context.Context, id string) (out api.Runner, err error) {
	err = c.call(ctx, http.MethodGet, c.runnerURL(id, ""), nil, &out)
	return out, err
}

// DrainRunner gives a runner nothing new, or ends that.
func (c *Client) DrainRunner(ctx context.Context, id string, resume bool) (out api.Runner, err error) {
	err = c.call(ctx, http.MethodPost, c.runnerURL(id, "/drain"), api.RunnerDrain{Resume: resume}, &out)
	return out, err
}

// RevokeRunner ends a runner's key at once; what it runs is lost with its leases.
func (c *Client) RevokeRunner(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, c.runnerURL(id, ""), nil, nil)
}

// Budget is a tenant's money for Runs; revision 0: it has no budget and no bound.
func (c *Client) Budget(ctx context.Context, tenant string) (out api.Budget, err error) {
	err = c.call(ctx, http.MethodGet, c.at(apiRoot+"budgets/"+url.PathEscape(tenant), nil), nil, &out)
	return out, err
}

// SetBudget sets what a tenant may spend in all; at another revision than the expected one the error's Code is
// revision_mismatch (operators only).
func (c *Client) SetBudget(ctx context.Context, tenant string, change api.BudgetChange) (out api.Budget, err error) {
	err = c.call(ctx, http.MethodPut, c.at(apiRoot+"budgets/"+url.PathEscape(tenant), nil), change, &out)
	return out, err
}
