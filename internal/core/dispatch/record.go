package dispatch

import (
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

// state is what a Run does.
type state uint8

const (
	free   state = iota // no Run: the record waits to be used again
	queued              // waits
	active              // has an Attempt
)

// place is where a queued Run is kept.
type place uint8

const (
	parked   place = iota // it has a blocker
	inLane                // among those of its tenant that need the same
	overflow              // its tenant has too many lanes
	unfit                 // ready, but it never fits
)

// record is one Run. It holds no pointer, so the collector doesn't look at a backlog; its id lies in Machine.ids.
type record struct {
	key        int64      // eligible - priority x step: the place among those of its tenant, for good
	eligible   clock.Mono // when it could first have started
	notBefore  clock.Mono
	quota      clock.Mono
	timeout    time.Duration
	expected   time.Duration
	fast, slow time.Duration

	since   clock.Mono    // active: when its timeout began to count
	charged time.Duration // active
	start   Tag           // active
	seq     uint64        // active
	share   Share         // active

	began clock.Mono    // active: when it was decided
	told  clock.Mono    // the first start it was told
	width time.Duration // of the interval around it

	tenant, shape, runner uint32
	at                    int32 // in the heap or list of where
	timer                 int32 // in the heap of timers
	seat                  int32 // active: in the runner's list
	priority              int16
	state                 state
	where                 place
	blockers              Blocker
	ranked                bool // eligible and key are set
	promised              bool // told is set
	band                  uint8
}

// due is when the last of a Run's timed blockers ends.
func (r *record) due() clock.Mono { return max(r.notBefore, r.quota) }

// take finds a record for a new Run; 0 is never one.
func (m *Machine) take(id string) uint32 {
	if n := len(m.freeRuns); n > 0 {
		h := m.freeRuns[n-1]
		m.freeRuns = m.freeRuns[:n-1]
		m.runs[h], m.ids[h] = record{timer: -1}, id
		return h
	}
	m.runs, m.ids = append(m.runs, record{timer: -1}), append(m.ids, id)
	return uint32(len(m.runs) - 1)
}

// release gives a record back.
func (m *Machine) release(h uint32) {
	m.leaveShape(m.runs[h].shape)
	delete(m.byID, m.ids[h])
	m.runs[h], m.ids[h] = record{}, ""
	m.freeRuns = append(m.freeRuns, h)
}

// find is the record of a Run in a state; 0: there is none.
func (m *Machine) find(id string, s state) uint32 {
	if h := m.byID[id]; h != 0 && m.runs[h].state == s {
		return h
	}
	return 0
}

// byKey orders Runs of one tenant.
type byKey struct{ m *Machine }

func (o byKey) before(a, b uint32) bool {
	x, y := o.m.runs[a].key, o.m.runs[b].key
	return x < y || x == y && o.m.ids[a] < o.m.ids[b]
}
func (o byKey) placed(h uint32, at int32) { o.m.runs[h].at = at }

// byDue orders Runs with a timed blocker by its end.
type byDue struct{ m *Machine }

func (o byDue) before(a, b uint32) bool {
	x, y := o.m.runs[a].due(), o.m.runs[b].due()
	return x < y || x == y && o.m.ids[a] < o.m.ids[b]
}
func (o byDue) placed(h uint32, at int32) { o.m.runs[h].timer = at }
