package session

import (
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

// Automatic seats: the fewest that fill the link finish everybody soonest, and how many those are depends on what the
// clients can take. So the count is found by trial: one more while the link stays below what it can carry and somebody
// waits, one fewer when it has been full for long, taken back at once if that was one too few. Every change is a start
// more or a start less; nobody loses a seat.
const (
	autoBelow  = 10 * time.Second // the link was not full for so long: one seat more
	autoFull   = time.Minute      // full for so long: try with one less
	autoRest   = 10 * time.Minute // after a trial that failed: not again for so long
	linkFull   = 0.97             // of what the link carries
	autoMemory = 20               // ticks that the use of the link is averaged over
)

// auto is the state of the search.
type auto struct {
	use     float64    // of the link, averaged
	changed clock.Mono // when the seats, or who waits, changed last
	trial   bool       // the last change was one seat less
	rested  clock.Mono // no trial before
}

// adjust looks at the link once a tick and moves the seats within their bounds, when the operator lets them (D-9.1,
// sessions: auto).
func (m *Machine) adjust(now clock.Mono) {
	p, a := &m.policy, &m.auto
	if p.AutoMax == 0 {
		return
	}
	p.Sessions = min(max(p.Sessions, p.AutoMin), p.AutoMax)
	if m.queue.Len() == 0 {
		a.use, a.changed = 1, now // an empty queue says nothing about the seats
		return
	}
	a.use += (float64(m.meter.Last(now))/float64(max(m.plan.rate, 1)) - a.use) / autoMemory
	lasted := now.Sub(a.changed)
	switch {
	case a.use < linkFull && lasted >= autoBelow:
		if a.trial {
			a.rested = now.Add(autoRest)
		}
		a.trial, a.changed = false, now
		m.resize(1)
	case a.use >= linkFull && lasted >= autoFull && now >= a.rested:
		a.trial, a.changed = true, now
		m.resize(-1)
	}
}

// resize adds or takes a seat within the bounds.
func (m *Machine) resize(d int) {
	p := &m.policy
	p.Sessions = min(max(p.Sessions+d, p.AutoMin), p.AutoMax)
}
