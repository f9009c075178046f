package dispatch

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// need is what two Runs have in common when one starts wherever the other could: the shape of a Run. Most pools know a
// few dozen. What fits is asked once for a shape, not for each Run or tenant.
type need struct {
	vector   Vector
	timeout  time.Duration // of the longest of them, up to a quarter more than of each: see rounded
	selector uint32
}

// rounded is a timeout rounded up to one of four in a doubling, so that Runs of a little different timeouts are one
// shape. It only says who may go before a reservation is due; when an Attempt ends at the latest is exact.
func rounded(timeout time.Duration) time.Duration {
	step := time.Duration(1) << max(0, bits.Len64(uint64(timeout-1))-3)
	return (timeout + step - 1) / step * step
}

// shape is one need, and who has Runs of it.
type shape struct {
	need
	refs   int32    // Runs of it, queued and active
	at     int32    // in Machine.order; -1: nobody of it may start, or it is aside
	alive  bool     // some runner could hold it
	turned bool     // alive is not what it was
	lanes  []uint32 // heap by finish tag, then tenant: those who may start
	kinds  []uint32 // of runners that match
	seen   uint32   // the version of Machine.kinds that kinds is of
	aside  bool     // doesn't fit now, as this call of Decide found
}

// selector is a set of labels that some Runs ask for.
type selector struct {
	labels []Label // in order
	key    string
	refs   int32 // shapes
}

// fits reports whether v is no more than have.
func (v Vector) fits(have *Vector) bool {
	for r := range v {
		if v[r] > have[r] {
			return false
		}
	}
	return true
}

// within reports whether v on top of used stays within a cap; 0 is no bound.
func (v Vector) within(limit, used *Vector) bool {
	for r := range v {
		if limit[r] > 0 && v[r] > 0 && v[r]+used[r] > limit[r] {
			return false
		}
	}
	return true
}

func (v *Vector) add(o *Vector, sign int64) {
	for r := range v {
		v[r] += sign * o[r]
	}
}

// share is the dominant share of a need: what it takes of the resource that it takes most of.
func (v Vector) share(capacity *Vector) Share {
	most := Share(1)
	for r, n := range v {
		switch {
		case n <= 0:
		case n >= capacity[r]:
			return WholePool
		default:
			most = max(most, Share(part(n, int64(WholePool), capacity[r])))
		}
	}
	return most
}

// cost is the time of the whole pool that a share takes in a time.
func (s Share) cost(d time.Duration) time.Duration {
	return time.Duration(part(int64(s), max(0, int64(d)), int64(WholePool)))
}

// part is a*b/c, rounded up, for b <= c or a <= c.
func part(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	lo, carry := bits.Add64(lo, uint64(c-1), 0)
	q, _ := bits.Div64(hi+carry, lo, uint64(c))
	return int64(q)
}

// canonical is a set of labels in order, and as a key.
func canonical(labels []Label) ([]Label, string) {
	if len(labels) == 0 {
		return nil, ""
	}
	sorted := slices.Clone(labels)
	slices.SortFunc(sorted, func(a, b Label) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Value, b.Value))
	})
	sorted = slices.Compact(sorted)
	var b strings.Builder
	for _, l := range sorted {
		b.WriteString(l.Name)
		b.WriteByte(0)
		b.WriteString(l.Value)
		b.WriteByte(1)
	}
	return sorted, b.String()
}

// joinShape is the shape of a need, with one Run more.
func (m *Machine) joinShape(v Vector, timeout time.Duration, labels []Label) uint32 {
	sorted, key := canonical(labels)
	sel, known := m.selectorOf[key]
	if !known {
		sel, m.freeSelectors = reuse(&m.selectors, m.freeSelectors)
		m.selectors[sel] = selector{labels: sorted, key: key}
		m.selectorOf[key] = sel
	}
	n := need{v, rounded(timeout), sel}
	s, known := m.shapeOf[n]
	if !known {
		s, m.freeShapes = reuse(&m.shapes, m.freeShapes)
		m.shapes[s] = shape{need: n, at: -1}
		m.shapes[s].alive = m.ever(&m.shapes[s])
		m.shapeOf[n] = s
		if v[Slots] == 0 {
			m.slotless++
		}
		m.selectors[sel].refs++
	}
	m.shapes[s].refs++
	return s
}

// leaveShape takes a Run of a shape away, and the shape with the last one.
func (m *Machine) leaveShape(s uint32) {
	sh := &m.shapes[s]
	if sh.refs--; sh.refs > 0 {
		return
	}
	delete(m.shapeOf, sh.need)
	if sh.vector[Slots] == 0 {
		m.slotless--
	}
	sel := sh.selector
	*sh = shape{at: -1}
	m.freeShapes = append(m.freeShapes, s)
	if m.selectors[sel].refs--; m.selectors[sel].refs == 0 {
		delete(m.selectorOf, m.selectors[sel].key)
		m.selectors[sel] = selector{}
		m.freeSelectors = append(m.freeSelectors, sel)
	}
}

// reuse finds an element that nobody uses, or makes one.
func reuse[T any](all *[]T, unused []uint32) (uint32, []uint32) {
	if n := len(unused); n > 0 {
		return unused[n-1], unused[:n-1]
	}
	var none T
	*all = append(*all, none)
	return uint32(len(*all) - 1), unused
}

// ever reports whether some runner could hold a shape if it were empty and online. While no runner is known everything
// could: nothing is said of a pool that nobody has joined yet.
func (m *Machine) ever(sh *shape) bool {
	if !sh.vector.within(&m.policy.Cap, &Vector{}) {
		return false
	}
	for _, k := range m.matching(sh) {
		for _, x := range m.kinds[k].runners {
			if sh.vector.fits(&m.runners[x].capacity) {
				return true
			}
		}
	}
	return m.known == 0
}

// matching are the kinds of runners whose labels a shape asks for.
func (m *Machine) matching(sh *shape) []uint32 {
	if sh.seen == m.kindsVersion {
		return sh.kinds
	}
	sh.kinds, sh.seen = sh.kinds[:0], m.kindsVersion
	wanted := m.selectors[sh.selector].labels
	for k := range m.kinds {
		if len(m.kinds[k].runners) > 0 && carries(m.kinds[k].labels, wanted) {
			sh.kinds = append(sh.kinds, uint32(k))
		}
	}
	slices.SortFunc(sh.kinds, func(a, b uint32) int { return strings.Compare(m.kinds[a].key, m.kinds[b].key) })
	return sh.kinds
}

// carries reports whether all wanted labels are among have; both are in order.
func carries(have, wanted []Label) bool {
	i := 0
	for _, w := range wanted {
		for i < len(have) && have[i] != w {
			i++
		}
		if i == len(have) {
			return false
		}
	}
	return true
}

// recheck looks again at which shapes some runner could hold, and moves the Runs of those that changed.
func (m *Machine) recheck(again func(*shape) bool) {
	changed := false
	for i := range m.shapes {
		sh := &m.shapes[i]
		if sh.refs == 0 || !again(sh) {
			continue
		}
		if alive := m.ever(sh); alive != sh.alive {
			sh.alive, sh.turned, changed = alive, true, true
		}
	}
	if !changed {
		return
	}
	for h := range m.runs {
		if r := &m.runs[h]; r.state == queued && r.where != parked && m.shapes[r.shape].turned {
			m.reline(uint32(h))
		}
	}
	for i := range m.shapes {
		m.shapes[i].turned = false
	}
}
