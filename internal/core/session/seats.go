package session

import (
	"slices"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/fair"
)

// sit gives a session that is in the order a seat.
func (m *Machine) sit(now clock.Mono, h uint32, r *record) {
	e := m.emit(Started, r)
	e.At, e.Waited = now, now.Sub(r.arrival())
	m.score(e, r)
	m.pull(h, r, true)
	m.wheel.drop(&m.records, h)
	r.state = active
	m.active++
	if r.class != 0 {
		m.below++
	}
	m.counts[r.class].Active++
	if m.active >= m.policy.Sessions {
		m.widen = 0 // no seat stands free any more
	}
	m.holds(r.principal, 1)
	if r.seat == 0 {
		m.chair(r)
	}
	s := &m.seats[r.seat-1]
	s.sent, s.goal, s.lastByte, s.since, s.inside = 0, r.left, now, now, m.windows[r.class].open()
	s.pace = pace{seen: now}
	if len(m.debts) > 0 {
		delete(m.debts, h)
	}
	m.running = append(m.running, h)
	m.note(h, r)
}

// stand takes the seat of an active session away; what becomes of the session is the caller's.
func (m *Machine) stand(h uint32, r *record) {
	m.active--
	if r.class != 0 {
		m.below--
	}
	m.counts[r.class].Active--
	m.holds(r.principal, -1)
	r.left = m.seats[r.seat-1].left()
	at := slices.Index(m.running, h)
	m.running = slices.Delete(m.running, at, at+1)
	r.clear(yielding)
	m.freed = true
}

// chair gives the record a place to keep what it was given.
func (m *Machine) chair(r *record) {
	fresh := seat{covered: coverage{start: r.size - r.left}}
	if r.has(tailOnly) {
		fresh.covered.start = -1
	}
	if n := len(m.freeSeat); n > 0 {
		r.seat = m.freeSeat[n-1] + 1
		m.freeSeat = m.freeSeat[:n-1]
		m.seats[r.seat-1] = fresh
		return
	}
	m.seats = append(m.seats, fresh)
	r.seat = uint32(len(m.seats))
}

func (m *Machine) unchair(r *record) {
	if r.seat != 0 {
		m.seats[r.seat-1] = seat{}
		m.freeSeat = append(m.freeSeat, r.seat-1)
		r.seat = 0
	}
}

// bury leaves a tombstone, so that no ticket brings an ended session back to its old place (D-8.2).
func (m *Machine) bury(now clock.Mono, h uint32, r *record) {
	m.unchair(r)
	m.principals.all[r.principal].records--
	r.state, r.flags, r.promise = gone, r.flags&(identified|linked), promise{}
	if len(m.debts) > 0 {
		delete(m.debts, h)
	}
	r.deadline = now.Add(KeepGone)
	m.arm(now, h, r)
	m.graves = append(m.graves, grave{h, r.deadline})
	m.note(h, r)
}

// erase forgets a record altogether.
func (m *Machine) erase(h uint32, r *record) {
	m.wheel.drop(&m.records, h)
	m.responses -= int(r.running)
	m.index.remove(&m.records, h)
	m.principals.vacate(r.principal, m.queue)
	m.records.give(h)
}

// exhume makes room by forgetting the oldest tombstone before its time.
func (m *Machine) exhume() bool {
	for len(m.graves) > 0 {
		g := m.graves[0]
		m.graves = m.graves[1:]
		if r := m.records.at(g.handle); r.state == gone && r.deadline == g.until {
			m.erase(g.handle, r)
			return true
		}
	}
	return false
}

// vacated lets the next ones have a seat that came free. Who they are is found anew: whose seat it was may be under its
// share only now.
func (m *Machine) vacated(now clock.Mono) {
	m.offer(now, false)
	m.callHeld(now)
}

// callHeld gives free seats to marked sessions whose request the server holds open: they are here already (D-2.4).
func (m *Machine) callHeld(now clock.Mono) {
	for _, h := range m.offers {
		if m.active >= m.policy.Sessions {
			return
		}
		r := m.records.at(h)
		if r.state == waiting && r.held > 0 && m.mayTake(now, h, r) {
			m.sit(now, h, r)
			m.emit(Seated, r)
		}
	}
}

// mayTake reports whether a marked session may take a seat at this instant.
func (m *Machine) mayTake(now clock.Mono, h uint32, r *record) bool {
	if now < m.settle || !r.has(marked) || !m.seatFor(uint8(r.class)) || !m.admits(r.class) || m.indebted(h) {
		return false
	}
	rivals := m.rivals()
	if rivals == 0 || m.under(r.principal) {
		return true
	}
	// a seat is left when every contender has one, or the contenders let this one go by for a tick
	return r.has(beyond) && (m.freeSeats(uint8(r.class)) > rivals || m.widen > 0)
}

// rivals counts the lanes of principals under their share that could use a free seat now.
func (m *Machine) rivals() (n int) {
	for c := range uint8(fair.Classes) {
		if m.seatFor(c) {
			n += m.contends(c)
		}
	}
	return n
}
