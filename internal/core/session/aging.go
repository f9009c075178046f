package session

import (
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
)

// agedMost is how many sessions may age in one tick: a burst that arrived together ages over minutes instead of
// stopping everybody for one long tick (D-3.1).
const agedMost = 2000

// risesAt is when a waiting session rises next: at every full aging time it waited while its window was open. ok is
// false when it can rise no more, or not while its class is closed.
func (m *Machine) risesAt(now clock.Mono, r *record) (at clock.Mono, ok bool) {
	if m.policy.Aging == 0 || !m.canRise(r) || !m.admits(r.class) {
		return 0, false
	}
	steps := time.Duration(1)
	if m.policy.Strategy == Ordered && r.has(aged) {
		steps += time.Duration(uint8(r.class) - r.rank)
	}
	waited := now.Sub(r.arrival()) - m.windows[r.class].closedFor(r.arrival(), now)
	return now.Add(steps*m.policy.Aging - waited), true
}

// canRise reports whether a class is left above the session that aging may reach: never above release (D-3.1). Under
// smallest first the aged go before all of their class, once (D-3.2).
func (m *Machine) canRise(r *record) bool {
	if m.policy.Strategy == SmallestFirst {
		return !r.has(aged)
	}
	return r.rank > uint8(class.Release)
}

// age raises a waiting session whose time has come, within the tick's budget.
func (m *Machine) age(now clock.Mono, h uint32, r *record) {
	at, ok := m.risesAt(now, r)
	if !ok || at > now || m.agedNow >= agedMost {
		return
	}
	m.agedNow++
	it := m.item(h, r)
	m.queue.Remove(it)
	m.lane(it, -1)
	r.set(aged)
	if m.policy.Strategy == Ordered {
		r.rank--
	}
	m.enter(h, r, false)
}

// arm makes sure that the wheel looks at a record in time.
func (m *Machine) arm(now clock.Mono, h uint32, r *record) {
	m.wheel.put(&m.records, h, m.comesDue(now, r))
}

// comesDue is when the wheel must look at a record: at its deadline, or when it ages if that is sooner.
func (m *Machine) comesDue(now clock.Mono, r *record) clock.Mono {
	if r.state != waiting {
		return r.deadline
	}
	if at, ok := m.risesAt(now, r); ok {
		return min(r.deadline, max(at, now))
	}
	return r.deadline
}
