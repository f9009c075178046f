package session

import (
	"slices"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/fair"
)

// The minimum rate. A seat is a part of the link, and a reader that takes far less than its part keeps the rest of it
// from those who wait. Such a reader moves aside: it is served on, with what nobody else wants, and its seat goes to
// the next. It stays aside until it is through or idle, so that being slow never wins a second share.
const (
	paceOver   = 20 * time.Second // a reader is judged by so much of its own time
	paceGap    = 6 * time.Second  // silence beyond it is not the reader's: a suspended process judges nobody
	asideSeat  = 4                // sessions aside for each seat,
	asideLeast = 128              // but room for as many in any case; beyond it the slow keep their seats
)

// pace is how fast a reader took what it was offered, since it was last judged.
type pace struct {
	seen  clock.Mono    // until here own counts
	own   time.Duration // from one piece to the next, ranges or not, less what the governor held it back
	bytes int64
}

// measure counts what a seated reader took, and moves it aside when that is under the minimum rate while somebody
// waits for the seat. It is in bytes per second of the reader's own time, whatever the size of its ranges: who asks for
// a byte now and then would otherwise hold a seat for ever.
func (m *Machine) measure(now clock.Mono, h uint32, r *record, e Event) {
	p := &m.seats[r.seat-1].pace
	if m.policy.MinRate == 0 || r.has(yielding) {
		*p = pace{seen: now}
		return
	}
	p.own += min(now.Sub(p.seen), paceGap) - e.Paced/time.Duration(max(r.running, 1))
	p.bytes += e.Bytes
	p.seen = now
	if p.own < paceOver {
		return
	}
	slow := float64(p.bytes) < float64(m.policy.MinRate)*p.own.Seconds()
	*p = pace{seen: now}
	if slow && m.wantsSeatOf(r) && len(m.asides) < max(asideSeat*m.policy.Sessions, asideLeast) {
		m.moveAside(now, h, r)
	}
}

// wantsSeatOf reports whether somebody waits who may take the seat of a session: of an interactive one, the reserve may
// keep it from all others.
func (m *Machine) wantsSeatOf(r *record) bool {
	for c := range uint8(fair.Classes) {
		if m.present(c) && (c == 0 || r.class != 0 || m.below < m.policy.Sessions-m.policy.Reserve) {
			return true
		}
	}
	return false
}

func (m *Machine) moveAside(now clock.Mono, h uint32, r *record) {
	m.emit(MovedAside, r)
	m.stand(h, r)
	r.state = aside
	m.counts[r.class].Aside++
	m.asides = append(m.asides, h)
	m.vacated(now)
}

// retire takes a served session off its seat, or out of the lane aside; what becomes of it is the caller's.
func (m *Machine) retire(h uint32, r *record) {
	if r.state == active {
		m.stand(h, r)
		return
	}
	m.counts[r.class].Aside--
	at := slices.Index(m.asides, h)
	m.asides = slices.Delete(m.asides, at, at+1)
}

// served reports whether the session's responses may run.
func (r *record) served() bool { return r.state == active || r.state == aside }

// Aside reports whether the session of a key reads aside, on what nobody else wants.
func (m *Machine) Aside(k Key) bool {
	h := m.index.find(&m.records, &k)
	return h != 0 && m.records.at(h).state == aside
}
