package pools

import (
	"context"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/audit"
)

// Store is what must not be forgotten of pools. Each method is one transaction, safe from many goroutines and processes
// at once. What isn't there is fault not_found, a name that is taken is already_exists, a revision that isn't the expected
// one is revision_mismatch.
type Store interface {
	PoolStore
	ShareStore
	RunnerStore
}

// Pool is a pool as stored. Its policy is as it was set; Fill gives it whole.
type Pool struct {
	Name      string
	Tenant    string // owner of an own pool; empty: everybody's
	Policy    api.PoolPolicy
	Draining  bool
	DrainBy   time.Time
	Revision  int64
	CreatedAt time.Time
}

// PoolStore keeps pools.
type PoolStore interface {
	Pool(ctx context.Context, name string) (Pool, error)
	ListPools(ctx context.Context) ([]Pool, error)
	// CreatePool makes a pool; an owner that isn't there is fault not_found, and so below.
	CreatePool(ctx context.Context, p Pool, e audit.Entry) error
	// ChangePool replaces everything but name, tenant and creation, if the stored revision is the one before p's.
	ChangePool(ctx context.Context, p Pool, e audit.Entry) error
	// DeletePool deletes a pool without Runs that have not ended and without runners; otherwise fault conflict.
	DeletePool(ctx context.Context, name string, e audit.Entry) error
}

// Budget is a tenant's money, in millionths.
type Budget struct {
	Tenant             string
	Limit, Spent, Held int64
	Revision           int64 // 0: there is none
}

// ShareStore keeps what tenants have of pools.
type ShareStore interface {
	Shares(ctx context.Context, pool string) ([]api.PoolShare, error)
	SetShare(ctx context.Context, s api.PoolShare, e audit.Entry) error
	Budget(ctx context.Context, tenant string) (Budget, error)
	// SetBudget sets the limit, if the stored revision is the one before b's.
	SetBudget(ctx context.Context, b Budget, e audit.Entry) error
}

// Runner is a runner as stored.
type Runner struct {
	ID        string
	Pool      string
	Name      string
	Hash      string // of its key
	Capacity  api.Resources
	Labels    map[string]string
	Version   string
	Protocol  int
	Draining  bool
	RevokedAt time.Time
	CreatedAt time.Time
	SeenAt    time.Time
	Beats     int64
	Attempts  int           // living ones
	Used      api.Resources // by them
}

// Token lets one runner register.
type Token struct {
	ID        string
	Pool      string
	Hash      string
	ExpiresAt time.Time
}

// RunnerStore keeps runners.
type RunnerStore interface {
	CreateToken(ctx context.Context, t Token, e audit.Entry) error
	// RegisterRunner uses the token up and makes the runner, in its pool, in one transaction. A token that is unknown, used or
	// expired is fault unauthorized.
	RegisterRunner(ctx context.Context, tokenHash string, r Runner, now time.Time, e audit.Entry) (Runner, error)
	Runner(ctx context.Context, id string) (Runner, error)
	// Runners lists a pool's, or all.
	Runners(ctx context.Context, pool string) ([]Runner, error)
	DrainRunner(ctx context.Context, id string, drain bool, e audit.Entry) error
	RevokeRunner(ctx context.Context, id string, at time.Time, e audit.Entry) error
}
