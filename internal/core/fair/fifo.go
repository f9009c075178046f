package fair

import "slices"

// smallFIFO is how many sessions a principal keeps in one sorted slice; past it the slice becomes a ranked set.
const smallFIFO = 256

// fifo holds the waiting sessions of one lane by order. Most principals of a wide fleet have one session, which
// costs no allocation.
type fifo struct {
	one   entry // the only entry when n == 1 and small is nil
	small []entry
	big   *ranks
	n     int
}

func (f *fifo) insert(e entry) {
	f.n++
	switch {
	case f.big != nil:
		f.big.insert(e)
	case f.n == 1 && f.small == nil:
		f.one = e
	case f.small == nil:
		f.small = append(make([]entry, 0, 4), f.one)
		fallthrough
	case len(f.small) < smallFIFO:
		f.small = slices.Insert(f.small, lowerBound(f.small, e), e)
	default:
		f.big = &ranks{}
		for _, o := range f.small {
			f.big.insert(o)
		}
		f.small = nil
		f.big.insert(e)
	}
}

func (f *fifo) remove(e entry) bool {
	switch {
	case f.big != nil:
		if !f.big.remove(e) {
			return false
		}
	case f.small != nil:
		p := lowerBound(f.small, e)
		if p == len(f.small) || f.small[p].order != e.order {
			return false
		}
		f.small = slices.Delete(f.small, p, p+1)
	case f.n == 0 || f.one.order != e.order:
		return false
	}
	f.n--
	return true
}

func (f *fifo) rank(e entry) int {
	switch {
	case f.big != nil:
		return f.big.rank(e)
	case f.small != nil:
		return lowerBound(f.small, e)
	}
	return 0
}

// at is the i-th entry, i below n.
func (f *fifo) at(i int) entry {
	switch {
	case f.big != nil:
		return f.big.at(i)
	case f.small != nil:
		return f.small[i]
	}
	return f.one
}
