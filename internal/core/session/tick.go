package session

import (
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/fair"
)

// offersMost bounds the sessions marked at once.
const offersMost = 4096

// Tick does what is due and offers free seats; next is how long to wait at least. The slice is valid until the next
// call.
func (m *Machine) Tick(now clock.Mono) (effects []Effect, next time.Duration) {
	m.effects = m.effects[:0]
	m.agedNow = 0
	m.wake(now)
	m.idle(now, m.running)
	m.idle(now, m.asides)
	m.wheel.turn(&m.records, now, func(h uint32) { m.due(now, h) })
	for _, h := range m.newly {
		m.records.at(h).clear(fresh)
	}
	m.newly = m.newly[:0]
	m.buried()
	m.principals.sweep(m.queue, false)
	// Where a rate is set it is the governor's ceiling: a second that carried more only caught up with one before it,
	// and who was told a start by it would wait for nothing (D-6.1).
	if m.plan.rate = m.policy.LinkRate; m.plan.rate == 0 {
		m.plan.rate = m.meter.Peak(now)
	}
	m.adjust(now)
	m.offer(now, true)
	m.preempt(now)
	m.offered = len(m.offers) > 0 && m.active < m.policy.Sessions
	m.callHeld(now)
	m.planned, m.giniMade = false, false
	return m.effects, TickEvery
}

// idle pauses those of the served sessions that accepted no byte for too long: they lose their seats (D-2.8).
func (m *Machine) idle(now clock.Mono, served []uint32) {
	for i := len(served) - 1; i >= 0; i-- {
		h := served[i]
		r := m.records.at(h)
		s, limit := &m.seats[r.seat-1], m.policy.Idle
		if s.tail() && r.running == 0 {
			limit = min(limit, TailHold) // the next read of an archive comes at once, or not at all (D-2.9)
		}
		if now.Sub(s.lastByte) < limit {
			continue
		}
		m.emit(Paused, r)
		m.retire(h, r)
		r.state = paused
		r.left = max(0, m.wants(r))
		m.counts[r.class].Paused++
		r.deadline = now.Add(KeepPaused)
		m.arm(now, h, r)
		m.note(h, r)
	}
}

// wants is how many bytes a paused session still needs, by what it was given whole.
func (m *Machine) wants(r *record) int64 {
	s := &m.seats[r.seat-1]
	return r.size - max(s.covered.start, 0) - s.covered.delivered()
}

// due ends what a record was waiting for.
func (m *Machine) due(now clock.Mono, h uint32) {
	r := m.records.at(h)
	switch {
	case r.served():
		return // its last byte counts for it, not the wheel
	case r.deadline > now:
		if r.state == waiting {
			m.age(now, h, r)
		}
		m.arm(now, h, r)
	case now < m.grace && (r.state == waiting || r.state == paused):
		r.deadline = m.grace
		m.arm(now, h, r)
	case r.state == waiting && r.held > 0:
		r.deadline = now.Add(NoShowSlack)
		m.arm(now, h, r)
	case r.state == waiting:
		m.emit(NoShow, r)
		m.pull(h, r, false)
		m.bury(now, h, r)
	case r.state == paused:
		m.emit(Forgot, r)
		m.counts[r.class].Paused--
		m.unchair(r)
		m.principals.all[r.principal].records--
		m.erase(h, r)
	case r.state == gone && r.running > 0:
		r.deadline = now.Add(NoShowSlack) // a response outlives its session; its end must find the record
		m.arm(now, h, r)
	case r.state == gone:
		m.erase(h, r)
	}
}

// buried drops graves whose tombstone has moved on, so that their list stays as short as their number.
func (m *Machine) buried() {
	for len(m.graves) > 0 {
		if r := m.records.at(m.graves[0].handle); r.state == gone && r.deadline == m.graves[0].until {
			return
		}
		m.graves = m.graves[1:]
	}
}

