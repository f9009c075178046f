package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/identity"
)

// Pools keeps pools, their shares and their runners, and budgets. What the caller may not see is not_found.
type Pools interface {
	PoolKeepers
	PoolShares
	Runners
}

// PoolKeepers looks at pools and changes them.
type PoolKeepers interface {
	Get(ctx context.Context, p identity.Principal, name string) (api.Pool, error)
	List(ctx context.Context, p identity.Principal, after string, limit int) (page []api.Pool, next string, err error)
	// Set is refused with revision_mismatch when the pool is not at the expected revision; 0 makes one.
	Set(ctx context.Context, p identity.Principal, name string, c api.PoolChange) (api.Pool, error)
	Drain(ctx context.Context, p identity.Principal, name string, d api.PoolDrain) (api.Pool, error)
	// Delete is refused with conflict while the pool has Runs or runners.
	Delete(ctx context.Context, p identity.Principal, name string) error
}

// PoolShares says what tenants have of pools, and their money.
type PoolShares interface {
	Shares(ctx context.Context, p identity.Principal, pool, after string, limit int) (page []api.PoolShare, next string, err error)
	SetShare(ctx context.Context, p identity.Principal, share api.PoolShare) (api.PoolShare, error)
	Fairness(ctx context.Context, p identity.Principal, pool, after string, limit int) (page []api.TenantShare, next string, err error)
	Budget(ctx context.Context, p identity.Principal, tenant string) (api.Budget, error)
	// SetBudget is refused with revision_mismatch when the budget is not at the expected revision; 0 makes one.
	SetBudget(ctx context.Context, p identity.Principal, tenant string, c api.BudgetChange) (api.Budget, error)
}

// Runners keeps runners.
type Runners interface {
	// Register needs no caller: the token is the credential.
	Register(ctx context.Context, in api.RegisterRunner) (api.RegisteredRunner, error)
	NewToken(ctx context.Context, p identity.Principal, pool string) (api.RunnerToken, error)
	Runners(ctx context.Context, p identity.Principal, pool, after string, limit int) (page []api.Runner, next string, err error)
	Runner(ctx context.Context, p identity.Principal, id string) (api.Runner, error)
	DrainRunner(ctx context.Context, p identity.Principal, id string, resume bool) (api.Runner, error)
	RevokeRunner(ctx context.Context, p identity.Principal, id string) error
}

// OfPool names a pool. Huma reads embedded structs only when they are exported.
type OfPool struct {
	Pool string `path:"pool"`
}

type pageOfPool struct {
	OfPool
	PageQuery
}

type inPool[T any] struct {
	OfPool
	Body T
}

type ofRunner struct {
	Runner string `path:"runner"`
}

type ofTenant struct {
	Tenant string `path:"tenant" doc:"Tenant id."`
}

// as gives a page of things that are on the wire already.
func as[T any](page []T, next string, err error) (api.Page[T], error) {
	return paged(page, next, err, func(one T) T { return one })
}

func (o *operations) pools(a huma.API) {
	do(a, route{"GET", "/pools", "listPools", "The pools that the caller may use, and what they do now"},
		func(ctx context.Context, caller identity.Principal, in *PageQuery) (api.Page[api.Pool], error) {
			return as(o.Pools.List(ctx, caller, in.After, in.Limit))
		})
	do(a, route{"GET", "/pools/{pool}", "pool", "A pool: its policy, its runners, what waits and what runs"},
		func(ctx context.Context, caller identity.Principal, in *OfPool) (api.Pool, error) {
			return o.Pools.Get(ctx, caller, in.Pool)
		})
	do(a, route{"PUT", "/pools/{pool}", "putPool", "Make a pool, or replace its policy; for operators, and admins of the tenant whose own pool it is"},
		func(ctx context.Context, caller identity.Principal, in *inPool[api.PoolChange]) (api.Pool, error) {
			return o.Pools.Set(ctx, caller, in.Pool, in.Body)
		})
	act(a, route{"DELETE", "/pools/{pool}", "deletePool", "Remove a pool without runners and without Runs that have not ended"},
		func(ctx context.Context, caller identity.Principal, in *OfPool) error {
			return o.Pools.Delete(ctx, caller, in.Pool)
		})
	say(a, route{"POST", "/pools/{pool}/drain", "drainPool", "Start nothing new in a pool, and stop what still runs at a deadline; or end that"},
		func(ctx context.Context, caller identity.Principal, in *inPool[api.PoolDrain]) (api.Pool, error) {
			return o.Pools.Drain(ctx, caller, in.Pool, in.Body)
		})
	o.poolShares(a)
	o.poolRunners(a)
}

