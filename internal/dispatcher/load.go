package dispatcher

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/dispatch"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
)

const (
	page          = 1000
	priorityStep  = 10 * time.Minute // what the wire says a step of priority is worth
	maxPriority   = 10
	trailing      = 30 * time.Second // how far back new rows are looked for: longer than the longest submit takes
	trailEvery    = 10 * time.Second // how often so far
	lately        = 3 * time.Second  // and how far each time
	marksPage     = 10_000           // marks of new rows that are read at once
	marksPages    = 20               // and how often in one look: a clock that was set back must not stop the pool
	unknownLength = 5 * time.Minute  // what a Run is believed to take of which nothing is known
)

// decision is what an Attempt's row keeps for the machine.
type decision struct {
	Seq    uint64         `json:"seq"`
	Share  dispatch.Share `json:"share"`
	Charge time.Duration  `json:"charge"`
	Start  dispatch.Tag   `json:"start"`
}

// load builds the pool from its rows: virtual times, tenants, runners, what runs, what waits.
func (s *Service) load(ctx context.Context, p *pool) error {
	began := s.clock.Now()
	m, err := dispatch.New(dispatch.Policy{PriorityStep: priorityStep, MaxPriority: maxPriority})
	if err != nil {
		return err
	}
	text, err := s.records.PoolClock(ctx, p.name)
	if err != nil {
		return err
	}
	var tags dispatch.Tags
	if text != "" {
		if err := json.Unmarshal([]byte(text), &tags); err != nil {
			return fmt.Errorf("reading the virtual times of pool %s: %w", p.name, err)
		}
	}
	m.SetTags(tags)
	recent, err := s.records.RecentDurations(ctx, p.name, 2000)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.reset()
	p.machine, p.learnt = m, learn(recent)
	p.newestAt = s.now()
	p.mu.Unlock()
	for _, part := range []func(context.Context, *pool) error{s.readShares, s.readRunners, s.readLive, s.readQueued} {
		if err := part(ctx, p); err != nil {
			return err
		}
	}
	p.mu.Lock()
	p.loaded, p.sinceChange = true, true
	p.mu.Unlock()
	s.meters.reload.WithLabelValues(p.name).Inc()
	s.cfg.Log.Info("pool loaded", "pool", p.name, "epoch", p.owner.Epoch, "queued", len(p.runs)-len(p.leases), "live", len(p.leases),
		"milliseconds", s.clock.Now().Sub(began).Milliseconds())
	return nil
}

func (s *Service) readLive(ctx context.Context, p *pool) error {
	rows, err := s.records.LiveRows(ctx, p.name)
	if err != nil {
		return err
	}
	decisions := make([]decision, len(rows))
	order := make([]int, len(rows))
	for i, l := range rows {
		order[i] = i
		if err := json.Unmarshal([]byte(l.Decision), &decisions[i]); err != nil {
			return fmt.Errorf("reading the decision of %s: %w", l.Attempt.ID, err)
		}
	}
	// The machine takes Attempts up in the order in which they were decided.
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(decisions[a].Seq, decisions[b].Seq) })
	p.mu.Lock()
	defer p.mu.Unlock()
	now := s.clock.Now()
	for _, i := range order {
		l, d := rows[i], decisions[i]
		t := s.track(p, l.Row)
		t.active, t.attempt, t.started = true, l.Attempt.ID, s.since(l.Attempt.AssignedAt, l.Attempt.StartedAt)
		p.leases[l.Attempt.ID] = &lease{
			run: l.Row.Run.ID, attempt: l.Attempt.ID, runner: l.Attempt.Runner, fence: l.Attempt.Fence, state: l.Attempt.State, beats: l.Attempt.Beats,
			since: now, startedAt: l.Attempt.StartedAt, cancelled: l.Row.Run.Cancel,
		}
		p.gates(t, func(g *gate, _ dispatch.Blocker) { g.force(l.Row.Run.ID) })
		if l.Attempt.State == lifecycle.Finalizing {
			t.released = true
			continue
		}
		err := p.machine.Resume(now, dispatch.Attempt{
			Run: s.machineRun(p, t), Runner: l.Attempt.Runner, Seq: d.Seq, Since: t.started, Share: d.Share, Charged: d.Charge, Start: d.Start,
		})
		if err != nil {
			return fmt.Errorf("resuming %s: %w", l.Attempt.ID, err)
		}
	}
	return nil
}

// since is when an Attempt began, on this process's clock.
func (s *Service) since(assigned, started time.Time) clock.Mono {
	if !started.IsZero() {
		return s.past(started)
	}
	return s.past(assigned)
}

