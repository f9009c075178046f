package dispatcher

import (
	"context"
	"maps"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/dispatch"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/runs"
)

// lease is a living Attempt and when its renewals were last seen to grow, by this process's own clock: no other clock
// says that an Attempt is lost (R-6.3, R26).
type lease struct {
	run, attempt, runner string
	fence                int64
	state                lifecycle.Attempt
	beats                int64
	since                clock.Mono
	startedAt            time.Time
	cancelled            bool
}

// runner is a runner of the pool and when it was last seen to live.
type runner struct {
	row   RunnerRow
	since clock.Mono
	fresh bool // seen to live since this process knows it: nothing is given to one that was not
	given dispatch.RunnerState
}

func (s *Service) readRunners(ctx context.Context, p *pool) error {
	rows, err := s.records.RunnerRows(ctx, p.name)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now, seen := s.clock.Now(), map[string]bool{}
	for _, row := range rows {
		seen[row.ID] = true
		r := p.runners[row.ID]
		changed := r == nil
		if r == nil {
			// One that was seen lately by the clock on the wall may be given work: that is a guess, and no lease hangs on it.
			r = &runner{row: row, since: now, fresh: s.clock.Wall().Sub(row.SeenAt).Abs() < 3*s.cfg.Heartbeat}
			p.runners[row.ID] = r
		}
		if row.Beats != r.row.Beats {
			r.since, r.fresh = now, true
		}
		changed = changed || row.Capacity != r.row.Capacity || !maps.Equal(row.Labels, r.row.Labels)
		r.row = row
		if changed || s.stateOf(p, r, now) != r.given {
			s.setRunner(p, r, now)
		}
	}
	for _, id := range sortedKeys(p.runners) {
		if !seen[id] {
			p.machine.DropRunner(now, id)
			delete(p.runners, id)
		}
	}
	return nil
}

// stateOf says what a runner is good for: one that was silent for three heartbeats gets nothing new.
func (s *Service) stateOf(p *pool, r *runner, now clock.Mono) dispatch.RunnerState {
	switch {
	case r.row.Revoked, !r.fresh, now.Sub(r.since) > 3*s.cfg.Heartbeat:
		return dispatch.Lost
	case r.row.Draining, p.state.Draining:
		return dispatch.Draining
	}
	return dispatch.Active
}

// setRunner gives a runner to the machine as it is now. The caller holds the lock.
func (s *Service) setRunner(p *pool, r *runner, now clock.Mono) {
	r.given = s.stateOf(p, r, now)
	p.sinceChange = true
	err := p.machine.SetRunner(now, dispatch.Runner{
		ID: r.row.ID, Capacity: vector(r.row.Capacity), Labels: labels(r.row.Labels), State: r.given,
	})
	if err != nil {
		s.cfg.Log.Warn("a runner can't be used", "pool", p.name, "runner", r.row.ID, "error", err)
	}
}

// readBeats notes who renewed, and ends what was not renewed for lease and grace. After the rows could not be read
// the pool is built again, and every lease gets its whole time with it.
func (s *Service) readBeats(ctx context.Context, p *pool) error {
	beats, err := s.records.Beats(ctx, p.name)
	if err != nil {
		return err
	}
	var ended []string
	p.mu.Lock()
	now, seen := s.clock.Now(), map[string]bool{}
	for _, b := range beats {
		seen[b.Attempt] = true
		l := p.leases[b.Attempt]
		if l == nil {
			continue // of a decision that is being committed
		}
		if b.Beats != l.beats || b.State != l.state {
			l.beats, l.since = b.Beats, now
		}
		s.newState(p, l, b.State, now)
	}
	for _, id := range sortedKeys(p.leases) {
		if !seen[id] {
			ended = append(ended, p.leases[id].run)
		}
	}
	lost := s.lostLeases(p, now)
	p.mu.Unlock()
	if err := s.reconcile(ctx, p, ended); err != nil {
		return err
	}
	for _, l := range lost {
		if err := s.lose(ctx, p, l); err != nil {
			return err
		}
	}
	return nil
}

