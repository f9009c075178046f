package dispatch

import "github.com/roadstead/roadstead/internal/clock"

// Block sets blockers of a queued Run; false when no such Run is queued.
func (m *Machine) Block(now clock.Mono, id string, b Blocker) bool {
	return m.change(now, id, func(r *record) { r.blockers |= b })
}

// Unblock clears blockers of a queued Run; false when no such Run is queued.
func (m *Machine) Unblock(now clock.Mono, id string, b Blocker) bool {
	return m.change(now, id, func(r *record) { r.blockers &^= b })
}

// SetNotBefore keeps a queued Run until an instant, instead of the one it had; in the past: no longer.
func (m *Machine) SetNotBefore(now clock.Mono, id string, until clock.Mono) bool {
	return m.change(now, id, func(r *record) { r.notBefore = until })
}

// SetQuota keeps a queued Run until an external limit has something for it again, instead of the instant it had.
func (m *Machine) SetQuota(now clock.Mono, id string, until clock.Mono) bool {
	return m.change(now, id, func(r *record) { r.quota = until })
}

func (m *Machine) change(now clock.Mono, id string, how func(*record)) bool {
	m.wake(now)
	h := m.find(id, queued)
	if h == 0 {
		return false
	}
	if r := &m.runs[h]; r.timer >= 0 { // its order among the timers is about to change
		m.timers = drop(byDue{m}, m.timers, r.timer)
	}
	how(&m.runs[h])
	m.reconsider(now, h)
	return true
}
