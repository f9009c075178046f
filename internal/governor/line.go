package governor

import "container/heap"

// line is a set of waiting ones in the order of a key; equal keys go in the order they came.
type line[T placed] struct {
	items []T
	seq   uint64
}

// place is where something stands in the one line it may be in.
type place struct {
	key int64
	seq uint64
	pos int
}

func (p *place) spot() *place { return p }

type placed interface{ spot() *place }

func (l *line[T]) push(x T, key int64) {
	l.seq++
	*x.spot() = place{key: key, seq: l.seq}
	heap.Push(l, x)
}

func (l *line[T]) pop() T     { return heap.Pop(l).(T) }
func (l *line[T]) first() T   { return l.items[0] }
func (l *line[T]) remove(x T) { heap.Remove(l, x.spot().pos) }

// rekey puts the line in order again after what the keys are made of has changed.
func (l *line[T]) rekey(key func(T) int64) {
	for _, x := range l.items {
		x.spot().key = key(x)
	}
	heap.Init(l)
}

// Len, Less, Swap, Push and Pop are for container/heap.
func (l *line[T]) Len() int { return len(l.items) }

func (l *line[T]) Less(i, j int) bool {
	a, b := l.items[i].spot(), l.items[j].spot()
	return a.key < b.key || a.key == b.key && a.seq < b.seq
}

func (l *line[T]) Swap(i, j int) {
	l.items[i], l.items[j] = l.items[j], l.items[i]
	l.items[i].spot().pos, l.items[j].spot().pos = i, j
}

func (l *line[T]) Push(x any) {
	t := x.(T)
	t.spot().pos = len(l.items)
	l.items = append(l.items, t)
}

func (l *line[T]) Pop() any {
	last := len(l.items) - 1
	x := l.items[last]
	clear(l.items[last:])
	l.items = l.items[:last]
	return x
}
