package session

import (
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/fair"
	"github.com/roadstead/roadstead/internal/core/forecast"
)

// Machine is the queue and its seats. Calls must be serialised by the caller.
//
// A session is waiting (it has a turn in the order), active (it has a seat), aside (a slow reader, served without one),
// paused (it idled and keeps its arrival) or gone (a tombstone that voids its tickets). Seats are never kept for the absent: a tick marks the
// first of the order, and the first marked one to arrive takes a seat (D-2.12).
type Machine struct {
	policy     Policy
	seed       uint64
	queue      *fair.Queue
	records    arena
	index      index
	principals principals
	wheel      wheel
	seats      []seat
	freeSeat   []uint32
	running    []uint32 // handles of active sessions, in the order they took their seats
	asides     []uint32 // handles of sessions aside, in the order they moved there

	active     int
	below      int                 // active sessions of classes below interactive
	contenders [fair.Classes]int32 // lanes whose principal is under its share
	counts     [class.Count]ClassCounts
	responses  int
	sequence   uint32

	ticked   clock.Mono // the last tick; 0 before the first
	grace    clock.Mono // nobody is dropped before it
	settle   clock.Mono // no seat is given before this instant
	narrow   clock.Mono // until then as many are called as there are seats, so that the first really go first
	widen    int        // extra marks while a seat stays free
	offers   []uint32   // marked, in order
	offered  bool       // the last tick marked somebody
	newly    []uint32   // came after the last tick
	graves   []grave    // tombstones, oldest first
	meter    forecast.Meter
	learnt   [class.Count]forecast.Calibration
	windows  [class.Count]window
	auto     auto
	yields   []preemption    // pending (D-4.5)
	debts    map[uint32]debt // by who yielded
	freed    bool            // a seat came free since the last tick
	agedNow  int             // aged in this tick
	agedWait int             // waiting in the lanes of the aged
	plan     plan
	planned  bool // the plan is of the last tick
	cursor   fair.Cursor
	effects  []Effect

	tracks    bool     // changes are noted for a journal
	changed   []uint32 // noted, the longest first
	sizes     []int64  // of the last look at them
	gini      float64
	giniMade  bool // of this tick
	giniKnown bool
}

// grave lets the oldest tombstone make room when the records run out.
type grave struct {
	handle uint32
	until  clock.Mono
}

// New makes an empty machine. The seed feeds the spread of check times and nothing else.
func New(p Policy, seed uint64) (*Machine, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return &Machine{
		policy: p, seed: seed, queue: fair.New(fair.Discipline(p.Strategy), p.Weights), index: newIndex(p.MaxSessions, seed),
		principals: principals{index: map[Key]uint32{}, all: make([]principal, fair.Aged+1)},
		debts:      map[uint32]debt{},
	}, nil
}

// Settle keeps every seat free until the instant, so that the clients of a restarted server come back and start in
// arrival order (D-2.12).
func (m *Machine) Settle(until clock.Mono) {
	m.settle, m.narrow = until, until.Add(settleNarrow)
}

// settleNarrow is how long after a settling only as many sessions are called as seats are free: time for each of them
// to poll once.
const settleNarrow = 3 * time.Second

// Apply takes one event. The returned slice is valid until the next call.
func (m *Machine) Apply(now clock.Mono, e Event) []Effect {
	m.effects = m.effects[:0]
	h := m.index.find(&m.records, &e.Key)
	switch e.Kind {
	case Request:
		m.request(now, e, h)
	case Progress:
		m.meter.Add(now, e.Bytes)
		if h != 0 {
			m.progress(now, h, e)
		}
	case Finish:
		if h != 0 {
			m.finish(now, h, e)
		}
	case Hold, Unhold:
		if h != 0 {
			m.keepOpen(now, h, e.Kind == Hold)
		}
	case Cancel:
		if h != 0 {
			m.cancel(now, h)
		}
	}
	return m.effects
}

func (m *Machine) emit(kind EffectKind, r *record) *Effect {
	m.effects = append(m.effects, Effect{Kind: kind, Key: r.key, Class: r.class})
	return &m.effects[len(m.effects)-1]
}

// progress notes accepted bytes; none at all still says that the response lives.
func (m *Machine) progress(now clock.Mono, h uint32, e Event) {
	r := m.records.at(h)
	if !r.served() {
		return
	}
	s := &m.seats[r.seat-1]
	s.sent += e.Bytes
	s.lastByte = now
	if r.state == active {
		m.measure(now, h, r, e)
	}
}

// finish ends one response and, when the object is through, the session (D-2.7).
func (m *Machine) finish(now clock.Mono, h uint32, e Event) {
	r := m.records.at(h)
	if r.running > 0 {
		r.running--
		m.responses--
	}
	if !r.served() && r.state != paused {
		return
	}
	s := &m.seats[r.seat-1]
	if e.To > e.From {
		s.covered.add(e.From, e.To)
		m.note(h, r)
	} else {
		s.covered.cut(e.From, e.From+e.Bytes)
	}
	if r.served() && r.running == 0 && s.covered.complete(r.size) {
		m.emit(Finished, r)
		m.retire(h, r)
		m.bury(now, h, r)
		m.vacated(now)
		return
	}
	if r.state == active && r.has(yielding) && r.running == 0 {
		m.yield(now, h, r)
	}
}

// keepOpen counts the requests the shell holds for a session; while it holds one the session is confirmed.
func (m *Machine) keepOpen(now clock.Mono, h uint32, open bool) {
	r := m.records.at(h)
	d := -1
	if open {
		d = 1
	} else if r.held == 0 {
		return
	}
	r.held = uint16(int(r.held) + d)
	if r.state != waiting {
		return
	}
	m.counts[r.class].Held += d
	if !open {
		r.deadline = now.Add(MinCheck + NoShowSlack)
		m.arm(now, h, r)
	}
}

// cancel takes a session out whatever its state.
func (m *Machine) cancel(now clock.Mono, h uint32) {
	r := m.records.at(h)
	switch r.state {
	case waiting:
		m.pull(h, r, false)
		m.bury(now, h, r)
	case active, aside:
		m.retire(h, r)
		m.bury(now, h, r)
		m.vacated(now)
	case paused:
		m.counts[r.class].Paused--
		m.bury(now, h, r)
	}
}

// Counts is a snapshot of the machine, in O(classes).
func (m *Machine) Counts() Counts {
	c := Counts{Classes: m.counts, Sessions: m.index.n, Responses: m.responses, Rate: m.plan.rate}
	for i := range c.Classes {
		if h, ok := m.queue.Head(uint8(i)); ok {
			c.Classes[i].Head = m.records.at(h).arrival()
		}
	}
	return c
}
