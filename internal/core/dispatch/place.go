package dispatch

import (
	"cmp"
	"slices"

	"github.com/roadstead/roadstead/internal/clock"
)

const (
	reservations  = 4    // Runs that don't fit and have a runner reserved, at once
	reserveLook   = 1024 // runners that are looked at for one
	candidateLook = 16   // runners with room of which the tightest is taken
)

// hold is a reservation: a Run that doesn't fit anywhere now gets its room on a runner at an instant at the latest
// because others only go there if they are over by then or leave that room alone.
type hold struct {
	vector         Vector
	tenant, runner uint32
	at             clock.Mono
}

// ending is when an Attempt on a runner is over at the latest.
type ending struct {
	at  clock.Mono
	run uint32
}

// until is when an Attempt is over at the latest. One that is overdue may end any moment.
func (m *Machine) until(now clock.Mono, h uint32) clock.Mono {
	r := &m.runs[h]
	return max(now, r.since.Add(r.timeout))
}

// room finds the tightest of the first runners that a shape fits on now; 0: none.
func (m *Machine) room(now clock.Mono, sh *shape) (best uint32) {
	least := int64(0)
	for _, k := range m.matching(sh) {
		kind := &m.kinds[k]
		if kind.online == 0 {
			continue
		}
		if kind.stale {
			m.plant(kind)
		}
		m.fits = m.fits[:0]
		m.search(now, sh, kind, 1)
		for _, x := range m.fits {
			left := m.left(x, &sh.vector)
			if best == 0 || left < least || left == least && m.runners[x].id < m.runners[best].id {
				best, least = x, left
			}
		}
	}
	return best
}

// full reports whether there is no slot anywhere, and everybody needs one: then nobody need be asked.
func (m *Machine) full() bool { return m.openSlots == 0 && m.slotless == 0 }

// search collects runners with room under a node of a kind's tree, in the order of their ids.
func (m *Machine) search(now clock.Mono, sh *shape, k *kind, node int) {
	if len(m.fits) == candidateLook || !sh.vector.fits(&k.tree[node]) {
		return
	}
	if leaves := len(k.tree) / 2; node >= leaves {
		if x := k.runners[node-leaves]; m.respects(now, sh, x) {
			m.fits = append(m.fits, x)
		}
		return
	}
	m.search(now, sh, k, 2*node)
	m.search(now, sh, k, 2*node+1)
}

// left measures what a runner would have free beside a need: thousandths of its capacity, summed over its resources.
func (m *Machine) left(x uint32, v *Vector) (sum int64) {
	r := &m.runners[x]
	for i := range v {
		if r.capacity[i] > 0 {
			sum += part(r.free[i]-v[i], 1000, r.capacity[i])
		}
	}
	return sum
}

// respects reports whether a Run of a shape may start on a runner without delaying who has it reserved.
func (m *Machine) respects(now clock.Mono, sh *shape, x uint32) bool {
	for i := range m.holds {
		o := &m.holds[i]
		if o.runner != x || now.Add(sh.timeout) <= o.at {
			continue
		}
		then := m.freeAt(now, x, o.at)
		then.add(&o.vector, -1)
		if !sh.vector.fits(&then) {
			return false
		}
	}
	return true
}

// freeAt is what a runner has free at an instant if every Attempt takes its whole timeout.
func (m *Machine) freeAt(now clock.Mono, x uint32, at clock.Mono) Vector {
	v := m.runners[x].free
	for _, h := range m.runners[x].runs {
		if m.until(now, h) <= at {
			v.add(&m.shapes[m.runs[h].shape].vector, 1)
		}
	}
	return v
}

// reserve finds the runner where the first Run of a shape that doesn't fit now will fit first. It is found anew in each
// call of Decide, so that it needs no place in any row, and never lies later than it did.
func (m *Machine) reserve(now clock.Mono, s uint32) {
	sh := &m.shapes[s]
	if len(m.holds) == reservations || len(sh.lanes) == 0 {
		return
	}
	o := hold{vector: sh.vector, tenant: m.lanes[sh.lanes[0]].tenant}
	for i := range m.holds {
		if m.holds[i].tenant == o.tenant {
			return // a tenant has one at a time
		}
	}
	looked := 0
	for _, k := range m.matching(sh) {
		for _, x := range m.kinds[k].runners {
			r := &m.runners[x]
			if looked == reserveLook {
				break
			}
			if r.state != Active || !sh.vector.fits(&r.capacity) || m.held(x) {
				continue
			}
			looked++
			if at, ok := m.fitsAt(now, x, &sh.vector); ok && (o.runner == 0 || at < o.at) {
				o.runner, o.at = x, at
			}
		}
	}
	if o.runner != 0 {
		m.holds = append(m.holds, o)
	}
}

func (m *Machine) held(x uint32) bool {
	return slices.ContainsFunc(m.holds, func(o hold) bool { return o.runner == x })
}

// fitsAt is when a runner has room for a need at the latest.
func (m *Machine) fitsAt(now clock.Mono, x uint32, v *Vector) (clock.Mono, bool) {
	m.ends = m.ends[:0]
	for _, h := range m.runners[x].runs {
		m.ends = append(m.ends, ending{m.until(now, h), h})
	}
	slices.SortFunc(m.ends, func(a, b ending) int { return cmp.Compare(a.at, b.at) })
	room := m.runners[x].free
	for i := range m.ends {
		room.add(&m.shapes[m.runs[m.ends[i].run].shape].vector, 1)
		if v.fits(&room) {
			return m.ends[i].at, true
		}
	}
	return 0, false
}
