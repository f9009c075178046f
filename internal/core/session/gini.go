package session

import "slices"

// Bounds of a look at the sizes that wait.
const (
	giniMost  = 2000  // sizes compared
	giniLooks = 65536 // records looked at to find them
)

// Gini is the Gini coefficient of the bytes that waiting sessions want: 0 when all want the same, near 1 when a few
// want nearly everything. From 1/2 on, whole files in order of arrival serve worse on average than sharing would; it
// comes from a sample, and is made once a tick at most. ok is false while fewer than two wait.
func (m *Machine) Gini() (g float64, ok bool) {
	if m.giniMade {
		return m.gini, m.giniKnown
	}
	m.giniMade = true
	sizes, used := m.sizes[:0], m.records.used
	for i := uint32(0); i < min(used, giniLooks) && len(sizes) < giniMost; i++ {
		h := 1 + i
		if used > giniMost { // steps of the golden section meet no pattern of the arrivals
			h = 1 + uint32(uint64(i*0x9e3779b1)*uint64(used)>>32)
		}
		if r := m.records.at(h); r.state == waiting {
			sizes = append(sizes, r.left)
		}
	}
	m.sizes = sizes
	m.gini, m.giniKnown = gini(sizes)
	return m.gini, m.giniKnown
}

// gini sorts the sizes and compares them.
func gini(sizes []int64) (g float64, ok bool) {
	if len(sizes) < 2 {
		return 0, false
	}
	slices.Sort(sizes)
	var sum, weighted float64
	n := float64(len(sizes))
	for i, s := range sizes {
		sum += float64(s)
		weighted += (2*float64(i+1) - n - 1) * float64(s)
	}
	if sum == 0 {
		return 0, true
	}
	return weighted / (n * sum), true
}
