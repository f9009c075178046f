package pools

import (
	"context"
	"fmt"
	"slices"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// Bounds of a share and of a budget.
const (
	maxWeight = 10_000
	maxSlots  = 1_000_000
	maxBudget = 1 << 60
)

// Shares lists the tenants' shares of a pool by tenant: all of them for who may change the pool, the own one for others.
func (s *Service) Shares(ctx context.Context, p identity.Principal, pool, after string, limit int) (page []api.PoolShare, next string, err error) {
	of, err := s.visible(ctx, p, pool)
	if err != nil {
		return nil, "", err
	}
	all, err := s.store.Shares(ctx, pool)
	all = slices.DeleteFunc(all, func(one api.PoolShare) bool { return one.Tenant != p.Tenant && !of.changeableBy(p) })
	page, next = cut(all, after, limit, func(one api.PoolShare) string { return one.Tenant })
	return page, next, err
}

// SetShare sets a tenant's weight in a pool, and how many slots it may hold at once; 0: no cap.
func (s *Service) SetShare(ctx context.Context, p identity.Principal, share api.PoolShare) (api.PoolShare, error) {
	switch {
	case share.Weight < 1 || share.Weight > maxWeight:
		return api.PoolShare{}, fault.Invalid("weight", "must be from 1 to %d, not %d", maxWeight, share.Weight)
	case share.MaxSlots < 0 || share.MaxSlots > maxSlots:
		return api.PoolShare{}, fault.Invalid("maxSlots", "must be from 0 to %d, not %d", maxSlots, share.MaxSlots)
	}
	if _, err := s.changeable(ctx, p, share.Pool); err != nil {
		return api.PoolShare{}, err
	}
	detail := fmt.Sprintf("tenant %s: weight %d, at most %d slots", share.Tenant, share.Weight, share.MaxSlots)
	return share, s.store.SetShare(ctx, share, s.entry(p, share.Tenant, "pool.share_set", share.Pool, detail))
}

// Fairness tells how fairly a pool served its tenants, against the bound of the order. As of shares,
// others than those who may change the pool see their own tenant's.
func (s *Service) Fairness(ctx context.Context, p identity.Principal, pool, after string, limit int) (page []api.TenantShare, next string, err error) {
	of, err := s.visible(ctx, p, pool)
	if err != nil || s.cfg.Live == nil {
		return nil, "", err
	}
	all := slices.DeleteFunc(s.cfg.Live.Fairness(pool), func(one api.TenantShare) bool { return one.Tenant != p.Tenant && !of.changeableBy(p) })
	page, next = cut(all, after, limit, func(one api.TenantShare) string { return one.Tenant })
	return page, next, nil
}

// Budget shows a tenant's money to the tenant and to operators. Revision 0: it has no budget, and may spend what it likes.
func (s *Service) Budget(ctx context.Context, p identity.Principal, tenant string) (api.Budget, error) {
	if !p.Belongs(tenant) {
		return api.Budget{}, fault.Missing("tenant " + tenant)
	}
	b, err := s.store.Budget(ctx, tenant)
	return wireBudget(b), err
}

func wireBudget(b Budget) api.Budget {
	return api.Budget{Tenant: b.Tenant, LimitMicro: b.Limit, SpentMicro: b.Spent, HeldMicro: b.Held, Revision: b.Revision}
}

// SetBudget sets what a tenant may spend in all, if the budget still is at the expected revision; 0 makes one. Only
// operators give money.
func (s *Service) SetBudget(ctx context.Context, p identity.Principal, tenant string, c api.BudgetChange) (api.Budget, error) {
	switch {
	case !p.Belongs(tenant):
		return api.Budget{}, fault.Missing("tenant " + tenant)
	case !p.Operator:
		return api.Budget{}, fault.New(fault.Forbidden, "only a system operator may set a budget")
	case c.LimitMicro < 0 || c.LimitMicro > maxBudget:
		return api.Budget{}, fault.Invalid("limitMicro", "must be from 0 to %d, not %d", int64(maxBudget), c.LimitMicro)
	case c.ExpectedRevision < 0:
		return api.Budget{}, fault.Invalid("expectedRevision", "must not be negative")
	}
	b := Budget{Tenant: tenant, Limit: c.LimitMicro, Revision: c.ExpectedRevision + 1}
	if err := s.store.SetBudget(ctx, b, s.entry(p, tenant, "budget.set", tenant, fmt.Sprintf("limit %d millionths", c.LimitMicro))); err != nil {
		return api.Budget{}, err
	}
	return s.Budget(ctx, p, tenant)
}
