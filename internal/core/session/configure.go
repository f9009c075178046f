package session

import (
	"slices"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/fair"
	"github.com/roadstead/roadstead/internal/fault"
)

// Configure changes the policy at run time (D-9.3). Active sessions keep their seats; the next decisions follow the new
// policy. The bound of all sessions sizes memory and cannot change.
func (m *Machine) Configure(now clock.Mono, p Policy) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if p.MaxSessions != m.policy.MaxSessions {
		return fault.Invalid("maxSessions", "is set when the server starts, to %d", m.policy.MaxSessions)
	}
	old := m.policy
	if p.AutoMax != 0 && old.AutoMax != 0 {
		p.Sessions = old.Sessions // found by trial, not set
	}
	m.policy = p
	switch {
	case p.Strategy != old.Strategy:
		m.reorder(now)
	case p.Weights != old.Weights:
		m.queue.Weigh(p.Weights)
	}
	if p.PerPrincipal != old.PerPrincipal || p.Strategy != old.Strategy {
		m.recount()
	}
	if p.Aging != old.Aging {
		m.rearm(now)
	}
	m.planned = false
	return nil
}

// Policy is the policy in force.
func (m *Machine) Policy() Policy { return m.policy }

// waitingHandles lists the waiting sessions by arrival.
func (m *Machine) waitingHandles() (all []uint32) {
	for h := uint32(1); h <= m.records.used; h++ {
		if m.records.at(h).state == waiting {
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b uint32) int {
		x, y := m.records.at(a).order, m.records.at(b).order
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return all
}

// reorder builds the order anew under another strategy, by arrival. Whoever had aged ages again on the wheel's next
// look.
func (m *Machine) reorder(now clock.Mono) {
	all := m.waitingHandles()
	m.queue = fair.New(fair.Discipline(m.policy.Strategy), m.policy.Weights)
	m.contenders, m.agedWait = [fair.Classes]int32{}, 0
	for _, h := range all {
		r := m.records.at(h)
		r.rank = uint8(r.class)
		r.clear(aged | marked | beyond)
		r.plan = 0
		m.enter(h, r, false)
		m.arm(now, h, r)
	}
	m.offers = m.offers[:0]
}

// recount finds the contenders anew.
func (m *Machine) recount() {
	m.contenders = [fair.Classes]int32{}
	for i := int(fair.Aged) + 1; i < len(m.principals.all); i++ {
		for c := range uint8(fair.Classes) {
			if m.queue.LaneLen(c, uint32(i)) > 0 && m.under(uint32(i)) {
				m.contenders[c]++
			}
		}
	}
}

// rearm lets the wheel look at everybody in time for a shorter aging.
func (m *Machine) rearm(now clock.Mono) {
	for h := uint32(1); h <= m.records.used; h++ {
		if r := m.records.at(h); r.state == waiting {
			m.arm(now, h, r)
		}
	}
}

// Why says what a waiting session waits for (D-11.1).
type Why struct {
	Ahead   [fair.Classes]int // sessions before it, by the class they wait in
	Seats   int               // seats in all
	Busy    int               // seats taken
	Reserve int               // seats its class may not take
	Own     int               // seats of its principal
	Share   int               // seats of its principal while others wait
	Closed  bool              // its class's window is closed
	Opens   clock.Mono        // when that opens; meaningful when Closed and not 0
	Yielded bool              // it gave its seat to a session that still waits
	Aged    time.Duration     // time waited that counts for aging
}

// Why explains the wait of a session; ok is false when the key does not wait.
func (m *Machine) Why(now clock.Mono, k Key) (w Why, ok bool) {
	h := m.index.find(&m.records, &k)
	if h == 0 || m.records.at(h).state != waiting {
		return Why{}, false
	}
	r := m.records.at(h)
	w = Why{
		Seats: m.policy.Sessions, Busy: m.active, Own: int(m.principals.all[r.principal].active), Share: m.policy.PerPrincipal,
		Closed: !m.admits(r.class), Yielded: m.indebted(h),
		Aged: now.Sub(r.arrival()) - m.windows[r.class].closedFor(r.arrival(), now),
	}
	w.Ahead, _ = m.queue.Ahead(m.item(h, r))
	if r.class != 0 {
		w.Reserve = m.policy.Reserve
	}
	if changes := m.windows[r.class].changes; w.Closed && len(changes) > 0 {
		w.Opens = changes[0]
	}
	return w, true
}
