package pools

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

const maxDrain = 7 * 24 * 3600 // seconds

// changeable finds a pool that the caller may change: an operator any, a tenant's admin his tenant's own.
func (s *Service) changeable(ctx context.Context, p identity.Principal, name string) (Pool, error) {
	pool, err := s.visible(ctx, p, name)
	if err != nil {
		return Pool{}, err
	}
	if pool.changeableBy(p) {
		return pool, nil
	}
	return Pool{}, fault.New(fault.Forbidden, "only a system operator, or the admin of the tenant whose own pool it is, may change pool %s", name)
}

var poolName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// Set makes a pool (expected revision 0) or replaces its policy.
func (s *Service) Set(ctx context.Context, p identity.Principal, name string, c api.PoolChange) (api.Pool, error) {
	pool, err := s.set(ctx, p, name, c)
	if err != nil {
		return api.Pool{}, err
	}
	return s.Get(ctx, p, pool.Name)
}

func (s *Service) set(ctx context.Context, p identity.Principal, name string, c api.PoolChange) (Pool, error) {
	switch {
	case !poolName.MatchString(name):
		return Pool{}, fault.Invalid("pool", "must be lower case letters, digits and -, not begin with -, and have at most 63 of them")
	case c.ExpectedRevision < 0:
		return Pool{}, fault.Invalid("expectedRevision", "must not be negative")
	}
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
	if c.Tenant != "" && c.Tenant != pool.Tenant {
		return Pool{}, fault.Invalid("tenant", "a pool keeps its owner; make another pool")
	}
	pool.Policy, pool.Revision = c.Policy, c.ExpectedRevision+1
	return pool, s.store.ChangePool(ctx, pool, s.entry(p, p.Tenant, "pool.changed", name, string(text)))
}

// Drain stops new work in the pool: what runs may finish until the deadline; 0: without one. Resume ends it.
func (s *Service) Drain(ctx context.Context, p identity.Principal, name string, d api.PoolDrain) (api.Pool, error) {
	if d.DeadlineSeconds < 0 || d.DeadlineSeconds > maxDrain {
		return api.Pool{}, fault.Invalid("deadlineSeconds", "must be from 0 to %d, not %d", maxDrain, d.DeadlineSeconds)
	}
	pool, err := s.changeable(ctx, p, name)
	if err != nil {
		return api.Pool{}, err
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
	detail := ""
	if !pool.DrainBy.IsZero() {
		detail = "until " + pool.DrainBy.Format(time.RFC3339)
	}
	if err := s.store.ChangePool(ctx, pool, s.entry(p, p.Tenant, action, name, detail)); err != nil {
		return api.Pool{}, err
	}
	return s.Get(ctx, p, name)
}

// Delete removes a pool that has neither Runs that have not ended nor runners. The default pool stays.
func (s *Service) Delete(ctx context.Context, p identity.Principal, name string) error {
	if _, err := s.changeable(ctx, p, name); err != nil {
		return err
	}
	if name == DefaultPool {
		return fault.New(fault.Conflict, "pool %s stays: Runs go there that name no pool", name)
	}
	return s.store.DeletePool(ctx, name, s.entry(p, p.Tenant, "pool.deleted", name, ""))
}