// offer marks the first of the order, twice as many as there are seats free or about to be, and more each tick while a
// seat stays free (D-2.12). Principals under their share come first; each of them stands for two of the marks, and
// only marks beyond that go to principals at their share (D-4.4). Between ticks an offer stays as wide as it is.
func (m *Machine) offer(now clock.Mono, tick bool) {
	for _, h := range m.offers {
		m.records.at(h).clear(marked | beyond)
	}
	m.offers = m.offers[:0]
	if now < m.settle || m.queue.Len() == 0 {
		m.widen = 0
		return
	}
	all, below := m.room(now, tick)
	o := offering{m: m, cursor: &m.cursor, all: all, below: below}
	m.queue.Rewind(o.cursor)
	o.mark(true)
	o.passOver()
	o.leftover()
	o.mark(false)
	for _, p := range o.behind {
		m.queue.PassOver(p.class, p.principal, p.round)
	}
}

// room is how many marks there may be, in all and in the classes below interactive.
func (m *Machine) room(now clock.Mono, tick bool) (all, below int) {
	free, freeBelow := m.freeSeats(0), m.freeSeats(1)
	usable := freeBelow > 0 && m.queue.Len() > m.queue.ClassLen(0) || free > 0 && m.queue.ClassLen(0) > 0
	if now < m.narrow {
		m.widen = 0
		return free, freeBelow
	}
	switch {
	case !usable || tick && !m.offered:
		m.widen = 0
	case tick:
		m.widen = min(m.widen+2*free, offersMost)
	}
	ending, endingBelow := m.ending()
	all = 2*(free+ending) + m.widen
	below = 2*min(free+ending, max(0, m.policy.Sessions-m.policy.Reserve-m.below)+endingBelow) + m.widen
	return min(all, offersMost), min(below, offersMost)
}

// ending counts the sessions that give their seat back within five seconds.
func (m *Machine) ending() (all, below int) {
	m.fill(&m.plan.seats)
	m.plan.seats.Ends(func(tag uint32, left time.Duration) {
		if left <= EndingSoon {
			all++
			if m.records.at(tag).class != 0 {
				below++
			}
		}
	})
	return all, below
}

// offering is one round of marking.
type offering struct {
	m          *Machine
	cursor     *fair.Cursor
	all, below int
	marksBelow int
	first      [fair.Classes]uint32 // round of the first mark of each class, plus one
	behind     []behind             // principals that were passed over
}

// behind is a principal at its share that contenders go ahead of, in the round of the first of them.
type behind struct {
	class     uint8
	principal uint32
	round     uint32
}

// mark walks the order and marks sessions of principals under their share, or of the others.
func (o *offering) mark(contenders bool) {
	m := o.m
	var open fair.Mask
	for c := range uint8(fair.Classes) {
		if !contenders && m.present(c) || m.contends(c) > 0 {
			open |= 1 << c
		}
	}
	may := func(c uint8, p, item uint32) bool {
		if p == fair.Aged {
			r := m.records.at(item)
			return m.admits(r.class) && (!contenders || m.under(r.principal))
		}
		return m.admits(class.Class(c)) && (!contenders || m.under(p))
	}
	var held fair.Mask
	for len(m.offers) < o.all {
		if o.marksBelow >= o.below {
			open, held = open&1, held|open&^1
		}
		t, ok := o.cursor.Next(open, held, may)
		if !ok {
			return
		}
		if t.Class != 0 {
			o.marksBelow++
		}
		r := m.records.at(t.Item)
		r.set(marked)
		if !contenders {
			r.set(beyond)
		}
		if o.first[t.Class] == 0 {
			o.first[t.Class] = t.Round + 1
		}
		m.offers = append(m.offers, t.Item)
	}
}

// leftover is what remains for principals at their share: each contender stands for two marks, but those below
// interactive can never use more than their own part.
func (o *offering) leftover() {
	below := 2 * o.marksBelow
	people := 2 * (len(o.m.offers) - o.marksBelow)
	all := max(0, o.all-people-min(below, o.below))
	o.below = o.marksBelow + max(0, min(o.below, o.all-people)-below)
	o.all = len(o.m.offers) + all
}

// passOver notes whom the contenders go ahead of: they are taken to the contenders' round, without arrears.
func (o *offering) passOver() {
	for c, round := range o.first {
		if round == 0 {
			continue
		}
		o.cursor.Passed(uint8(c), func(p uint32) {
			if p != fair.Aged && !o.m.under(p) {
				o.behind = append(o.behind, behind{uint8(c), p, round - 1})
			}
		})
	}
}
