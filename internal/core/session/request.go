package session

import (
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/fair"
)

// request answers a GET: it starts, goes on, waits, or is told to come later.
func (m *Machine) request(now clock.Mono, e Event, h uint32) {
	if h == 0 || m.records.at(h).state == gone {
		var ok bool
		if h, ok = m.admit(now, e, h); !ok {
			return
		}
	}
	r := m.records.at(h)
	m.resume(h, r, e)
	if r.state == paused {
		m.comeBack(h, r)
	}
	if r.state == waiting && (m.mayTake(now, h, r) || m.walksIn(now, h, r)) {
		m.sit(now, h, r)
	}
	if r.state == active && r.has(yielding) && r.running == 0 {
		m.yield(now, h, r)
	}
	if r.served() {
		m.serve(now, r, e)
		return
	}
	r.deadline = now.Add(MinCheck + NoShowSlack)
	m.arm(now, h, r)
	m.emit(Wait, r)
}

// resume learns from the offset a client goes on at how much it has, and so how much it still wants. One that never had
// a seat may have got further by another process, just before that was killed.
func (m *Machine) resume(h uint32, r *record, e Event) {
	if e.Tail || r.state == gone {
		return
	}
	wants := r.left
	if r.seat == 0 {
		wants = max(0, r.size-e.From)
		r.clear(tailOnly)
	} else if m.seats[r.seat-1].covered.resume(e.From) {
		wants = max(0, m.wants(r))
	}
	if wants == r.left {
		return
	}
	m.note(h, r)
	switch r.state {
	case paused:
		r.left = wants
	case waiting:
		it := m.item(h, r)
		m.queue.Remove(it)
		m.lane(it, -1)
		m.counts[r.class].WaitingBytes += wants - r.left
		r.left = wants
		m.enter(h, r, false)
	}
}

// serve opens one more response of a session (D-2.10).
func (m *Machine) serve(now clock.Mono, r *record, e Event) {
	if int(r.running) >= m.policy.RangesPerSession || r.has(yielding) {
		m.emit(Surplus, r).RetryAfter = time.Second
		return
	}
	s := &m.seats[r.seat-1]
	s.ask(e.From, r.size, e.Tail)
	r.running++
	m.responses++
	m.emit(Serve, r)
}

// admit makes a waiting session of a key that has none, within the bounds (D-7.1). A tombstone is reused: it knows
// better than any ticket when the download came (D-8.2).
func (m *Machine) admit(now clock.Mono, e Event, tomb uint32) (uint32, bool) {
	h := tomb
	if h == 0 {
		if m.index.n >= m.policy.MaxSessions && !m.exhume() {
			m.refuse(e, "sessions")
			return 0, false
		}
		p, known := m.principals.index[e.Principal]
		if known && int(m.principals.all[p].records) >= m.policy.MaxPerPrincipal {
			m.refuse(e, "principal")
			return 0, false
		}
		h = m.records.take()
		r := m.records.at(h)
		r.key, r.principal = e.Key, m.principals.number(e.Principal)
		m.principals.all[r.principal].known++
		m.index.add(&m.records, h)
	} else if r := m.records.at(h); int(m.principals.all[r.principal].records) >= m.policy.MaxPerPrincipal {
		m.refuse(e, "principal")
		return 0, false
	}
	r := m.records.at(h)
	arrival := now
	back := tomb == 0 && e.Ticketed
	if back {
		arrival = min(e.Arrival, now)
	}
	m.sequence++
	r.order, r.class, r.state = orderOf(arrival, m.sequence), e.Class, waiting
	r.flags = r.flags&linked | fresh
	if e.Identified {
		r.set(identified)
	}
	r.size, r.left = e.Size, max(e.Size-e.From, 0)
	if e.Tail {
		r.set(tailOnly)
		r.left = max(e.To-e.From, 0)
	}
	m.principals.all[r.principal].records++
	m.newly = append(m.newly, h)
	m.push(h, r, back)
	m.note(h, r)
	return h, true
}

func (m *Machine) refuse(e Event, bound string) {
	m.effects = append(m.effects, Effect{
		Kind: Refuse, Key: e.Key, Class: e.Class, Bound: bound, RetryAfter: m.spread(e.Key, 30*time.Second),
	})
}

// comeBack puts a paused session into the order again at its old arrival: not ahead of those who waited (D-2.8).
func (m *Machine) comeBack(h uint32, r *record) {
	m.counts[r.class].Paused--
	r.state = waiting
	r.set(fresh)
	m.newly = append(m.newly, h)
	m.push(h, r, true)
	m.note(h, r)
}

// walksIn reports whether who arrives finds a seat that it may take and nobody who should have it first (D-2.12).
func (m *Machine) walksIn(now clock.Mono, h uint32, r *record) bool {
	if now < m.settle || !m.seatFor(uint8(r.class)) || !m.admits(r.class) || m.indebted(h) {
		return false
	}
	contender := m.under(r.principal)
	for c := range uint8(fair.Classes) {
		if !m.seatFor(c) || !m.present(c) {
			continue
		}
		others := m.queue.ClassLen(c)
		if contender {
			others = m.contends(c)
		}
		if c == r.rank {
			others--
			if contender && m.queue.LaneLen(c, r.principal) > 1 {
				return false // one of its own came before it
			}
		}
		if others > 0 {
			return false
		}
	}
	return true
}
