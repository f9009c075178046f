package dispatch

import (
	"slices"
	"strings"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
)

// maxLanes is how many different needs of one tenant are looked at. A tenant that asks for something else with each Run
// has the rest of them wait behind these, so that it slows only itself.
const maxLanes = 64

// tenant is who shares the pool.
type tenant struct {
	account
	id       string
	weight   int
	cap      Vector
	used     Vector
	queued   int
	ready    int
	active   int
	waiting  bool // it stands in the order: it has work that could start and is under its cap
	kept     bool // its tags come from rows, and no decision was made since
	lanes    []uint32
	overflow []uint32 // heap by key
}

// lane is the Runs of one tenant that need the same.
type lane struct {
	tenant, shape uint32
	finish        Tag      // the tenant's, kept here because heaps look at it
	at            int32    // in the shape's heap; -1: it stands aside
	runs          []uint32 // heap by key
}

// byFinish orders lanes of one shape.
type byFinish struct{ m *Machine }

func (o byFinish) before(a, b uint32) bool {
	x, y := &o.m.lanes[a], &o.m.lanes[b]
	return x.finish < y.finish || x.finish == y.finish && o.m.tenants[x.tenant].id < o.m.tenants[y.tenant].id
}
func (o byFinish) placed(h uint32, at int32) { o.m.lanes[h].at = at }

// byHead orders shapes by the Run that would be next of each: by tenant, and then inside the tenant.
type byHead struct{ m *Machine }

func (o byHead) before(a, b uint32) bool {
	x, y := &o.m.lanes[o.m.shapes[a].lanes[0]], &o.m.lanes[o.m.shapes[b].lanes[0]]
	switch {
	case x.finish != y.finish:
		return x.finish < y.finish
	case x.tenant != y.tenant:
		return o.m.tenants[x.tenant].id < o.m.tenants[y.tenant].id
	}
	return byKey(o).before(x.runs[0], y.runs[0])
}
func (o byHead) placed(h uint32, at int32) { o.m.shapes[h].at = at }

// SetTenant makes a tenant known, or changes its weight and cap. A tenant that was never set has weight 1 and no cap.
func (m *Machine) SetTenant(now clock.Mono, t Tenant) error {
	switch {
	case t.ID == "":
		return fault.Invalid("tenant", "must have an id")
	case t.Weight < 1 || t.Weight > MaxWeight:
		return fault.Invalid("weight", "must be between 1 and %d, is %d", MaxWeight, t.Weight)
	}
	if err := amounts("cap", t.Cap); err != nil {
		return err
	}
	m.wake(now)
	i := m.tenant(t.ID)
	o := &m.tenants[i]
	if o.weight != t.Weight {
		o.weight = t.Weight
		o.begin()
		o.changes++
	}
	if o.cap == t.Cap {
		return nil
	}
	o.cap = t.Cap
	for h := 1; h < len(m.runs) && o.queued > 0; h++ {
		if r := &m.runs[h]; r.state == queued && r.where != parked && r.tenant == i {
			m.reline(uint32(h)) // what is larger than the cap never fits
		}
	}
	m.refresh(i)
	return nil
}

// amounts checks a vector that a user or an operator gave.
func amounts(field string, v Vector) error {
	for i, n := range v {
		if n < 0 || n > maxAmount {
			return fault.Invalid(field, "resource %d must be between 0 and %d, is %d", i, int64(maxAmount), n)
		}
	}
	return nil
}

// maxAmount of a resource; a pool can add up some thousand of them.
const maxAmount = 1 << 50

// tenant finds a tenant, or makes one of weight 1.
func (m *Machine) tenant(id string) uint32 {
	if i, known := m.tenantOf[id]; known {
		return i
	}
	i := uint32(len(m.tenants))
	m.tenants = append(m.tenants, tenant{id: id, weight: 1})
	m.tenantOf[id] = i
	return i
}

// line puts a Run that has no blocker where it waits.
func (m *Machine) line(h uint32) {
	r := &m.runs[h]
	t, sh := &m.tenants[r.tenant], &m.shapes[r.shape]
	if !sh.alive || !sh.vector.within(&t.cap, &Vector{}) {
		r.where = unfit
		return
	}
	l := m.laneOf(t, r.shape)
	if l == 0 && len(t.lanes) == maxLanes {
		r.where = overflow
		t.overflow = push(byKey{m}, t.overflow, h)
		return
	}
	if l == 0 {
		l, m.freeLanes = reuse(&m.lanes, m.freeLanes)
		m.lanes[l] = lane{tenant: r.tenant, shape: r.shape, at: -1, runs: m.lanes[l].runs[:0]}
		t.lanes = append(t.lanes, l)
	}
	r.where = inLane
	m.lanes[l].runs = push(byKey{m}, m.lanes[l].runs, h)
	if m.lanes[l].at == 0 {
		m.fixShape(r.shape) // the lane's first may be another now
	}
}

