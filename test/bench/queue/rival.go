package main

import (
	"container/heap"
	"math/rand/v2"
	"slices"

	"github.com/roadstead/roadstead/internal/core/session"
)

// object is a waiting session as a plain queue keeps it.
type object struct {
	id, principal session.Key
	class         int
	arrival, seq  int64
	size          int64
	index         int
}

type plain []*object

func (p plain) Len() int { return len(p) }
func (p plain) Less(i, j int) bool {
	if p[i].class != p[j].class {
		return p[i].class < p[j].class
	}
	return p[i].arrival < p[j].arrival || p[i].arrival == p[j].arrival && p[i].seq < p[j].seq
}
func (p plain) Swap(i, j int) { p[i], p[j] = p[j], p[i]; p[i].index, p[j].index = i, j }
func (p *plain) Push(x any)   { o := x.(*object); o.index = len(*p); *p = append(*p, o) }
func (p *plain) Pop() any {
	o := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return o
}

// rival is a map and a binary heap. An arrival looks the session up, checks its principal's bound, makes its record,
// indexes it and pushes it.
type rival struct {
	index map[session.Key]*object
	count map[session.Key]int
	heap  plain
	next  uint64
}

// newRival fills one that has room for n without growing.
func newRival(n int) *rival {
	r := &rival{index: make(map[session.Key]*object, n), count: map[session.Key]int{}, heap: make(plain, 0, n)}
	for range n - batch {
		r.arrive()
	}
	return r
}

func (r *rival) arrive() {
	i := r.next
	r.next++
	k, p := key(i), key(1<<40+i*31%principals)
	if r.index[k] != nil || r.count[p] >= 1<<20 {
		return
	}
	o := &object{id: k, principal: p, class: int(i * 7 % 4), arrival: int64(i), seq: int64(i), size: 8 << 30}
	r.count[p]++
	r.index[k] = o
	heap.Push(&r.heap, o)
}

// turn is the time of one arrival, over a turn of them, which leave again outside the time.
func (r *rival) turn() float64 {
	from := r.next
	t := timed(turn, func() {
		for range turn {
			r.arrive()
		}
	})
	for i := from; i < r.next; i++ {
		o := r.index[key(i)]
		delete(r.index, o.id)
		r.count[o.principal]--
		heap.Remove(&r.heap, o.index)
	}
	return t
}

// sorter is a queue that a tick sorts.
type sorter struct{ all, work plain }

func newSorter(n int) sorter {
	rnd := rand.New(rand.NewPCG(5, 6))
	all := make(plain, n)
	for i := range all {
		all[i] = &object{id: key(uint64(i)), class: i * 7 % 4, arrival: rnd.Int64N(1e9), seq: int64(i)}
	}
	return sorter{all, make(plain, n)}
}

// sort is what a tick costs that sorts the queue.
func (s sorter) sort() float64 {
	copy(s.work, s.all)
	return timed(1, func() {
		slices.SortFunc(s.work, func(a, b *object) int {
			switch {
			case plain{a, b}.Less(0, 1):
				return -1
			default:
				return 1
			}
		})
	})
}
