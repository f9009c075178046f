package session

import (
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/fair"
)

// Snapshot is the queue as it stands, for a machine that plays it forward: the sessions with a seat, in the order they
// took them, and the waiting ones in the order that is without bounds on seats, at most so many; more is how many wait
// beyond. It changes nothing.
func (m *Machine) Snapshot(most int) (seated, waiting []Saved, more int) {
	for _, h := range m.running {
		seated = append(seated, m.save(m.records.at(h)))
	}
	n := min(most, m.queue.Len())
	waiting = make([]Saved, 0, n)
	m.queue.Rewind(&m.cursor)
	everybody := func(uint8, uint32, uint32) bool { return true }
	for len(waiting) < n {
		t, ok := m.cursor.Next(1<<fair.Classes-1, 0, everybody)
		if !ok {
			break
		}
		waiting = append(waiting, m.save(m.records.at(t.Item)))
	}
	return seated, waiting, m.queue.Len() - len(waiting)
}

// Vouch confirms all who wait until an instant: in a run forward nobody polls and nobody stays away.
func (m *Machine) Vouch(now, until clock.Mono) {
	for h := uint32(1); h <= m.records.used; h++ {
		if r := m.records.at(h); r.state == waiting && r.deadline < until {
			r.deadline = until
			m.arm(now, h, r)
		}
	}
}
