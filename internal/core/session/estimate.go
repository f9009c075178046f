package session

import (
	"encoding/binary"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

// Estimate tells a waiting session its place, its start and when to ask again; ok is false when the key does not wait.
func (m *Machine) Estimate(now clock.Mono, k Key) (e Estimate, ok bool) {
	h := m.index.find(&m.records, &k)
	if h == 0 {
		return Estimate{}, false
	}
	r := m.records.at(h)
	if r.state != waiting {
		return Estimate{Class: r.class, Arrival: r.arrival()}, false
	}
	e, _ = m.look(now, h, r)
	return e, true
}

// Answer is Estimate for a client that is told: the first interval told with a place is kept as a promise to be scored
// (D-6.3), and the client has until its check time and some slack to come back (D-2.11).
func (m *Machine) Answer(now clock.Mono, k Key) (e Estimate, ok bool) {
	h := m.index.find(&m.records, &k)
	if h == 0 || m.records.at(h).state != waiting {
		return m.Estimate(now, k)
	}
	r := m.records.at(h)
	e, width := m.look(now, h, r)
	if r.promise.point != 0 {
		m.overdue(now, r)
	}
	if e.Known && r.promise.point == 0 {
		m.keep(now, r, &e, width)
	}
	r.deadline = e.Check.Add(NoShowSlack)
	m.arm(now, h, r)
	return e, true
}

// Active reports whether the session of a key has a seat, or reads aside.
func (m *Machine) Active(k Key) bool {
	h := m.index.find(&m.records, &k)
	return h != 0 && m.records.at(h).served()
}

// Drained is when the waiting queue would be empty if nothing else came; known is false while no rate is known.
func (m *Machine) Drained(now clock.Mono) (at clock.Mono, known bool) {
	m.makePlan(now)
	return max(now, m.plan.drained), m.plan.known
}

// Sending counts the sessions that are being sent to: a response is open, or bytes went within the time given, as
// between two ranges of a client.
func (m *Machine) Sending(now clock.Mono, within time.Duration) (n int) {
	for _, served := range [][]uint32{m.running, m.asides} {
		for _, h := range served {
			if r := m.records.at(h); r.running > 0 || now.Sub(m.seats[r.seat-1].lastByte) < within {
				n++
			}
		}
	}
	return n
}

// look makes the estimate of a waiting session; width is the unit of how uncertain its start is.
func (m *Machine) look(now clock.Mono, h uint32, r *record) (e Estimate, width time.Duration) {
	e = Estimate{Class: r.class, Arrival: r.arrival()}
	if r.has(fresh) || now < m.settle {
		e.Check = now.Add(m.firstCheck(now, r))
		return e, 0
	}
	m.makePlan(now)
	place, _ := m.queue.Place(m.item(h, r))
	e.Position, e.Called = place+1, r.has(marked)
	if !m.plan.known {
		e.Check = now.Add(m.spread(r.key, m.blindCheck(r, place)))
		return e, 0
	}
	soonest := max(now, m.plan.at.Add(m.plan.start(h, r, place)))
	opens := now
	if !m.admits(r.class) {
		changes := m.windows[r.class].changes
		if len(changes) == 0 {
			e.Check = now.Add(m.spread(r.key, MaxCheck)) // nobody knows when its window opens
			return e, 0
		}
		opens = max(now, changes[0])
		soonest = max(soonest, opens)
	}
	e.Known = true
	width = m.foretell(now, &e, r.rank, opens, soonest)
	wait := soonest.Sub(now)
	// Whoever starts before it would poll again waits here: the right one is there when its seat comes, however short
	// the turns are, and those behind it don't go first.
	e.Called = e.Called || wait <= DoorSoon
	check := m.stretched(place, wait, min(max(wait/2, MinCheck), MaxCheck, m.cheap()))
	if e.Called {
		check = MinCheckHead
	}
	e.Check = now.Add(m.spread(r.key, check))
	return e, width
}

// start is when a session at a place starts, from the plan's instant.
func (p *plan) start(h uint32, r *record, place int) time.Duration {
	if r.plan != 0 && p.entries[r.plan-1].handle == h {
		return p.entries[r.plan-1].start
	}
	beyond := max(0, place+1-len(p.entries))
	return p.last + bytesTime(float64(beyond)*p.mean, p.rate)
}

// stretched lengthens a check time so that the polls of all who wait stay within the budget, except near the head,
// where seats would wait for them (D-6.2); a place is near where turns are short, however many go before it.
func (m *Machine) stretched(place int, wait, check time.Duration) time.Duration {
	if m.policy.PollBudget == 0 || place < 4*m.policy.Sessions {
		return check
	}
	fair := time.Duration(m.queue.Len()) * time.Second / time.Duration(m.policy.PollBudget)
	return max(check, min(fair, MaxStretched, wait*3/4))
}

// cheap is how often everybody may ask without the polls being felt: twenty a second in all. Few who wait thus hear
// within seconds of a seat that came free before its time.
func (m *Machine) cheap() time.Duration {
	return max(MinCheck, time.Duration(m.queue.Len())*time.Second/20)
}

// firstCheck is when a newcomer asks again: after the next tick its place is known (D-6.2).
func (m *Machine) firstCheck(now clock.Mono, r *record) time.Duration {
	if now < m.settle {
		return m.settle.Sub(now) + MinCheckHead
	}
	return MinCheck
}

// blindCheck is when a session asks again while no rate is known: later the further back it stands.
func (m *Machine) blindCheck(r *record, place int) time.Duration {
	if r.has(marked) {
		return MinCheckHead
	}
	return min(MinCheck+time.Duration(place)*20*time.Millisecond, MaxCheck)
}

// spread moves a check time by up to a tenth, by the key, so that polls do not come as a herd (D-6.2).
func (m *Machine) spread(k Key, d time.Duration) time.Duration {
	x := binary.LittleEndian.Uint64(k[:8]) ^ binary.LittleEndian.Uint64(k[8:])*0xbf58476d1ce4e5b9 ^ m.seed
	x ^= x >> 31
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	return d + d/10*time.Duration(x%1024)/1024
}
