package pools

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// changeable finds a pool that the caller may change: an operator any, a tenant's admin his tenant's own.
func (s *Service) changeable(ctx context.Context, p identity.Principal, name string) (Pool, error) {
	pool, err := s.visible(ctx, p, name)
	if err != nil {
		return Pool{}, err
	}
	if p.Operator || pool.Tenant != "" && p.Administers(pool.Tenant) {
		return pool, nil
	}
	return Pool{}, fault.New(fault.Forbidden, "only a system operator, or the admin of the tenant whose own pool it is, may change pool %s", name)
}

// Set makes a pool (expected revision 0) or replaces its policy.
func (s *Service) Set(ctx context.Context, p identity.Principal, name string, c api.PoolChange) (Pool, error) {
	if err := Check(c.Policy); err != nil {
		return Pool{}, err
	}
	text, err := json.Marshal(c.Policy)
	if err != nil {
		return Pool{}, fmt.Errorf("writing a policy: %w", err)
	}
	if c.ExpectedRevision == 0 {
		if !p.Operator && (c.Tenant == "" || !p.Administers(c.Tenant)) {
			return Pool{}, fault.New(fault.Forbidden, "only a system operator may make a pool; a tenant's admin may make one of his tenant's own (tenant: %s)", p.Tenant)
		}
		pool := Pool{Name: name, Tenant: c.Tenant, Policy: c.Policy, Revision: 1, CreatedAt: s.now()}
		return pool, s.store.CreatePool(ctx, pool, s.entry(p, p.Tenant, "pool.created", name, string(text)))
	}
	pool, err := s.changeable(ctx, p, name)
	if err != nil {
		return Pool{}, err
	}
	pool.Policy, pool.Revision = c.Policy, c.ExpectedRevision+1
	return pool, s.store.ChangePool(ctx, pool, s.entry(p, p.Tenant, "pool.changed", name, string(text)))
}

// Drain stops new work in the pool: what runs may finish until the deadline; 0: without one. Resume ends it.
func (s *Service) Drain(ctx context.Context, p identity.Principal, name string, d api.PoolDrain) (Pool, error) {
	pool, err := s.changeable(ctx, p, name)
	if err != nil {
		return Pool{}, err
	}
	pool.Draining, pool.DrainBy = !d.Resume, time.Time{}
	if pool.Draining && d.DeadlineSeconds > 0 {
		pool.DrainBy = s.now().Add(time.Duration(d.DeadlineSeconds) * time.Second)
	}
	pool.Revision++
	action := "pool.draining"
	if d.Resume {
		action = "pool.resumed"
	}
	return pool, s.store.ChangePool(ctx, pool, s.entry(p, p.Tenant, action, name, ""))
}
