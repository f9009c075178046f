package session

import (
	"slices"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/fair"
)

// preemption is a seat that is to change hands on the next range boundary (D-4.5).
type preemption struct {
	victim uint32
	head   uint32 // who waits for it
	order  uint64 // of the head: its handle may be another's by then
}

// debt is what a session that yielded owes: it may not take a seat while the head it yielded to waits.
type debt struct {
	head  uint32
	order uint64
}

// waitsStill reports whether the session that a preemption or a debt is for waits yet.
func (m *Machine) waitsStill(head uint32, order uint64) bool {
	r := m.records.at(head)
	return r.state == waiting && r.order == order
}

func (m *Machine) indebted(h uint32) bool {
	d, ok := m.debts[h]
	return ok && m.waitsStill(d.head, d.order)
}

// preempt asks at most one session a tick for its seat, and only while no seat came free otherwise (D-4.5), for a head
// whose request is held: a seat taken back for somebody away would stand empty.
func (m *Machine) preempt(now clock.Mono) {
	freed := m.freed
	m.freed = false
	m.yields = slices.DeleteFunc(m.yields, func(p preemption) bool {
		r := m.records.at(p.victim)
		if r.state == active && r.has(yielding) && m.policy.Preempt && m.waitsStill(p.head, p.order) && m.mayDisplace(m.records.at(p.head), r) {
			return false
		}
		r.clear(yielding)
		return true
	})
	if !m.policy.Preempt || freed || now < m.settle {
		return
	}
	for c := range uint8(fair.Classes) {
		h, ok := m.claimant(c)
		if !ok {
			continue
		}
		r := m.records.at(h)
		v, ok := m.victim(now, r)
		if !ok {
			continue
		}
		if r.held == 0 {
			m.call(h, r) // no seat is taken for the absent: it comes to the door first
			continue
		}
		m.records.at(v).set(yielding)
		m.yields = append(m.yields, preemption{v, h, r.order})
		m.ripe(now, v)
		return
	}
}

// call marks a session although no seat is free: it may wait at the door for the one it is about to get.
func (m *Machine) call(h uint32, r *record) {
	if !r.has(marked) {
		r.set(marked)
		m.offers = append(m.offers, h)
	}
}

// Yielding reports whether the session of a key is asked for its seat: its open responses should end on their next range
// boundary, and new ranges are refused until then (D-4.5).
func (m *Machine) Yielding(k Key) bool {
	h := m.index.find(&m.records, &k)
	return h != 0 && m.records.at(h).state == active && m.records.at(h).has(yielding)
}

// ripe ends a preemption at once whose victim stands on a boundary already.
func (m *Machine) ripe(now clock.Mono, v uint32) {
	if r := m.records.at(v); r.running == 0 {
		m.yield(now, v, r)
	}
}

// claimant is the first of a class that may start but for the seat, if no seat is on its way to it yet.
func (m *Machine) claimant(c uint8) (uint32, bool) {
	if m.seatFor(c) || m.queue.ClassLen(c) == 0 {
		return 0, false
	}
	m.queue.Rewind(&m.cursor)
	// the aged go by their own class here: aging buys order, not seats
	may := func(k uint8, p, _ uint32) bool { return p != fair.Aged && m.admits(class.Class(k)) }
	contend := func(k uint8, p, item uint32) bool { return may(k, p, item) && m.under(p) }
	t, ok := m.cursor.Next(1<<c, 0, contend)
	if !ok {
		m.queue.Rewind(&m.cursor)
		if t, ok = m.cursor.Next(1<<c, 0, may); !ok {
			return 0, false
		}
	}
	for _, y := range m.yields {
		if y.head == t.Item {
			return 0, false // one pending preemption per head
		}
	}
	return t.Item, true
}

// victim picks whose seat a head may take: of a client that understands (it has an id), held for at least a minute,
// of a lower class; or of a principal over its share, of the head's class or a lower one, when the head's principal is
// under its own. The lowest class goes first, then who has most to go. Who began inside its window is left alone
// after the close (D-5.2).
func (m *Machine) victim(now clock.Mono, head *record) (best uint32, ok bool) {
	for _, h := range m.running {
		r := m.records.at(h)
		s := &m.seats[r.seat-1]
		if !r.has(identified) || r.has(yielding) || now.Sub(s.since) < Tenure || s.inside && !m.windows[r.class].open() {
			continue
		}
		if !m.mayDisplace(head, r) {
			continue
		}
		if !ok || m.givesWay(r, m.records.at(best)) {
			best, ok = h, true
		}
	}
	return best, ok
}

// mayDisplace reports whether a head may have a session's seat: as the lower class, or as one of a principal over its
// share when the head's is under it; and only if the seat would be the head's, which it is not after the operator took
// seats away, nor when the reserve keeps it.
func (m *Machine) mayDisplace(head, r *record) bool {
	if m.active > m.policy.Sessions || !m.admits(head.class) {
		return false
	}
	if head.class != 0 && (r.class == 0 || m.below > m.policy.Sessions-m.policy.Reserve) {
		return false
	}
	over := int(m.principals.all[r.principal].active) > m.policy.PerPrincipal
	return r.class > head.class || r.class == head.class && over && m.under(head.principal)
}

// givesWay reports whether a rather than b loses its seat.
func (m *Machine) givesWay(a, b *record) bool {
	if a.class != b.class {
		return a.class > b.class
	}
	return m.seats[a.seat-1].left() > m.seats[b.seat-1].left()
}

// yield takes the seat on a boundary, if the head still waits for it. Who yields waits anew, without what it had aged,
// and takes no seat while that head waits.
func (m *Machine) yield(now clock.Mono, h uint32, r *record) {
	at := slices.IndexFunc(m.yields, func(p preemption) bool { return p.victim == h })
	r.clear(yielding)
	if at < 0 {
		return
	}
	p := m.yields[at]
	m.yields = slices.Delete(m.yields, at, at+1)
	if !m.waitsStill(p.head, p.order) || !m.mayDisplace(m.records.at(p.head), r) {
		return
	}
	m.emit(Yielded, r)
	m.stand(h, r)
	m.sequence++
	r.order, r.state, r.promise = orderOf(now, m.sequence), waiting, promise{}
	r.set(fresh)
	r.left = max(0, m.wants(r))
	r.deadline = now.Add(MinCheck + NoShowSlack)
	m.arm(now, h, r)
	m.newly = append(m.newly, h)
	m.push(h, r, false)
	m.note(h, r)
	m.debts[h] = debt{p.head, p.order}
	m.freed = false // this seat is the head's
	m.vacated(now)
}
