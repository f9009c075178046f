package fair

import "slices"

// chunkSize is the most entries a chunk holds: 2 KiB of memory moved at worst by one insertion.
const chunkSize = 128

// entry is one element of a ranked set, ordered by round, then order. Pointer-free, so the collector never scans it.
type entry struct {
	order uint64
	round uint32
	item  uint32
}

func (e entry) before(o entry) bool {
	return e.round < o.round || e.round == o.round && e.order < o.order
}

// chunk is a run of entries in order; it grows to chunkSize and no further.
type chunk []entry

// shelf is a chunk under its first entry: who finds the one has the other in the same cache line or the next.
type shelf struct {
	first entry
	chunk chunk
}

// ranks is an ordered set that knows the rank of every entry: sorted chunks under a directory of first keys, with a
// Fenwick tree over the chunks' lengths. Insert, remove and rank cost O(log n) plus one short memory move.
type ranks struct {
	shelves []shelf
	fenwick []int32 // 1-based, over chunk lengths
	n       int
}

func (r *ranks) rebuild() {
	m := len(r.shelves)
	if cap(r.fenwick) < m+1 {
		r.fenwick = make([]int32, m+1, 2*m+2)
	}
	r.fenwick = r.fenwick[:m+1]
	for i := range r.shelves {
		r.fenwick[i+1] = int32(len(r.shelves[i].chunk))
	}
	for i := 1; i <= m; i++ {
		if j := i + i&-i; j <= m {
			r.fenwick[j] += r.fenwick[i]
		}
	}
}

func (r *ranks) bump(i int, d int32) {
	for i++; i < len(r.fenwick); i += i & -i {
		r.fenwick[i] += d
	}
}

// home is the chunk that holds or would hold e.
func (r *ranks) home(e entry) int {
	lo, hi := 0, len(r.shelves)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if e.before(r.shelves[mid].first) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return max(lo-1, 0)
}

// lowerBound is the index of the first entry of s that is not before e.
func lowerBound(s []entry, e entry) int {
	if len(s) == 0 {
		return 0
	}
	return within(s, e, s[0], s[len(s)-1])
}

