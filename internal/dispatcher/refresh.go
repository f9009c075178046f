package dispatcher

import (
	"context"
	"slices"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/dispatch"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
)

// refresh looks at everything that may have changed without a call.
func (s *Service) refresh(ctx context.Context, p *pool) error {
	for _, part := range []func(context.Context, *pool) error{s.readShares, s.readRunners, s.readNew, s.readBeats, s.expire, s.unparkMoney} {
		if err := part(ctx, p); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.enterDue(p)
	return nil
}

func (s *Service) readShares(ctx context.Context, p *pool) error {
	rows, err := s.records.ShareRows(ctx, p.name)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, row := range rows {
		if p.shares[row.Tenant] == row {
			continue
		}
		t := dispatch.Tenant{ID: row.Tenant, Weight: int(row.Weight)}
		t.Cap[dispatch.Slots] = row.MaxSlots
		if err := p.machine.SetTenant(s.clock.Now(), t); err != nil {
			s.cfg.Log.Warn("a tenant's share can't work", "pool", p.name, "tenant", row.Tenant, "error", err)
			continue
		}
		p.shares[row.Tenant], p.sinceChange = row, true
	}
	return nil
}

// readNew finds Runs that other processes queued. It costs what came: a look goes over the marks of the last seconds, now
// and then of the whole window, and reads no row that is known as it is.
func (s *Service) readNew(ctx context.Context, p *pool) error {
	at, now, back := s.now(), s.clock.Now(), lately
	if p.trailedAt == 0 || now.Sub(p.trailedAt) >= trailEvery {
		p.trailedAt, back = now, trailing
	}
	since, after := p.newestAt.Add(-back), ""
	var changed []string
	for range marksPages {
		marks, err := s.records.NewRows(ctx, p.name, since, after, marksPage)
		if err != nil {
			return err
		}
		for _, m := range marks {
			if t := p.runs[m.Run]; t == nil || t.row.Run.Version != m.Version {
				changed = append(changed, m.Run)
			}
			since, after = time.UnixMilli(m.Inserted), m.Run
		}
		if len(marks) < marksPage {
			break
		}
	}
	p.newestAt = at
	return s.reconcile(ctx, p, changed)
}

// reconcile looks at the rows of Runs that changed.
func (s *Service) reconcile(ctx context.Context, p *pool, ids []string) error {
	for chunk := range slices.Chunk(ids, page) {
		rows, err := s.records.RunRows(ctx, chunk)
		if err != nil {
			return err
		}
		if err := s.takeUp(ctx, p, rows); err != nil {
			return err
		}
	}
	return nil
}

// takeUp brings the machine in line with rows.
func (s *Service) takeUp(ctx context.Context, p *pool, rows []RunRow) error {
	for _, row := range rows {
		if row.Run.Pool != p.name {
			continue
		}
		if err := s.takeUpOne(ctx, p, row); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) takeUpOne(ctx context.Context, p *pool, row RunRow) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, now := p.runs[row.Run.ID], s.clock.Now()
	p.sinceChange = true
	switch {
	case t == nil && row.Run.State == lifecycle.Queued:
		return s.add(p, row)
	case t == nil:
		return nil // ended before it was heard of, or another owner's to the end
	case row.Run.State == lifecycle.Queued && t.active:
		s.tryAgain(p, t, row, now)
	case row.Run.State == lifecycle.Queued:
		s.stillQueued(p, t, row, now)
	case row.Run.State == lifecycle.Active && t.active:
		t.row = row
		if l := p.leases[t.attempt]; l != nil && row.Run.Cancel {
			s.runners.Wake(l.runner)
			l.cancelled = true
		}
	case row.Run.State == lifecycle.Active:
		return errStrange // active by somebody else's decision: the rows have to be read again
	default:
		s.gone(p, t, now)
	}
	return nil
}

// tryAgain queues a Run again whose Attempt ended.
func (s *Service) tryAgain(p *pool, t *tracked, row RunRow, now clock.Mono) {
	delete(p.leases, t.attempt)
	if t.released {
		p.leaveGates(t, now)
		delete(p.runs, row.Run.ID)
		if err := s.add(p, row); err != nil {
			s.cfg.Log.Error("a Run could not be queued again", "run", row.Run.ID, "error", err)
		}
		return
	}
	t.row, t.active, t.attempt = row, false, ""
	s.instants(t)
	p.machine.Requeue(now, row.Run.ID, now.Sub(t.started), t.due)
}

// stillQueued takes up what changed of a Run that waits.
func (s *Service) stillQueued(p *pool, t *tracked, row RunRow, now clock.Mono) {
	freed := t.row.Run.WaitsFor > 0 && row.Run.WaitsFor == 0
	t.row = row
	if !freed {
		return
	}
	s.instants(t)
	if t.lane != "" || t.array != "" {
		p.gates(t, func(g *gate, b dispatch.Blocker) {
			if !g.enter(row.Run.ID) {
				p.machine.Block(now, row.Run.ID, b)
			}
		})
	}
	p.machine.SetNotBefore(now, row.Run.ID, t.due)
	p.machine.Unblock(now, row.Run.ID, dispatch.Dependency)
}

// gone forgets a Run that ended.
func (s *Service) gone(p *pool, t *tracked, now clock.Mono) {
	id := t.row.Run.ID
	switch {
	case t.active && !t.released:
		took := now.Sub(t.started)
		p.machine.Finish(now, id, took)
		p.learnt.add(KindOf(t.row), took)
	case !t.active:
		p.machine.Cancel(now, id)
	}
	delete(p.leases, t.attempt)
	delete(p.runs, id)
	p.leaveGates(t, now)
}

// leaveGates lets those through who waited behind the Run.
func (p *pool) leaveGates(t *tracked, now clock.Mono) {
	p.gates(t, func(g *gate, b dispatch.Blocker) {
		for _, next := range g.leave(t.row.Run.ID) {
			p.machine.Unblock(now, next, b)
		}
	})
	if g := p.lanes[t.lane]; g != nil && g.empty() {
		delete(p.lanes, t.lane)
	}
	if g := p.arrays[t.array]; g != nil && g.empty() {
		delete(p.arrays, t.array)
	}
}

// enterDue lets Runs with a gate and an instant of their own come to the gate when it is time. The caller holds the lock.
func (s *Service) enterDue(p *pool) {
	now, rest := s.clock.Now(), p.due[:0]
	for _, id := range p.due {
		t := p.runs[id]
		switch {
		case t == nil || t.active:
		case t.due > now:
			rest = append(rest, id)
		default:
			p.gates(t, func(g *gate, b dispatch.Blocker) {
				if !g.enter(id) {
					p.machine.Block(now, id, b)
				}
			})
		}
	}
	p.due = rest
}

// expire ends Runs that were eligible for longer than the pool allows, and looks for them every ten seconds.
func (s *Service) expire(ctx context.Context, p *pool) error {
	now := s.clock.Now()
	if p.expiredAt != 0 && now.Sub(p.expiredAt) < 10*time.Second {
		return nil
	}
	p.expiredAt = now
	limit := time.Duration(p.state.Policy.MaxAge) * time.Second
	var old []*tracked
	for _, id := range sortedKeys(p.runs) {
		t := p.runs[id]
		if !t.active && t.row.Run.WaitsFor == 0 && limit > 0 && now.Sub(t.eligible) > limit {
			old = append(old, t)
		}
	}
	for _, t := range old {
		r := t.row.Run
		ended, err := s.records.EndQueuedRun(ctx, r.ID, r.Version, lifecycle.Expired, lifecycle.TooOld,
			"waited longer than the "+limit.String()+" that pool "+p.name+" allows", s.now())
		if isConflict(err) {
			s.Wake(p.name, r.ID)
			continue
		}
		if err != nil {
			return err
		}
		s.told(p, ended)
	}
	return nil
}
