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

// ranks is an ordered set that knows the rank of every entry: sorted chunks under a directory of first keys, with a
// Fenwick tree over the chunks' lengths. Insert, remove and rank cost O(log n) plus one short memory move.
type ranks struct {
	chunks  []chunk
	first   []entry // first entry of each chunk
	fenwick []int32 // 1-based, over chunk lengths
	n       int
}

func (r *ranks) rebuild() {
	m := len(r.chunks)
	if cap(r.fenwick) < m+1 {
		r.fenwick = make([]int32, m+1, 2*m+2)
	}
	r.fenwick = r.fenwick[:m+1]
	for i := range r.chunks {
		r.fenwick[i+1] = int32(len(r.chunks[i]))
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
	lo, hi := 0, len(r.first)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if e.before(r.first[mid]) {
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

// near brackets the lower bound of e, which is above 0, from a guess: it lies in lo..hi.
func near(s []entry, e entry, at int) (lo, hi int) {
	lo, hi = 1, len(s)
	if s[at].before(e) {
		for step := 4; ; step *= 2 {
			lo = at + 1
			if at += step; at >= hi || !s[at].before(e) {
				return lo, min(at, hi)
			}
		}
	}
	for step := 4; ; step *= 2 {
		hi = at
		if at -= step; at < lo {
			return lo, hi
		}
		if s[at].before(e) {
			return at + 1, hi
		}
	}
}

// search is lowerBound in chunk i, which is e's home. The directory bounds it.
func (r *ranks) search(i int, e entry) int {
	c := r.chunks[i]
	switch {
	case len(c) == 0:
		return 0
	case i+1 < len(r.first):
		return within(c, e, r.first[i], r.first[i+1])
	}
	return within(c, e, r.first[i], c[len(c)-1])
}

// insert adds e, which must not be in the set.
func (r *ranks) insert(e entry) {
	r.n++
	if len(r.chunks) == 0 {
		r.place(0, make(chunk, 0, 8), e)
	}
	i := r.home(e)
	if len(r.chunks[i]) == chunkSize {
		i = r.split(i, e)
	}
	p := r.search(i, e)
	r.chunks[i] = slices.Insert(r.chunks[i], p, e)
	if p == 0 {
		r.first[i] = e
	}
	r.bump(i, 1)
}

// split makes room in the full chunk i and returns the chunk that e belongs to. An append at the end opens a fresh
// chunk, so a queue that only grows stays dense.
func (r *ranks) split(i int, e entry) int {
	c := r.chunks[i]
	if i == len(r.chunks)-1 && c[chunkSize-1].before(e) {
		r.place(i+1, make(chunk, 0, 8), e)
		return i + 1
	}
	const half = chunkSize / 2
	next := append(make(chunk, 0, chunkSize), c[half:]...)
	r.chunks[i] = append(make(chunk, 0, chunkSize), c[:half]...)
	r.bump(i, int32(half-len(c)))
	r.place(i+1, next, next[0])
	if e.before(next[0]) {
		return i
	}
	return i + 1
}

func (r *ranks) place(i int, c chunk, first entry) {
	r.chunks = slices.Insert(r.chunks, i, c)
	r.first = slices.Insert(r.first, i, first)
	if m := len(r.chunks); i < m-1 || m == 1 {
		r.rebuild()
		return
	}
	// at the end the tree only grows by one sum
	m := len(r.chunks)
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
	c := r.chunks[i]
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
		r.chunks[i], r.first[i] = c[1:], c[1] // the head goes without moving the rest
	default:
		r.chunks[i] = slices.Delete(c, p, p+1)
	}
	r.bump(i, -1)
	r.join(i)
	return true
}

// join merges chunk i with its successor when both have become sparse, so that cancels don't leave the memory thin.
func (r *ranks) join(i int) {
	if i+1 >= len(r.chunks) || len(r.chunks[i]) > chunkSize/4 || len(r.chunks[i])+len(r.chunks[i+1]) > chunkSize*5/8 {
		return
	}
	if both := len(r.chunks[i]) + len(r.chunks[i+1]); cap(r.chunks[i]) < both {
		r.chunks[i] = append(make(chunk, 0, chunkSize), r.chunks[i]...)
	}
	r.chunks[i] = append(r.chunks[i], r.chunks[i+1]...)
	r.drop(i + 1)
}

func (r *ranks) drop(i int) {
	r.chunks = slices.Delete(r.chunks, i, i+1)
	r.first = slices.Delete(r.first, i, i+1)
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
	return r.chunks[c][i]
}

// min is the first entry of a set that is not empty.
func (r *ranks) min() entry { return r.first[0] }

// walker steps through a set in order; the set must not change meanwhile.
type walker struct {
	set   *ranks
	chunk int
	off   int
}

// peek is the entry the walker stands at; ok is false past the end.
func (w *walker) peek() (e entry, ok bool) {
	for w.chunk < len(w.set.chunks) {
		if live := w.set.chunks[w.chunk]; w.off < len(live) {
			return live[w.off], true
		}
		w.chunk, w.off = w.chunk+1, 0
	}
	return entry{}, false
}

func (w *walker) step() { w.off++ }