// within is lowerBound for who knows the first entry of s and a bound of its last one, so that neither is touched.
// Orders are spread about evenly, so a guess by proportion lands near; from there it doubles its steps, the first of
// them a cache line. A cold chunk then costs a line or two, not seven.
func within(s []entry, e, first, last entry) int {
	if !first.before(e) {
		return 0
	}
	lo, hi := 1, len(s)
	if first.round == last.round && first.order < last.order && hi > 1 {
		at := int(float64(e.order-first.order) / float64(last.order-first.order) * float64(hi-1))
		lo, hi = near(s, e, min(max(at, 1), hi-1))
	}
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if s[mid].before(e) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// near brackets the lower bound of e, which is above 0, from a guess: it lies in lo..hi. The line of the guess and
// those beside it are asked for together, so that a cold chunk is waited for once.
func near(s []entry, e entry, at int) (lo, hi int) {
	const line = 4
	lo, hi = max(at-line, 0), min(at+line, len(s)-1)
	low, mid, high := s[lo].before(e), s[at].before(e), s[hi].before(e)
	switch {
	case !low:
		return down(s, e, lo)
	case high:
		return up(s, e, hi)
	case mid:
		return at + 1, hi
	}
	return lo + 1, at
}

// up brackets it above at, whose entry is before e.
func up(s []entry, e entry, at int) (lo, hi int) {
	for step := 8; ; step *= 2 {
		lo = at + 1
		if at += step; at >= len(s) || !s[at].before(e) {
			return lo, min(at, len(s))
		}
	}
}

// down brackets it at or below at, whose entry is not before e.
func down(s []entry, e entry, at int) (lo, hi int) {
	for step := 8; ; step *= 2 {
		hi = at
		if at -= step; at < 1 {
			return 1, max(hi, 1)
		}
		if s[at].before(e) {
			return at + 1, hi
		}
	}
}

// search is lowerBound in chunk i, which is e's home. The directory bounds it.
func (r *ranks) search(i int, e entry) int {
	c := r.shelves[i].chunk
	switch {
	case len(c) == 0:
		return 0
	case i+1 < len(r.shelves):
		return within(c, e, r.shelves[i].first, r.shelves[i+1].first)
	}
	return within(c, e, r.shelves[i].first, c[len(c)-1])
}

// insert adds e, which must not be in the set.
func (r *ranks) insert(e entry) {
	r.n++
	if len(r.shelves) == 0 {
		r.place(0, make(chunk, 0, 8), e)
	}
	i := r.home(e)
	if len(r.shelves[i].chunk) == chunkSize {
		i = r.split(i, e)
	}
	p := r.search(i, e)
	r.shelves[i].chunk = slices.Insert(r.shelves[i].chunk, p, e)
	if p == 0 {
		r.shelves[i].first = e
	}
	r.bump(i, 1)
}

// split makes room in the full chunk i and returns the chunk that e belongs to. An append at the end opens a fresh
// chunk, so a queue that only grows stays dense.
func (r *ranks) split(i int, e entry) int {
	c := r.shelves[i].chunk
	if i == len(r.shelves)-1 && c[chunkSize-1].before(e) {
		r.place(i+1, make(chunk, 0, 8), e)
		return i + 1
	}
	const half = chunkSize / 2
	next := append(make(chunk, 0, chunkSize), c[half:]...)
	r.shelves[i].chunk = append(make(chunk, 0, chunkSize), c[:half]...)
	r.bump(i, int32(half-len(c)))
	r.place(i+1, next, next[0])
	if e.before(next[0]) {
		return i
	}
	return i + 1
}

func (r *ranks) place(i int, c chunk, first entry) {
	r.shelves = slices.Insert(r.shelves, i, shelf{first, c})
	if m := len(r.shelves); i < m-1 || m == 1 {
		r.rebuild()
		return
	}
	// at the end the tree only grows by one sum
	m := len(r.shelves)
	r.fenwick = append(r.fenwick, int32(len(c)+r.before(m-1)-r.before(m-m&-m)))
}

// before is the number of entries in the first i chunks.
func (r *ranks) before(i int) (n int) {
	for ; i > 0; i -= i & -i {
		n += int(r.fenwick[i])
	}
	return n
}

// remove takes e out and reports whether it was there.
func (r *ranks) remove(e entry) bool {
	if r.n == 0 {
		return false
	}
	i := r.home(e)
	c := r.shelves[i].chunk
	p := r.search(i, e)
	if p == len(c) || c[p].order != e.order || c[p].round != e.round {
		return false
	}
	r.n--
	switch {
	case len(c) == 1:
		r.drop(i)
		return true
	case p == 0:
		r.shelves[i].chunk, r.shelves[i].first = c[1:], c[1] // the head goes without moving the rest
	default:
		r.shelves[i].chunk = slices.Delete(c, p, p+1)
	}
	r.bump(i, -1)
	r.join(i)
	return true
}

// join merges chunk i with its successor when both have become sparse, so that cancels don't leave the memory thin.
func (r *ranks) join(i int) {
	if i+1 >= len(r.shelves) || len(r.shelves[i].chunk) > chunkSize/4 || len(r.shelves[i].chunk)+len(r.shelves[i+1].chunk) > chunkSize*5/8 {
		return
	}
	if both := len(r.shelves[i].chunk) + len(r.shelves[i+1].chunk); cap(r.shelves[i].chunk) < both {
		r.shelves[i].chunk = append(make(chunk, 0, chunkSize), r.shelves[i].chunk...)
	}
	r.shelves[i].chunk = append(r.shelves[i].chunk, r.shelves[i+1].chunk...)
	r.drop(i + 1)
}

func (r *ranks) drop(i int) {
	r.shelves = slices.Delete(r.shelves, i, i+1)
	r.rebuild()
}

// rank is the number of entries before e.
func (r *ranks) rank(e entry) int {
	if r.n == 0 {
		return 0
	}
	i := r.home(e)
	return r.before(i) + r.search(i, e)
}

// at is the entry of rank i, which must be below n.
func (r *ranks) at(i int) entry {
	c, step := 0, 1
	for step*2 < len(r.fenwick) {
		step *= 2
	}
	for ; step > 0; step /= 2 {
		if c+step < len(r.fenwick) && int(r.fenwick[c+step]) <= i {
			c += step
			i -= int(r.fenwick[c])
		}
	}
	return r.shelves[c].chunk[i]
}

// min is the first entry of a set that is not empty.
func (r *ranks) min() entry { return r.shelves[0].first }

// walker steps through a set in order; the set must not change meanwhile.
type walker struct {
	set   *ranks
	chunk int
	off   int
}

// peek is the entry the walker stands at; ok is false past the end.
func (w *walker) peek() (e entry, ok bool) {
	for w.chunk < len(w.set.shelves) {
		if live := w.set.shelves[w.chunk].chunk; w.off < len(live) {
			return live[w.off], true
		}
		w.chunk, w.off = w.chunk+1, 0
	}
	return entry{}, false
}

func (w *walker) step() { w.off++ }