// readQueued reads the next page while the machine takes up the one before.
func (s *Service) readQueued(ctx context.Context, p *pool) error {
	type answer struct {
		rows []RunRow
		err  error
	}
	read := func(after string) <-chan answer {
		out := make(chan answer, 1) // nobody waits for it after an error
		go func() {
			rows, err := s.records.QueuedRows(ctx, p.name, after, page)
			out <- answer{rows, err}
		}()
		return out
	}
	for next := read(""); next != nil; {
		got := <-next
		if got.err != nil {
			return got.err
		}
		if next = nil; len(got.rows) == page {
			next = read(got.rows[page-1].Run.ID)
		}
		if err := s.addAll(p, got.rows); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) addAll(p *pool, rows []RunRow) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, row := range rows {
		if err := s.add(p, row); err != nil {
			return err
		}
	}
	return nil
}

// track notes a Run. The caller holds the lock.
func (s *Service) track(p *pool, row RunRow) *tracked {
	t := &tracked{row: row}
	s.instants(t)
	if row.Spec.Lane != "" {
		t.lane = row.Run.Tenant + "\x00" + row.Spec.Lane
	}
	if row.Run.Array != "" && row.Spec.ArrayLimit > 0 {
		t.array = row.Run.Array
	}
	p.runs[row.Run.ID] = t
	return t
}

// instants reads the instants of a Run's row.
func (s *Service) instants(t *tracked) {
	t.due = s.notBefore(t.row)
	if t.eligible = s.past(t.row.Run.EligibleAt); t.due != 0 {
		t.eligible = t.due
	}
}

// first is when a Run that was tried before could first have started, as far as its row tells.
func (s *Service) first(row RunRow) clock.Mono {
	at := row.Run.CreatedAt
	if asked := row.Spec.Request.NotBefore; asked != nil && asked.After(at) {
		at = *asked
	}
	return s.past(at)
}

// gates calls f for each gate that the Run has to pass.
func (p *pool) gates(t *tracked, f func(g *gate, b dispatch.Blocker)) {
	if t.lane != "" {
		g := p.lanes[t.lane]
		if g == nil {
			g = newGate(1)
			p.lanes[t.lane] = g
		}
		f(g, dispatch.ConcurrencyKey)
	}
	if t.array != "" {
		g := p.arrays[t.array]
		if g == nil {
			g = newGate(t.row.Spec.ArrayLimit)
			p.arrays[t.array] = g
		}
		f(g, dispatch.ArrayLimit)
	}
}

// machineRun is the Run as the machine wants it.
func (s *Service) machineRun(p *pool, t *tracked) dispatch.Run {
	r, spec := t.row.Run, t.row.Spec
	timeout := time.Duration(spec.Timeout) * time.Second
	fast, expected, slow := p.learnt.of(KindOf(t.row))
	if spec.Expected > 0 {
		fast, expected, slow = 0, time.Duration(spec.Expected)*time.Second, 0
	} else if expected == 0 {
		expected = unknownLength
	}
	expected = max(min(expected, timeout), time.Millisecond)
	out := dispatch.Run{
		ID: r.ID, Tenant: r.Tenant, Need: vector(spec.Resources), Labels: labels(spec.Placement), Timeout: timeout, Expected: expected,
		Fast: min(fast, expected), Slow: min(max(slow, 0), timeout), Priority: min(max(r.Priority, -maxPriority), maxPriority),
	}
	if out.Slow != 0 && out.Slow < expected {
		out.Slow = expected
	}
	out.NotBefore = t.due
	switch {
	case r.Fence > 0: // tried before: it keeps its place, as it does in a machine that lives through it
		out.Eligible, out.EligibleAt = true, s.first(t.row)
	case t.due == 0 && r.WaitsFor == 0:
		out.Eligible, out.EligibleAt = true, t.eligible
	}
	if r.WaitsFor > 0 {
		out.Blockers |= dispatch.Dependency
	}
	return out
}

// add gives a queued Run to the machine. The caller holds the lock.
func (s *Service) add(p *pool, row RunRow) error {
	if known := p.runs[row.Run.ID]; known != nil && !known.released {
		return nil
	}
	t := s.track(p, row)
	run := s.machineRun(p, t)
	gated := t.lane != "" || t.array != ""
	switch {
	case gated && run.Blockers == 0 && run.NotBefore == 0:
		p.gates(t, func(g *gate, b dispatch.Blocker) {
			if !g.enter(run.ID) {
				run.Blockers |= b
			}
		})
	case gated && run.Blockers == 0:
		p.due = append(p.due, run.ID) // it enters when it is due, so that it holds nobody up before
	}
	if p.shares[run.Tenant].Weight == 0 {
		p.shares[run.Tenant] = ShareRow{Tenant: run.Tenant, Weight: 100}
		if err := p.machine.SetTenant(s.clock.Now(), dispatch.Tenant{ID: run.Tenant, Weight: 100}); err != nil {
			return err
		}
	}
	p.sinceChange = true
	if err := p.machine.Submit(s.clock.Now(), run); err != nil {
		return fmt.Errorf("queueing %s: %w", run.ID, err)
	}
	return nil
}
