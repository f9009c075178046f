package dispatch

import (
	"slices"
	"strings"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
)

// runner is a machine of the pool.
type runner struct {
	id       string
	capacity Vector
	free     Vector // below zero when the capacity shrank under what runs
	state    RunnerState
	kind     uint32
	leaf     int32    // in its kind
	runs     []uint32 // active ones, in no order
}

// kind is the runners that have the same labels, in the order of their ids. Over their free capacities stands a tree of
// largest amounts, so that a runner with room is found in O(log n) among many.
type kind struct {
	labels  []Label
	key     string
	runners []uint32
	online  int
	tree    []Vector // heap-shaped, 1 is the root; leaves begin at len(runners) rounded up to a power of two
	stale   bool     // runners changed: the tree is made anew before it is used
}

// nothing is what a runner has free that takes no work.
var nothing = Vector{-1, -1, -1, -1, -1}

// SetRunner adds a runner or changes it; what it runs goes on. Runs that never fitted are looked at again.
func (m *Machine) SetRunner(now clock.Mono, r Runner) error {
	if r.ID == "" {
		return fault.Invalid("runner", "must have an id")
	}
	for i, n := range r.Capacity {
		if n < 0 || n > maxAmount {
			return fault.Invalid("capacity", "resource %d must be between 0 and %d, is %d", i, int64(maxAmount), n)
		}
	}
	if r.State > Lost {
		return fault.Invalid("state", "must be active, draining or lost")
	}
	m.wake(now)
	labels, key := canonical(r.Labels)
	h, known := m.runnerOf[r.ID]
	var old runner
	var oldKey string
	if known {
		old = m.runners[h]
		oldKey = m.kinds[old.kind].key
		m.withdraw(h)
	} else {
		h, m.freeRunners = reuse(&m.runners, m.freeRunners)
		m.runnerOf[r.ID] = h
	}
	x := &m.runners[h]
	x.id, x.capacity, x.state, x.kind = r.ID, r.Capacity, r.State, m.kindOf(labels, key)
	x.free = x.capacity
	for _, run := range x.runs {
		x.free.add(&m.shapes[m.runs[run].shape].vector, -1)
	}
	m.deploy(h)
	moved := !known || oldKey != key
	switch {
	case m.known == 1 && !known:
		m.recheck(func(*shape) bool { return true }) // until now everything could be
	case moved || old.capacity != x.capacity:
		m.recheck(func(sh *shape) bool { return !sh.alive || known && sh.vector.fits(&old.capacity) })
	}
	return nil
}

// DropRunner forgets a runner and says which Runs it had, in the order of their ids. They stay active, on no runner,
// until the caller ends each with Finish or Requeue.
func (m *Machine) DropRunner(now clock.Mono, id string) (runs []string) {
	h, known := m.runnerOf[id]
	if !known {
		return nil
	}
	m.wake(now)
	m.withdraw(h)
	for _, run := range m.runners[h].runs {
		m.runs[run].runner = 0
		runs = append(runs, m.ids[run])
	}
	slices.Sort(runs)
	delete(m.runnerOf, id)
	capacity := m.runners[h].capacity
	m.runners[h] = runner{}
	m.freeRunners = append(m.freeRunners, h)
	m.recheck(func(sh *shape) bool { return sh.vector.fits(&capacity) || m.known == 0 })
	return runs
}

// kindOf is the kind of some labels.
func (m *Machine) kindOf(labels []Label, key string) uint32 {
	for k := range m.kinds {
		if m.kinds[k].key == key {
			return uint32(k)
		}
	}
	m.kindsVersion++
	for k := range m.kinds {
		if len(m.kinds[k].runners) == 0 {
			m.kinds[k] = kind{labels: labels, key: key, tree: m.kinds[k].tree}
			return uint32(k)
		}
	}
	m.kinds = append(m.kinds, kind{labels: labels, key: key})
	return uint32(len(m.kinds) - 1)
}

