package dispatch

import (
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
)

// Machine is the queue of one pool, its tenants and its runners. Calls must be serialised by the caller.
//
// Runs that need the same have one shape; the Runs of one tenant and one shape stand in a lane, in the order of their
// keys. Every shape keeps its lanes in a heap by finish tag, and the shapes stand in a heap by the first of each. So
// the first of all is found at the top, what doesn't fit is asked once for a shape instead of once for each tenant, and
// a backlog costs its own tenant's heap a level and nobody else anything.
type Machine struct {
	policy Policy

	runs     []record
	ids      []string // of the runs
	freeRuns []uint32
	byID     map[string]uint32
	timers   []uint32 // heap of Runs with a timed blocker, by its end

	tenants  []tenant
	tenantOf map[string]uint32

	lanes     []lane
	freeLanes []uint32

	shapes        []shape
	freeShapes    []uint32
	shapeOf       map[need]uint32
	selectors     []selector
	freeSelectors []uint32
	selectorOf    map[string]uint32
	slotless      int      // shapes that need no slot
	order         []uint32 // heap of shapes that somebody has work of

	runners      []runner
	freeRunners  []uint32
	runnerOf     map[string]uint32
	kinds        []kind
	kindsVersion uint32
	known        int    // runners
	online       int    // active ones
	openSlots    int64  // of active ones
	capacity     Vector // of those that are active or draining
	used         Vector // by all Attempts
	queued       int
	ready        int
	active       int

	virtual Tag    // V
	seq     uint64 // the last decision
	last    uint64 // the last decision that was not undone, as far as the order is concerned

	out    []Decision
	picks  []uint32 // the Runs of out
	fresh  []uint32 // started by the last Decide, to be learnt from by the next
	asides []uint32 // shapes that don't fit, in order
	holds  []hold   // reservations of the last Decide
	fits   []uint32 // scratch of a search for runners
	ends   []ending // scratch of a reservation

	learnt   [bands]calibration
	restored bool // tags were taken up, and no decision was made since
	forward  bool // a copy that is played forward: nothing is learnt
}

// New makes an empty pool.
func New(p Policy) (*Machine, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return &Machine{
		policy: p, byID: map[string]uint32{}, tenantOf: map[string]uint32{}, shapeOf: map[need]uint32{},
		selectorOf: map[string]uint32{}, runnerOf: map[string]uint32{}, kindsVersion: 1,
		runs: make([]record, 1), ids: make([]string, 1), tenants: make([]tenant, 1), lanes: []lane{{at: -1}},
		shapes: []shape{{at: -1}}, selectors: make([]selector, 1), runners: make([]runner, 1),
	}, nil
}

// SetPolicy changes the policy. Runs that have their place keep it.
func (m *Machine) SetPolicy(now clock.Mono, p Policy) error {
	if err := p.Validate(); err != nil {
		return err
	}
	m.wake(now)
	m.policy = p
	m.recheck(func(*shape) bool { return true })
	return nil
}

// Check says what is wrong with a Run that somebody wants to submit: InvalidInput with the field.
func (m *Machine) Check(r Run) error {
	switch {
	case r.ID == "":
		return fault.Invalid("run", "must have an id")
	case r.Tenant == "":
		return fault.Invalid("tenant", "must have an id")
	case r.Need == Vector{}:
		return fault.Invalid("resources", "must be something")
	case r.Timeout <= 0 || r.Timeout > maxTimeout:
		return fault.Invalid("timeout", "must be over 0 and at most %s, is %s", maxTimeout, r.Timeout)
	case r.Expected <= 0 || r.Expected > r.Timeout:
		return fault.Invalid("expected", "must be over 0 and at most the timeout of %s, is %s", r.Timeout, r.Expected)
	case r.Fast < 0 || r.Slow < 0 || r.Slow > 0 && r.Slow < r.Fast:
		return fault.Invalid("expected", "its spread must go from less to more, is %s to %s", r.Fast, r.Slow)
	case r.Priority < -m.policy.MaxPriority || r.Priority > m.policy.MaxPriority:
		return fault.Invalid("priority", "must be between %d and %d, is %d", -m.policy.MaxPriority, m.policy.MaxPriority, r.Priority)
	}
	for i, l := range r.Labels {
		if l.Name == "" {
			return fault.Invalid("labels", "label %d must have a name", i)
		}
	}
	return amounts("resources", r.Need)
}

// maxTimeout of a Run.
const maxTimeout = 366 * 24 * time.Hour

