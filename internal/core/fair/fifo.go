package fair

// smallFIFO is how many sessions a principal keeps in one sorted slice; past it the slice becomes a ranked set.
const smallFIFO = 256

// fifo holds the waiting sessions of one lane by order. Most principals of a wide fleet have one session, which
// costs no allocation. The ends are kept beside the slice, so that a search knows where to look before it touches it:
// with a million waiting, what is touched is what an operation costs.
type fifo struct {
	first, last entry   // the ends of small, or the only entry; not kept once there is big
	small       []entry // the entries are small[head:head+n]; nil until there are two
	big         *ranks
	head        int32
	n           int32
}

func (f *fifo) live() []entry { return f.small[f.head : f.head+f.n] }

// find is the index of the first entry that is not before e, while there is no big.
func (f *fifo) find(e entry) int {
	switch {
	case f.n == 0 || !f.first.before(e):
		return 0
	case f.last.before(e):
		return int(f.n)
	}
	return within(f.live(), e, f.first, f.last)
}

func (f *fifo) insert(e entry) {
	switch {
	case f.big != nil:
		f.big.insert(e)
	case f.n == smallFIFO:
		f.big = &ranks{}
		for _, o := range f.live() {
			f.big.insert(o)
		}
		f.small = nil
		f.big.insert(e)
	case f.n == 0 && f.small == nil:
		f.first, f.last = e, e
	default:
		f.put(e)
	}
	f.n++
}

// put makes room for e in the slice.
func (f *fifo) put(e entry) {
	if f.small == nil {
		f.small = make([]entry, 4)
		f.small[0] = f.first
	}
	if int(f.head+f.n) == len(f.small) {
		f.shift()
	}
	p, s := f.find(e), f.small[f.head:f.head+f.n+1]
	copy(s[p+1:], s[p:])
	s[p] = e
	f.first, f.last = s[0], s[f.n]
}

// shift moves the entries to the front of the slice, or of one twice as long when few have left at the front.
func (f *fifo) shift() {
	to := f.small
	if int(f.head) < len(f.small)/4 {
		to = make([]entry, 2*len(f.small))
	}
	copy(to, f.live())
	f.small, f.head = to, 0
}

func (f *fifo) remove(e entry) bool {
	switch {
	case f.big != nil:
		if !f.big.remove(e) {
			return false
		}
	case f.small != nil:
		if !f.cut(e) {
			return false
		}
	case f.n == 0 || f.first.order != e.order:
		return false
	}
	f.n--
	return true
}

// cut takes e out of the slice by moving the shorter side.
func (f *fifo) cut(e entry) bool {
	p, s := f.find(e), f.live()
	if p == len(s) || s[p].order != e.order {
		return false
	}
	if p < len(s)/2 {
		copy(s[1:], s[:p])
		f.head++
		s = s[1:]
	} else {
		copy(s[p:], s[p+1:])
		s = s[:len(s)-1]
	}
	switch {
	case len(s) == 0:
	case p == 0:
		f.first = s[0]
	case p == len(s):
		f.last = s[p-1]
	}
	return true
}

func (f *fifo) rank(e entry) int {
	if f.big != nil {
		return f.big.rank(e)
	}
	return f.find(e)
}

// at is the i-th entry, i below n.
func (f *fifo) at(i int) entry {
	switch {
	case f.big != nil:
		return f.big.at(i)
	case i == 0:
		return f.first
	}
	return f.live()[i]
}
