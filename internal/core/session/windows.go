package session

import (
	"slices"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
)

// closedMost bounds the closed times remembered of a class; older ones count as open, which ages a session sooner.
const closedMost = 64

// window is a class's operator window as the machine needs it (D-5.2). The zero value is always open.
type window struct {
	shut    bool
	since   clock.Mono // when it was shut
	outside bool       // sessions may start outside too, on the outside share of the link
	changes []clock.Mono
	closed  []span // past closed times
}

func (w *window) open() bool { return !w.shut }

// closedFor is how much of from..to the window was shut.
func (w *window) closedFor(from, to clock.Mono) (d time.Duration) {
	part := func(a, b clock.Mono) {
		d += max(0, min(b, to).Sub(max(a, from)))
	}
	for _, c := range w.closed {
		part(clock.Mono(c.from), clock.Mono(c.to))
	}
	if w.shut {
		part(w.since, to)
	}
	return d
}

// SetWindow says whether a class's window is open now, when that will change (in order, as far ahead as estimates are to
// see), and whether its sessions may start outside it as well (D-5.2). A class that opens again comes back without
// arrears.
func (m *Machine) SetWindow(now clock.Mono, c class.Class, open, outside bool, changes []clock.Mono) {
	w, admitted := &m.windows[c], m.admits(c)
	if w.shut && open {
		w.closed = append(w.closed, span{int64(w.since), int64(now)})
		if len(w.closed) > closedMost {
			w.closed = slices.Delete(w.closed, 0, 1)
		}
	}
	if !w.shut && !open {
		w.since = now
	}
	w.shut, w.outside, w.changes = !open, outside, append(w.changes[:0], changes...)
	if m.admits(c) != admitted {
		m.regroup(now, c)
	}
}

// regroup takes the aged of a class that closes back to its own order: in the one they share with the aged of other
// classes they would stand before those who may start. When the class opens, they rise again.
func (m *Machine) regroup(now clock.Mono, c class.Class) {
	for h := uint32(1); h <= m.records.used; h++ {
		r := m.records.at(h)
		if r.state != waiting || r.class != c {
			continue
		}
		if r.has(aged) && !m.admits(c) {
			it := m.item(h, r)
			m.queue.Remove(it)
			m.lane(it, -1)
			r.clear(aged)
			r.rank, r.plan = uint8(c), 0
			m.enter(h, r, false)
		}
		m.arm(now, h, r)
	}
	m.planned = false
}

// admits reports whether sessions of a class may start now, as far as its window goes.
func (m *Machine) admits(c class.Class) bool { return !m.windows[c].shut || m.windows[c].outside }

// Outside reports whether the session of a key began outside its window and runs on the outside share (D-5.2).
func (m *Machine) Outside(k Key) bool {
	h := m.index.find(&m.records, &k)
	if h == 0 {
		return false
	}
	r := m.records.at(h)
	return r.served() && !m.seats[r.seat-1].inside && m.windows[r.class].shut
}
