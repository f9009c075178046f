package fair

import "slices"

// chunkSize is the most entries a chunk holds: 4 KiB of memory moved at worst by one insertion.
const chunkSize = 256

// entry is one element of a ranked set, ordered by round, then order. Pointer-free, so the collector never scans it.
type entry struct {
	order uint64
	round uint32
	item  uint32
}

func (e entry) before(o entry) bool {
	return e.round < o.round || e.round == o.round && e.order < o.order
}

type chunk struct {
	at   *[chunkSize]entry
	from int32 // live entries are at[from:to]; taking the head only raises from
	to   int32
}

func (c *chunk) live() []entry { return c.at[c.from:c.to] }

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
		r.fenwick[i+1] = r.chunks[i].to - r.chunks[i].from
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
	lo, hi := 0, len(s)
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

// insert adds e, which must not be in the set.
func (r *ranks) insert(e entry) {
	r.n++
	if len(r.chunks) == 0 {
		r.place(0, chunk{at: new([chunkSize]entry)})
	}
	i := r.home(e)
	if c := &r.chunks[i]; c.to == chunkSize && c.from > 0 {
		copy(c.at[:], c.live()) // room at the front: close it up
		c.from, c.to = 0, c.to-c.from
	} else if c.to == chunkSize {
		i = r.split(i, e)
	}
	c := &r.chunks[i]
	p := lowerBound(c.live(), e)
	at := c.from + int32(p)
	copy(c.at[at+1:c.to+1], c.at[at:c.to])
	c.at[at] = e
	c.to++
	if p == 0 {
		r.first[i] = e
	}
	r.bump(i, 1)
}

// split makes room in the full chunk i and returns the chunk that e belongs to. An append at the end opens a fresh
// chunk, so a queue that only grows stays dense.
func (r *ranks) split(i int, e entry) int {
	next := chunk{at: new([chunkSize]entry)}
	if i == len(r.chunks)-1 && r.chunks[i].at[chunkSize-1].before(e) {
		r.place(i+1, next)
		r.first[i+1] = e
		return i + 1
	}
	half := int32(chunkSize / 2)
	next.to = int32(copy(next.at[:], r.chunks[i].at[half:]))
	r.chunks[i].to = half
	r.place(i+1, next)
	if e.before(r.first[i+1]) {
		return i
	}
	return i + 1
}

func (r *ranks) place(i int, c chunk) {
	r.chunks = slices.Insert(r.chunks, i, c)
	r.first = slices.Insert(r.first, i, c.at[c.from])
	r.rebuild()
}

// remove takes e out and reports whether it was there.
func (r *ranks) remove(e entry) bool {
	if r.n == 0 {
		return false
	}
	i := r.home(e)
	c := &r.chunks[i]
	p := lowerBound(c.live(), e)
	at := c.from + int32(p)
	if at == c.to || c.at[at].order != e.order || c.at[at].round != e.round {
		return false
	}
	r.n--
	if p == 0 {
		c.from++
	} else {
		copy(c.at[at:c.to-1], c.at[at+1:c.to])
		c.to--
	}
	if c.from == c.to {
		r.drop(i)
		return true
	}
	if p == 0 {
		r.first[i] = c.at[c.from]
	}
	r.bump(i, -1)
	r.join(i)
	return true
}

// join merges chunk i with its successor when both have become sparse, so that cancels don't leave the memory thin.
func (r *ranks) join(i int) {
	if i+1 >= len(r.chunks) || r.chunks[i].to-r.chunks[i].from > chunkSize/4 {
		return
	}
	c, o := &r.chunks[i], &r.chunks[i+1]
	n := c.to - c.from
	if n+o.to-o.from > chunkSize*5/8 {
		return
	}
	copy(c.at[:], c.live())
	c.from, c.to = 0, n+int32(copy(c.at[n:], o.live()))
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
	s := lowerBound(r.chunks[i].live(), e)
	for ; i > 0; i -= i & -i {
		s += int(r.fenwick[i])
	}
	return s
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
	return r.chunks[c].live()[i]
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
		if live := w.set.chunks[w.chunk].live(); w.off < len(live) {
			return live[w.off], true
		}
		w.chunk, w.off = w.chunk+1, 0
	}
	return entry{}, false
}

func (w *walker) step() { w.off++ }