// Fits reports whether a Run could ever start here as the runners and caps are now; false also while none is known.
func (m *Machine) Fits(r Run) bool {
	if m.known == 0 || m.Check(r) != nil {
		return false
	}
	if i, known := m.tenantOf[r.Tenant]; known && !r.Need.within(&m.tenants[i].cap, &Vector{}) {
		return false
	}
	s := m.joinShape(r.Need, r.Timeout, r.Labels)
	defer m.leaveShape(s)
	return m.shapes[s].alive
}

// Submit takes a Run into the queue, new or restored. InvalidInput names a field, AlreadyExists a Run that is known.
// A Run that never fits is taken: Why says so, and it is looked at again when runners or caps change.
func (m *Machine) Submit(now clock.Mono, r Run) error {
	h, err := m.enter(now, r)
	if err != nil {
		return err
	}
	m.queue(now, h)
	return nil
}

// enter makes the record of a Run.
func (m *Machine) enter(now clock.Mono, r Run) (uint32, error) {
	if err := m.Check(r); err != nil {
		return 0, err
	}
	if m.byID[r.ID] != 0 {
		return 0, fault.New(fault.AlreadyExists, "run %s is in the queue already", r.ID)
	}
	m.wake(now)
	h := m.take(r.ID)
	m.byID[r.ID] = h
	n := &m.runs[h]
	n.tenant, n.shape = m.tenant(r.Tenant), m.joinShape(r.Need, r.Timeout, r.Labels)
	n.timeout, n.expected, n.fast, n.slow = r.Timeout, r.Expected, r.Fast, r.Slow
	if n.fast == 0 {
		n.fast = r.Expected / 2
	}
	if n.slow == 0 {
		n.slow = 2 * r.Expected
	}
	n.priority, n.blockers = int16(r.Priority), r.Blockers
	n.notBefore, n.quota = r.NotBefore, r.QuotaUntil
	if r.Eligible {
		m.rank(n, r.EligibleAt)
	}
	return h, nil
}

// rank gives a Run its place among those of its tenant, once and for good.
func (m *Machine) rank(r *record, at clock.Mono) {
	r.ranked, r.eligible = true, at
	r.key = int64(at) - int64(r.priority)*int64(m.policy.PriorityStep)
}

// queue lets a Run wait, with or without a blocker.
func (m *Machine) queue(now clock.Mono, h uint32) {
	r := &m.runs[h]
	r.state, r.where = queued, parked
	m.tenants[r.tenant].queued++
	m.queued++
	m.reconsider(now, h)
}

// reconsider moves a queued Run after its blockers changed.
func (m *Machine) reconsider(now clock.Mono, h uint32) {
	r := &m.runs[h]
	t := &m.tenants[r.tenant]
	timed := r.due() > now
	if r.timer >= 0 {
		m.timers = drop(byDue{m}, m.timers, r.timer)
	}
	if timed {
		m.timers = push(byDue{m}, m.timers, h)
	}
	switch free := r.blockers == 0 && !timed; {
	case free && r.where == parked:
		if !r.ranked {
			m.rank(r, now)
		}
		t.ready++
		m.ready++
		m.line(h)
		m.refresh(r.tenant)
	case !free && r.where != parked:
		t.ready--
		m.ready--
		m.unline(h)
		m.refresh(r.tenant)
	}
}

// unqueue takes a queued Run out, wherever it stands. The tenant is refreshed by whoever calls.
func (m *Machine) unqueue(h uint32) {
	r := &m.runs[h]
	t := &m.tenants[r.tenant]
	if r.timer >= 0 {
		m.timers = drop(byDue{m}, m.timers, r.timer)
	}
	if r.where != parked {
		t.ready--
		m.ready--
		m.unline(h)
	}
	t.queued--
	m.queued--
}

// wake lets go whose timed blocker ended, each as of that instant: a late call makes nobody's place worse.
func (m *Machine) wake(now clock.Mono) {
	for len(m.timers) > 0 {
		h := m.timers[0]
		due := m.runs[h].due()
		if due > now {
			return
		}
		m.reconsider(due, h)
	}
}

// Next is when the next Run loses its last timed blocker: Decide has something new to look at then.
func (m *Machine) Next() (at clock.Mono, ok bool) {
	if len(m.timers) == 0 {
		return 0, false
	}
	return m.runs[m.timers[0]].due(), true
}

// Cancel takes a queued Run out; false when none is queued. An active Run ends by Finish, when its process is gone.
func (m *Machine) Cancel(now clock.Mono, id string) bool {
	m.wake(now)
	h := m.find(id, queued)
	if h == 0 {
		return false
	}
	m.unqueue(h)
	m.refresh(m.runs[h].tenant)
	m.release(h)
	return true
}

// Position is when a queued or active Run could first have started, for its row; false while it never could.
func (m *Machine) Position(id string) (eligibleAt clock.Mono, ok bool) {
	r := &m.runs[m.byID[id]]
	return r.eligible, r.ranked
}
