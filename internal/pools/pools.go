package pools

import (
	"context"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/dispatcher"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/runs"
)

// DefaultPool is where Runs go that name no pool.
const DefaultPool = "default"

// Config is what the service is told.
type Config struct {
	NewID     func() string
	TokenLife time.Duration // default an hour
	Lease     time.Duration // what runners are told of leases
	Heartbeat time.Duration
	Live      Live // nil: what waits is not known
}

// Live tells what pools do now. What no dispatcher of this process decides for is absent.
type Live interface {
	Figures() []dispatcher.Figures
	Fairness(pool string) []api.TenantShare
}

// Service is the one door to pools, shares, budgets and runners.
type Service struct {
	cfg   Config
	store Store
	clock clock.Clock
}

// New makes the service.
func New(cfg Config, store Store, clk clock.Clock) (*Service, error) {
	if cfg.TokenLife == 0 {
		cfg.TokenLife = time.Hour
	}
	switch {
	case cfg.NewID == nil:
		return nil, fault.Invalid("NewID", "must be set")
	case cfg.Lease <= 0 || cfg.Heartbeat <= 0:
		return nil, fault.Invalid("Lease", "lease and heartbeat must be set")
	}
	return &Service{cfg: cfg, store: store, clock: clk}, nil
}

func (s *Service) now() time.Time { return s.clock.Wall().UTC().Truncate(time.Millisecond) }

func (s *Service) entry(p identity.Principal, tenant, action, target, detail string) audit.Entry {
	return audit.Entry{ID: s.cfg.NewID(), At: s.now(), Tenant: tenant, Actor: p.ID, Action: action, Target: target, Detail: detail}
}

// EnsureDefault makes the pool that Runs go to that name none, unless it is there.
func (s *Service) EnsureDefault(ctx context.Context) error {
	p := Pool{Name: DefaultPool, Revision: 1, CreatedAt: s.now()}
	err := s.store.CreatePool(ctx, p, s.entry(identity.Principal{}, "", "pool.created", DefaultPool, "at the first start"))
	if fault.Is(err, fault.AlreadyExists) {
		return nil
	}
	return err
}

// ForSubmit is runs.Pools'.
func (s *Service) ForSubmit(ctx context.Context, p identity.Principal, name string) (runs.Pool, error) {
	pool, err := s.visible(ctx, p, name)
	return runs.Pool{Name: pool.Name, Policy: Fill(pool.Policy)}, err
}

// visible finds a pool that the caller may use: everybody's, or his tenant's own.
func (s *Service) visible(ctx context.Context, p identity.Principal, name string) (Pool, error) {
	pool, err := s.store.Pool(ctx, name)
	if err == nil && !pool.visibleTo(p) {
		return Pool{}, fault.Missing("pool " + name)
	}
	return pool, err
}

func (pool Pool) visibleTo(p identity.Principal) bool {
	return p.Operator || p.Kind != identity.Link && (pool.Tenant == "" || pool.Tenant == p.Tenant)
}

// changeableBy: an operator may change any, a tenant's admin his tenant's own (D-11.4).
func (pool Pool) changeableBy(p identity.Principal) bool {
	return p.Operator || pool.Tenant != "" && p.Administers(pool.Tenant)
}

// MoneyLeft is runs.Pools': what a budget allows in all, less what is spent.
func (s *Service) MoneyLeft(ctx context.Context, tenant string) (micro int64, limited bool, err error) {
	b, err := s.store.Budget(ctx, tenant)
	return b.Limit - b.Spent, b.Revision > 0, err
}
