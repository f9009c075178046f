package pools

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// Get shows one pool with what it does now.
func (s *Service) Get(ctx context.Context, p identity.Principal, name string) (api.Pool, error) {
	pool, err := s.visible(ctx, p, name)
	if err != nil {
		return api.Pool{}, err
	}
	runners, err := s.store.Runners(ctx, name)
	return s.wire(pool, runners), err
}

// List lists the pools that the caller may use, by name past after.
func (s *Service) List(ctx context.Context, p identity.Principal, after string, limit int) (page []api.Pool, next string, err error) {
	all, err := s.store.ListPools(ctx)
	if err != nil {
		return nil, "", err
	}
	all = slices.DeleteFunc(all, func(pool Pool) bool { return !pool.visibleTo(p) })
	all, next = cut(all, after, limit, func(pool Pool) string { return pool.Name })
	runners, err := s.store.Runners(ctx, "")
	if err != nil {
		return nil, "", err
	}
	for _, pool := range all {
		page = append(page, s.wire(pool, runners))
	}
	return page, next, nil
}

// cut gives the page of a listing past after; next is empty at the end.
func cut[T any](all []T, after string, limit int, key func(T) string) (page []T, next string) {
	slices.SortFunc(all, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	from := len(all)
	if i := slices.IndexFunc(all, func(one T) bool { return key(one) > after }); i >= 0 {
		from = i
	}
	all = all[from:]
	if limit = identity.PageSize(limit); len(all) <= limit {
		return all, ""
	}
	return all[:limit], key(all[limit-1])
}

// wire is a pool as clients see it: what runs by its runners, what waits by the dispatcher that decides.
func (s *Service) wire(pool Pool, runners []Runner) api.Pool {
	out := api.Pool{
		Name: pool.Name, Tenant: pool.Tenant, Policy: pool.Policy, Effective: Fill(pool.Policy), Revision: pool.Revision, CreatedAt: pool.CreatedAt,
		DrainBy: optional(pool.DrainBy),
	}
	for _, r := range runners {
		if r.Pool != pool.Name {
			continue
		}
		out.Active += r.Attempts
		out.Used = plus(out.Used, r.Used)
		if state := s.stateOf(r); state == "online" || state == "draining" {
			out.Runners++
			out.Capacity = plus(out.Capacity, r.Capacity)
		}
	}
	if s.cfg.Live != nil {
		for _, f := range s.cfg.Live.Figures() {
			if f.Pool == pool.Name {
				out.Queued, out.OldestAge = f.Counts.Queued, f.OldestAge.Seconds()
			}
		}
	}
	switch {
	case pool.Draining && out.Active == 0:
		out.State = "drained"
	case pool.Draining:
		out.State = "draining"
	case out.Runners == 0:
		out.State = "offline"
	default:
		out.State = "open"
	}
	return out
}

func plus(a, b api.Resources) api.Resources {
	return api.Resources{
		Slots: a.Slots + b.Slots, MilliCPU: a.MilliCPU + b.MilliCPU, MemoryBytes: a.MemoryBytes + b.MemoryBytes, DiskBytes: a.DiskBytes + b.DiskBytes,
	}
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// stateOf is a runner's state in a word. One that was made just now may not have been heard of yet.
func (s *Service) stateOf(r Runner) string {
	seen := r.SeenAt
	if seen.Before(r.CreatedAt) {
		seen = r.CreatedAt
	}
	switch {
	case !r.RevokedAt.IsZero():
		return "revoked"
	case s.now().Sub(seen) > s.cfg.Lease:
		return "lost"
	case r.Draining:
		return "draining"
	}
	return "online"
}

func (s *Service) wireRunner(r Runner) api.Runner {
	return api.Runner{
		ID: r.ID, Pool: r.Pool, Name: r.Name, State: s.stateOf(r), Capacity: r.Capacity, Used: r.Used, Labels: r.Labels, Version: r.Version,
		Attempts: r.Attempts, CreatedAt: r.CreatedAt, SeenAt: optional(r.SeenAt),
	}
}

// Runners lists the runners of one pool, or of every pool that the caller may change, by their making.
func (s *Service) Runners(ctx context.Context, p identity.Principal, pool, after string, limit int) (page []api.Runner, next string, err error) {
	var all []Pool
	if pool != "" {
		one, err := s.changeable(ctx, p, pool)
		if err != nil {
			return nil, "", err
		}
		all = []Pool{one}
	} else if all, err = s.store.ListPools(ctx); err != nil {
		return nil, "", err
	}
	mine := map[string]bool{}
	for _, one := range all {
		mine[one.Name] = one.changeableBy(p)
	}
	runners, err := s.store.Runners(ctx, pool)
	if err != nil {
		return nil, "", err
	}
	runners = slices.DeleteFunc(runners, func(r Runner) bool { return !mine[r.Pool] })
	runners, next = cut(runners, after, limit, func(r Runner) string { return r.ID })
	for _, r := range runners {
		page = append(page, s.wireRunner(r))
	}
	return page, next, nil
}

// Runner shows one runner.
func (s *Service) Runner(ctx context.Context, p identity.Principal, id string) (api.Runner, error) {
	r, err := s.ownRunner(ctx, p, id)
	if err != nil {
		return api.Runner{}, err
	}
	all, err := s.store.Runners(ctx, r.Pool) // with what its Attempts use
	for _, one := range all {
		if one.ID == id {
			r = one
		}
	}
	return s.wireRunner(r), err
}

// ownRunner finds a runner of a pool that the caller may change; any other is not found.
func (s *Service) ownRunner(ctx context.Context, p identity.Principal, id string) (Runner, error) {
	r, err := s.store.Runner(ctx, id)
	if err != nil {
		return Runner{}, err
	}
	pool, err := s.store.Pool(ctx, r.Pool)
	if fault.Is(err, fault.NotFound) && p.Operator {
		return r, nil // the pool was deleted, its revoked runners are still told of
	}
	if fault.Is(err, fault.NotFound) || err == nil && !pool.changeableBy(p) {
		return Runner{}, fault.Missing("runner " + id)
	}
	return r, err
}

// DrainRunner lets a runner take nothing new, or again; what it runs may finish.
func (s *Service) DrainRunner(ctx context.Context, p identity.Principal, id string, resume bool) (api.Runner, error) {
	if _, err := s.ownRunner(ctx, p, id); err != nil {
		return api.Runner{}, err
	}
	action := "runner.draining"
	if resume {
		action = "runner.resumed"
	}
	if err := s.store.DrainRunner(ctx, id, !resume, s.entry(p, p.Tenant, action, id, "")); err != nil {
		return api.Runner{}, err
	}
	return s.Runner(ctx, p, id)
}

// RevokeRunner ends a runner's key at once. What it runs is lost when its leases are.
func (s *Service) RevokeRunner(ctx context.Context, p identity.Principal, id string) error {
	if _, err := s.ownRunner(ctx, p, id); err != nil {
		return err
	}
	return s.store.RevokeRunner(ctx, id, s.now(), s.entry(p, p.Tenant, "runner.revoked", id, ""))
}
