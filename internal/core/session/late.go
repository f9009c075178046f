package session

import (
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

// A tick that comes this late says that the process stood still: it was stopped, or its machine slept. Meanwhile it
// heard nobody and sent nothing, which is no fault of those who wait or read.
const (
	LateTick  = 5 * time.Second
	WakeGrace = time.Minute + NoShowSlack // a client that reached nobody tries again within a minute (D-1.2)
)

// wake makes up for the time a process stood still: nobody is dropped before those who tried had time to try again,
// and that time counts towards nobody's idleness (D-7.3).
func (m *Machine) wake(now clock.Mono) {
	late := now.Sub(m.ticked) - TickEvery
	first := m.ticked == 0
	m.ticked = now
	if first || late <= LateTick {
		return
	}
	m.grace = now.Add(WakeGrace)
	for _, served := range [][]uint32{m.running, m.asides} {
		for _, h := range served {
			s := &m.seats[m.records.at(h).seat-1]
			s.lastByte = min(now, s.lastByte.Add(late))
		}
	}
}