func (o *operations) poolShares(a huma.API) {
	do(a, route{"GET", "/pools/{pool}/shares", "poolShares", "The tenants' weights and caps in a pool; only the own one for those who may not change the pool"},
		func(ctx context.Context, caller identity.Principal, in *pageOfPool) (api.Page[api.PoolShare], error) {
			return as(o.Pools.Shares(ctx, caller, in.Pool, in.After, in.Limit))
		})
	do(a, route{"PUT", "/pools/{pool}/shares/{tenant}", "putPoolShare", "Set a tenant's weight and cap in a pool"},
		func(ctx context.Context, caller identity.Principal, in *struct {
			OfPool
			Tenant string `path:"tenant" doc:"Tenant id."`
			Body   api.ShareChange
		}) (api.PoolShare, error) {
			return o.Pools.SetShare(ctx, caller, api.PoolShare{Pool: in.Pool, Tenant: in.Tenant, Weight: in.Body.Weight, MaxSlots: in.Body.MaxSlots})
		})
	do(a, route{"GET", "/pools/{pool}/fairness", "poolFairness", "How fairly a pool serves its tenants, against the bound of its order"},
		func(ctx context.Context, caller identity.Principal, in *pageOfPool) (api.Page[api.TenantShare], error) {
			return as(o.Pools.Fairness(ctx, caller, in.Pool, in.After, in.Limit))
		})
	do(a, route{"GET", "/budgets/{tenant}", "budget", "What a tenant may spend on Runs, has spent and has held; revision 0: it has no budget and no bound"},
		func(ctx context.Context, caller identity.Principal, in *ofTenant) (api.Budget, error) {
			return o.Pools.Budget(ctx, caller, in.Tenant)
		})
	do(a, route{"PUT", "/budgets/{tenant}", "putBudget", "Set what a tenant may spend on Runs in all; for operators"},
		func(ctx context.Context, caller identity.Principal, in *struct {
			Tenant string `path:"tenant" doc:"Tenant id."`
			Body   api.BudgetChange
		}) (api.Budget, error) {
			return o.Pools.SetBudget(ctx, caller, in.Tenant, in.Body)
		})
}

func (o *operations) poolRunners(a huma.API) {
	do(a, route{"POST", "/runners/register", "registerRunner", "Make a runner of whoever has a token; needs no API key"},
		func(ctx context.Context, _ identity.Principal, in *input[api.RegisterRunner]) (api.RegisteredRunner, error) {
			return o.Pools.Register(ctx, in.Body)
		})
	do(a, route{"POST", "/pools/{pool}/runner-tokens", "newRunnerToken", "Let one runner register with the pool, once"},
		func(ctx context.Context, caller identity.Principal, in *OfPool) (api.RunnerToken, error) {
			return o.Pools.NewToken(ctx, caller, in.Pool)
		})
	do(a, route{"GET", "/runners", "listRunners", "The runners of the pools that the caller may change"},
		func(ctx context.Context, caller identity.Principal, in *struct {
			PageQuery
			Pool string `query:"pool" doc:"Only those of this pool."`
		}) (api.Page[api.Runner], error) {
			return as(o.Pools.Runners(ctx, caller, in.Pool, in.After, in.Limit))
		})
	do(a, route{"GET", "/runners/{runner}", "runner", "A runner: its capacity, what it runs, when it was last heard of"},
		func(ctx context.Context, caller identity.Principal, in *ofRunner) (api.Runner, error) {
			return o.Pools.Runner(ctx, caller, in.Runner)
		})
	say(a, route{"POST", "/runners/{runner}/drain", "drainRunner", "Give a runner nothing new, or end that"},
		func(ctx context.Context, caller identity.Principal, in *struct {
			Runner string `path:"runner"`
			Body   api.RunnerDrain
		}) (api.Runner, error) {
			return o.Pools.DrainRunner(ctx, caller, in.Runner, in.Body.Resume)
		})
	act(a, route{"DELETE", "/runners/{runner}", "revokeRunner", "End a runner's key at once; what it runs is lost with its leases"},
		func(ctx context.Context, caller identity.Principal, in *ofRunner) error {
			return o.Pools.RevokeRunner(ctx, caller, in.Runner)
		})
}
