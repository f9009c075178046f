package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/roadstead/roadstead/internal/core/dispatch"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/fault"
)

// errStrange says that rows contradict what was decided here: the pool is built again from them.
var errStrange = errors.New("a Run is active that was not started here")

// ReasonDeposed is the reason of the refusal that an owner of an earlier epoch gets.
const ReasonDeposed = "deposed"

func deposed(err error) bool {
	f := fault.From(err)
	return f.Code == fault.Conflict && f.Reason == ReasonDeposed
}

// decide starts all Runs that may start, in batches of one transaction each.
func (s *Service) decide(ctx context.Context, p *pool) error {
	if p.state.Draining {
		return nil
	}
	for range 100 {
		p.mu.Lock()
		all := append([]dispatch.Decision(nil), p.machine.Decide(s.clock.Now(), s.cfg.Batch)...)
		batch, err := s.assignments(p, all)
		p.mu.Unlock()
		if err != nil || len(all) == 0 {
			return err
		}
		outcome, err := s.records.Assign(ctx, p.owner, batch)
		if err != nil {
			return fmt.Errorf("assigning: %w", err) // what became of it, the rows say
		}
		s.takeOutcome(p, all, batch, outcome)
	}
	s.Wake(p.name) // there is more, after the others had their turn
	return nil
}

// assignments turns decisions into rows. The caller holds the lock.
func (s *Service) assignments(p *pool, all []dispatch.Decision) ([]Assignment, error) {
	at := s.now()
	batch := make([]Assignment, len(all))
	for i, d := range all {
		t := p.runs[d.Run]
		text, err := json.Marshal(decision{Seq: d.Seq, Share: d.Share, Charge: d.Charge, Start: d.Start})
		if err != nil {
			return nil, err
		}
		// Not assigned before it could be, whatever the clock on the wall says now (R26).
		when := at
		if t.row.Run.NextEligible.After(at) {
			when = t.row.Run.NextEligible
		}
		batch[i] = Assignment{
			Run: d.Run, Tenant: d.Tenant, Fence: t.row.Run.Fence, Attempt: "att_" + s.cfg.NewID(), Runner: d.Runner, Resources: t.row.Spec.Resources,
			HoldMicro: t.row.Spec.HoldMicro, Lane: t.row.Spec.Lane, At: when, LeaseUntil: when.Add(s.cfg.Lease), Decision: string(text),
		}
	}
	return batch, nil
}

// takeOutcome keeps what was committed and takes back what was not, in the reverse order of the decisions.
func (s *Service) takeOutcome(p *pool, all []dispatch.Decision, batch []Assignment, outcome []Assigned) {
	var won, again []string
	runners := map[string]bool{}
	p.mu.Lock()
	now := s.clock.Now()
	for i := len(all) - 1; i >= 0; i-- {
		d, a := all[i], batch[i]
		s.meters.assigned(p.name, p.runs[d.Run], outcome[i], a.At)
		if outcome[i].Won {
			t := p.runs[d.Run]
			t.active, t.attempt, t.started = true, a.Attempt, now
			t.row.Run.State, t.row.Run.Fence = lifecycle.Active, a.Fence+1
			p.leases[a.Attempt] = &lease{run: d.Run, attempt: a.Attempt, runner: d.Runner, fence: a.Fence + 1, state: lifecycle.Assigned, since: now}
			won = append(won, d.Run)
			runners[d.Runner] = true
			continue
		}
		p.machine.Undo(now, d)
		switch outcome[i].Loss {
		case LossBudget:
			p.machine.Block(now, d.Run, dispatch.Budget)
			p.budget[d.Tenant] = append(p.budget[d.Tenant], d.Run)
		case LossLane:
			p.machine.SetNotBefore(now, d.Run, now.Add(s.cfg.Poll)) // the key is held in another pool
		case LossRunner:
			if r := p.runners[d.Runner]; r != nil {
				r.row.Revoked = true
				s.setRunner(p, r, now)
			}
		default:
			p.machine.SetNotBefore(now, d.Run, now.Add(s.cfg.Poll))
			again = append(again, d.Run)
		}
	}
	p.sinceChange = true
	p.mu.Unlock()
	s.runners.Wake(sortedKeys(runners)...)
	s.watch(won...)
	if len(again) > 0 {
		s.Wake(p.name, again...)
	}
}

// unparkMoney lets Runs try again that waited for money, when there is enough again.
func (s *Service) unparkMoney(ctx context.Context, p *pool) error {
	for _, tenant := range sortedKeys(p.budget) {
		left, limited, err := s.records.BudgetLeft(ctx, tenant)
		if err != nil {
			return err
		}
		p.mu.Lock()
		var rest []string
		for _, id := range p.budget[tenant] {
			t := p.runs[id]
			switch {
			case t == nil || t.active:
			case limited && t.row.Spec.HoldMicro > left:
				rest = append(rest, id)
			default:
				left -= t.row.Spec.HoldMicro
				p.machine.Unblock(s.clock.Now(), id, dispatch.Budget)
			}
		}
		if p.budget[tenant] = rest; len(rest) == 0 {
			delete(p.budget, tenant)
		}
		p.mu.Unlock()
	}
	return nil
}