// newState takes up how far an Attempt has come. The caller holds the lock.
func (s *Service) newState(p *pool, l *lease, state lifecycle.Attempt, now clock.Mono) {
	t := p.runs[l.run]
	if t == nil || t.attempt != l.attempt {
		return
	}
	if l.state != state {
		p.sinceChange = true
		switch {
		case state == lifecycle.Running:
			t.started = now
			l.startedAt = s.now()
			p.machine.Started(now, l.run)
		case state == lifecycle.Finalizing && !t.released:
			// The slot is free when the process is gone; what is left is the server's work.
			t.released = true
			p.machine.Finish(now, l.run, now.Sub(t.started))
			p.learnt.add(KindOf(t.row), now.Sub(t.started))
		}
	}
	l.state = state
	if state == lifecycle.Running {
		p.machine.Renew(now, l.run, now.Sub(t.started))
	}
}

// lostLeases lists what is to be ended: not renewed for lease and grace, or cancelled before its runner took it over.
// The caller holds the lock.
func (s *Service) lostLeases(p *pool, now clock.Mono) (lost []*lease) {
	p.overdue = 0
	for _, id := range sortedKeys(p.leases) {
		l := p.leases[id]
		silent := now.Sub(l.since)
		switch {
		case l.state == lifecycle.Finalizing:
		case l.cancelled && l.state == lifecycle.Assigned, silent > s.cfg.Lease+s.cfg.Grace:
			lost = append(lost, l)
		}
		if l.state != lifecycle.Finalizing && silent > 2*(s.cfg.Lease+s.cfg.Grace) {
			p.overdue++
		}
	}
	return lost
}

// lose ends an Attempt nothing was heard of. Whoever has it can change nothing any more (R15, R21).
func (s *Service) lose(ctx context.Context, p *pool, l *lease) error {
	t := p.runs[l.run]
	if t == nil {
		return nil
	}
	e := runs.Ending{
		Attempt: l.attempt, Fence: l.fence, From: []lifecycle.Attempt{l.state}, State: lifecycle.AttemptInterrupted, Reason: lifecycle.LeaseLost, At: s.now(),
		Detail: "nothing was heard of its runner for " + (s.cfg.Lease + s.cfg.Grace).String(), CostMicro: s.costOf(t, l),
	}
	switch {
	case l.cancelled && l.state == lifecycle.Assigned:
		e.State, e.Reason, e.Detail = lifecycle.AttemptCancelled, lifecycle.CancelRequested, "before it was started"
	case l.state == lifecycle.Assigned:
		e.Reason, e.Detail = lifecycle.NotStarted, "its runner did not take it over"
	}
	ended, err := s.records.EndAttempt(ctx, e)
	if isConflict(err) {
		s.Wake(p.name, l.run)
		return nil
	}
	if err != nil {
		return err
	}
	s.cfg.Log.Info("an Attempt was ended", "pool", p.name, "attempt", l.attempt, "run", l.run, "reason", e.Reason)
	s.meters.ends.Count(e, ended)
	s.runners.Wake(l.runner)
	s.told(p, ended)
	return s.reconcile(ctx, p, []string{l.run})
}

// costOf is what an Attempt cost until now: its slots' time as this server saw it, at most what was held.
func (s *Service) costOf(t *tracked, l *lease) int64 {
	if l.startedAt.IsZero() {
		return 0
	}
	spec := t.row.Spec
	micro := int64(s.now().Sub(l.startedAt).Seconds() * float64(spec.PriceMicro*spec.Resources.Slots))
	return min(max(micro, 0), spec.HoldMicro)
}

// told passes on which Runs an ending touched.
func (s *Service) told(p *pool, ended runs.Ended) {
	touched := append(append([]string{ended.Run.ID}, ended.Freed...), ended.Dropped...)
	s.Wake(p.name, ended.Run.ID)
	s.Wake("", touched[1:]...)
	s.watch(touched...)
}

func isConflict(err error) bool { return fault.Is(err, fault.Conflict) }