// deploy counts a runner in.
func (m *Machine) deploy(h uint32) {
	x := &m.runners[h]
	k := &m.kinds[x.kind]
	at, _ := slices.BinarySearchFunc(k.runners, x.id, func(r uint32, id string) int { return strings.Compare(m.runners[r].id, id) })
	k.runners = slices.Insert(k.runners, at, h)
	k.stale = true
	m.counted(h, 1)
	if len(k.runners) == 1 {
		m.kindsVersion++
	}
}

// withdraw counts a runner out.
func (m *Machine) withdraw(h uint32) {
	x := &m.runners[h]
	k := &m.kinds[x.kind]
	k.runners = slices.DeleteFunc(k.runners, func(r uint32) bool { return r == h })
	k.stale = true
	m.counted(h, -1)
	if len(k.runners) == 0 {
		m.kindsVersion++
	}
}

func (m *Machine) counted(h uint32, sign int) {
	x := &m.runners[h]
	m.known += sign
	if x.state != Lost {
		m.capacity.add(&x.capacity, int64(sign))
	}
	m.openSlots += int64(sign) * x.open()
	if x.state == Active {
		m.online += sign
		m.kinds[x.kind].online += sign
	}
}

// seat puts an Attempt on its runner; 0 is no runner.
func (m *Machine) seat(h, to uint32) {
	r := &m.runs[h]
	r.runner = to
	if to == 0 {
		return
	}
	x := &m.runners[to]
	r.seat = int32(len(x.runs))
	x.runs = append(x.runs, h)
	m.openSlots -= x.open()
	x.free.add(&m.shapes[r.shape].vector, -1)
	m.openSlots += x.open()
	m.refreshLeaf(to)
}

// unseat takes an Attempt off its runner.
func (m *Machine) unseat(h uint32) {
	r := &m.runs[h]
	if r.runner == 0 {
		return
	}
	x := &m.runners[r.runner]
	last := x.runs[len(x.runs)-1]
	x.runs[r.seat], m.runs[last].seat = last, r.seat
	x.runs = x.runs[:len(x.runs)-1]
	m.openSlots -= x.open()
	x.free.add(&m.shapes[r.shape].vector, 1)
	m.openSlots += x.open()
	m.refreshLeaf(r.runner)
	r.runner = 0
}

// offer is what a runner has free for new work.
func (x *runner) offer() Vector {
	if x.state != Active {
		return nothing
	}
	return x.free
}

// open is how many slots a runner has for new work.
func (x *runner) open() int64 {
	if x.state != Active {
		return 0
	}
	return max(0, x.free[Slots])
}

// plant makes the tree of a kind anew.
func (m *Machine) plant(k *kind) {
	leaves := 1
	for leaves < len(k.runners) {
		leaves *= 2
	}
	k.tree = slices.Grow(k.tree[:0], 2*leaves)[:2*leaves]
	for i := range leaves {
		k.tree[leaves+i] = nothing
		if i < len(k.runners) {
			x := &m.runners[k.runners[i]]
			x.leaf = int32(leaves + i)
			k.tree[leaves+i] = x.offer()
		}
	}
	for i := leaves - 1; i > 0; i-- {
		k.tree[i] = most(&k.tree[2*i], &k.tree[2*i+1])
	}
	k.stale = false
}

// refreshLeaf tells the tree what a runner has free now.
func (m *Machine) refreshLeaf(h uint32) {
	x := &m.runners[h]
	k := &m.kinds[x.kind]
	if k.stale {
		return
	}
	k.tree[x.leaf] = x.offer()
	for i := x.leaf / 2; i > 0; i /= 2 {
		v := most(&k.tree[2*i], &k.tree[2*i+1])
		if v == k.tree[i] {
			return
		}
		k.tree[i] = v
	}
}

func most(a, b *Vector) (v Vector) {
	for r := range v {
		v[r] = max(a[r], b[r])
	}
	return v
}