// unline takes a Run out from where it waits.
func (m *Machine) unline(h uint32) {
	r := &m.runs[h]
	t := &m.tenants[r.tenant]
	switch r.where {
	case overflow:
		t.overflow = drop(byKey{m}, t.overflow, r.at)
	case inLane:
		l := m.laneOf(t, r.shape)
		m.lanes[l].runs = drop(byKey{m}, m.lanes[l].runs, r.at)
		if len(m.lanes[l].runs) == 0 {
			m.endLane(t, l)
		} else if m.lanes[l].at == 0 {
			m.fixShape(r.shape)
		}
	}
	r.where = parked
}

// endLane forgets a lane that ran empty, and lets in who waits for one.
func (m *Machine) endLane(t *tenant, l uint32) {
	m.standAside(l)
	for i := range t.lanes {
		if t.lanes[i] == l {
			t.lanes[i] = t.lanes[len(t.lanes)-1]
			t.lanes = t.lanes[:len(t.lanes)-1]
			break
		}
	}
	m.freeLanes = append(m.freeLanes, l)
	for len(t.overflow) > 0 {
		h := t.overflow[0]
		if len(t.lanes) == maxLanes && m.laneOf(t, m.runs[h].shape) == 0 {
			return
		}
		t.overflow = drop(byKey{m}, t.overflow, 0)
		m.line(h)
	}
}

// reline moves a Run to where it belongs now.
func (m *Machine) reline(h uint32) {
	m.unline(h)
	m.line(h)
	m.refresh(m.runs[h].tenant)
}

func (m *Machine) laneOf(t *tenant, shape uint32) uint32 {
	for _, l := range t.lanes {
		if m.lanes[l].shape == shape {
			return l
		}
	}
	return 0
}

// head is the first of a tenant's Runs that could start, by key; 0: none.
func (m *Machine) head(t *tenant) (h uint32) {
	for _, l := range t.lanes {
		if first := m.lanes[l].runs[0]; h == 0 || (byKey{m}).before(first, h) {
			h = first
		}
	}
	return h
}

// refresh takes a tenant into the order or out of it, after its work or what it uses changed. A tenant whose first Run
// would be over its cap waits for its own Runs to end, with all it has: if smaller ones went first, the first might
// wait for ever.
func (m *Machine) refresh(i uint32) {
	t := &m.tenants[i]
	h := m.head(t)
	may := h != 0 && m.shapes[m.runs[h].shape].vector.within(&t.cap, &t.used)
	if !may {
		if t.waiting {
			t.waiting = false
			for _, l := range t.lanes {
				m.standAside(l)
			}
		}
		return
	}
	if !t.waiting {
		t.waiting = true
		if !m.restored { // what a rebuild makes of it on the way does not count
			t.comes(m.virtual)
		}
	}
	for _, l := range t.lanes {
		if m.lanes[l].at < 0 {
			s := m.lanes[l].shape
			m.lanes[l].finish = t.finish
			m.shapes[s].lanes = push(byFinish{m}, m.shapes[s].lanes, l)
			m.fixShape(s)
		}
	}
}

// retag tells the order of a tenant's new finish tag.
func (m *Machine) retag(i uint32) {
	t := &m.tenants[i]
	for _, l := range t.lanes {
		if o := &m.lanes[l]; o.at >= 0 && o.finish != t.finish {
			o.finish = t.finish
			fix(byFinish{m}, m.shapes[o.shape].lanes, o.at)
			m.fixShape(o.shape)
		}
	}
}

// standAside takes a lane out of the order.
func (m *Machine) standAside(l uint32) {
	if o := &m.lanes[l]; o.at >= 0 {
		sh := &m.shapes[o.shape]
		sh.lanes = drop(byFinish{m}, sh.lanes, o.at)
		m.fixShape(o.shape)
	}
}

// fixShape puts a shape where it belongs in the order, after its first lane changed.
func (m *Machine) fixShape(s uint32) {
	sh := &m.shapes[s]
	switch {
	case len(sh.lanes) == 0 && sh.at >= 0:
		m.order = drop(byHead{m}, m.order, sh.at)
	case len(sh.lanes) == 0 || sh.aside:
	case sh.at < 0:
		m.order = push(byHead{m}, m.order, s)
	default:
		fix(byHead{m}, m.order, sh.at)
	}
}

// sorted are the tenants in the order of their ids.
func (m *Machine) sorted() []uint32 {
	all := make([]uint32, len(m.tenants)-1)
	for i := range all {
		all[i] = uint32(i + 1)
	}
	slices.SortFunc(all, func(a, b uint32) int { return strings.Compare(m.tenants[a].id, m.tenants[b].id) })
	return all
}
