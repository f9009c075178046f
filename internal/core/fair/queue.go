// Package fair is the order of waiting, with the exact place of every item in O(log n): weighted classes, and in a class
// either a round robin between principals, first come first served in each (D-3.1), or the smallest first (D-3.2).
//
// In each class a principal with n waiting items owns n turns, in rounds base..base+n-1. A mark (round, key) stands
// for each turn, not for an item: an arrival adds the principal's last mark, a leave of any of its items removes its
// last mark, a start removes its first one, and nobody else's mark moves. The item at index i of its principal's
// first-come order goes at mark base+i, so its place in the class is the rank of that mark. The key is the order of
// the item that brought the principal in: principals with one item each are first come first served among
// themselves. Marks have no holes, so nobody who leaves costs a neighbour its turn.
//
// Classes share by virtual time: class c serves its r-th item at tag pass+(r+1)*stride, the smallest tag goes next,
// and what the other classes serve before a tag is a division. Tags are integers: a stride is a common multiple of
// all weights divided by the class's own.
//
// Smallest first needs no turns: a class is one set ordered by bytes, then arrival. There a mark stands for the first
// item of each principal, so that a walk can pass over a principal without meeting all it has.
package fair

// Classes is the number of classes; class 0 is the highest and wins ties.
const Classes = 4

// rekeyMost bounds how many marks one returning item moves when it is older than the item that brought its principal
// in. A principal with more turns than that keeps its key: its place inside each round stays behind by at most the
// principals between the two keys, for the turns it already has.
const rekeyMost = 256

// Discipline is the order inside a class.
type Discipline uint8

// The disciplines.
const (
	RoundRobin    Discipline = iota // principals in turn, first come first served in each
	SmallestFirst                   // fewer bytes first, then first come
)

// Aged is the principal that stands for all who waited too long: they share one lane, hence one turn in a round
// (D-3.1). Whose they really are is the caller's to know.
const Aged uint32 = 0

// Item is something that waits.
type Item struct {
	Class     uint8
	Principal uint32
	Order     uint64 // unique among all ever waiting together; a smaller one came earlier
	Bytes     int64  // what it still wants; 0 puts it first under SmallestFirst
	Handle    uint32 // a small dense number, no two that wait have the same
}

// Mask is a set of classes, one bit each.
type Mask uint8

// Has reports whether class c is in the set.
func (m Mask) Has(c uint8) bool { return m&(1<<c) != 0 }

// EveryClass is the set of all classes.
const EveryClass Mask = 1<<Classes - 1

// lane is one principal's waiting items in one class: two cache lines, of which the first ranks an item.
type lane struct {
	key       uint64
	base      uint32 // round of its first turn
	principal uint32
	items     fifo

	// scratch of the cursor that last came by, told apart by its epoch
	epoch uint32
	taken uint32 // items it took from this lane
	lift  uint32 // rounds the lane was passed over by
}

type line struct {
	stride uint64
	pass   uint64
	round  uint32 // round of the latest turn served: where a newcomer joins
	marks  ranks  // round robin: one per turn; smallest first: one per lane, at its first item. item is the lane
	all    ranks  // smallest first only: every item
	n      int
}

// berth is what the queue remembers of one principal in one class.
type berth struct {
	lane uint32 // index+1 of its lane, 0 when nothing waits
	base uint32 // next round it may use after it emptied
}

// Queue is the order of all that waits. Principals are small dense numbers chosen by the caller.
type Queue struct {
	mode    Discipline
	lines   [Classes]line
	virtual uint64 // start tag of the latest item served
	lanes   []lane
	free    []uint32
	berths  [][Classes]berth
	spots   spots
	epoch   uint32
	n       int
}

// New makes an empty order with the weight of each class, 1 or more.
func New(mode Discipline, weights [Classes]uint32) *Queue {
	q := &Queue{mode: mode}
	q.Weigh(weights)
	return q
}

// Weigh changes the weights; classes go on from where they stand to each other now, without arrears.
func (q *Queue) Weigh(weights [Classes]uint32) {
	common := uint64(1)
	for _, w := range weights {
		common *= uint64(w) / gcd(common, uint64(w))
	}
	for c, w := range weights {
		q.lines[c].stride, q.lines[c].pass = common/uint64(w), 0
	}
	q.virtual = 0
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Len is the number of items waiting.
func (q *Queue) Len() int { return q.n }

// ClassLen is the number of items waiting in a class.
func (q *Queue) ClassLen(c uint8) int { return q.lines[c].n }

// LaneLen is the number of items of a principal waiting in a class.
func (q *Queue) LaneLen(c uint8, principal uint32) int {
	if l := q.lane(c, principal); l != nil {
		return int(l.items.n)
	}
	return 0
}

func (q *Queue) lane(c uint8, principal uint32) *lane {
	if int(principal) >= len(q.berths) {
		return nil
	}
	if i := q.berths[principal][c].lane; i != 0 {
		return &q.lanes[i-1]
	}
	return nil
}

// key is where an item stands in its lane.
func (q *Queue) key(it Item) entry {
	e := entry{order: it.Order, item: it.Handle}
	if q.mode == SmallestFirst {
		e.round = uint32(min(max(it.Bytes, 0)>>10, 1<<32-1)) // KiB: to a terabyte and four
	}
	return e
}

// Push adds an item. back gives its principal the turn back that the item already used before it was paused or the
// process restarted.
func (q *Queue) Push(it Item, back bool) {
	c, principal := it.Class, it.Principal
	for int(principal) >= len(q.berths) {
		q.berths = append(q.berths, [Classes]berth{})
	}
	for int(it.Handle) >= len(q.spots) {
		q.spots = append(q.spots, 0)
	}
	k := &q.lines[c]
	if k.n == 0 {
		k.pass = max(k.pass, q.virtual) // no arrears for the time nothing waited
	}
	b := &q.berths[principal][c]
	if b.lane == 0 {
		b.lane = q.open(principal, it.Order, max(b.base, k.round)) + 1
	}
	l := &q.lanes[b.lane-1]
	if q.mode == SmallestFirst {
		q.pushSmallest(k, l, b.lane-1, it)
	} else {
		q.pushTurn(k, l, b.lane-1, it, back)
	}
	k.n++
	q.n++
}

func (q *Queue) pushTurn(k *line, l *lane, at uint32, it Item, back bool) {
	if it.Order < l.key && l.items.n <= rekeyMost {
		q.rekey(k, l, at, it.Order)
	}
	turn := l.base + uint32(l.items.n)
	if back && l.base > k.round {
		l.base--
		turn = l.base
	}
	k.marks.insert(entry{order: l.key, round: turn, item: at})
	l.items.insert(q.key(it), q.spots)
}

func (q *Queue) pushSmallest(k *line, l *lane, at uint32, it Item) {
	e := q.key(it)
	k.all.insert(e)
	if l.items.n > 0 {
		if first := l.items.at(0); e.before(first) {
			k.marks.remove(first)
			k.marks.insert(entry{order: e.order, round: e.round, item: at})
		}
	} else {
		k.marks.insert(entry{order: e.order, round: e.round, item: at})
	}
	l.items.insert(e, q.spots)
}

func (q *Queue) open(principal uint32, key uint64, base uint32) uint32 {
	fresh := lane{key: key, base: base, principal: principal}
	if n := len(q.free); n > 0 {
		i := q.free[n-1]
		q.free = q.free[:n-1]
		q.lanes[i] = fresh
		return i
	}
	q.lanes = append(q.lanes, fresh)
	return uint32(len(q.lanes) - 1)
}

func (q *Queue) rekey(k *line, l *lane, at uint32, key uint64) {
	for i := range uint32(l.items.n) {
		k.marks.remove(entry{order: l.key, round: l.base + i})
	}
	for i := range uint32(l.items.n) {
		k.marks.insert(entry{order: key, round: l.base + i, item: at})
	}
	l.key = key
}

// Remove takes a waiting item out without a start; its principal's last turn goes with it.
func (q *Queue) Remove(it Item) bool {
	l := q.lane(it.Class, it.Principal)
	if l == nil {
		return false
	}
	if q.mode == SmallestFirst {
		if !q.takeSmallest(l, it) {
			return false
		}
	} else {
		if !l.items.remove(q.key(it), q.spots) {
			return false
		}
		q.lines[it.Class].marks.remove(entry{order: l.key, round: l.base + uint32(l.items.n)})
	}
	q.left(it)
	return true
}

// takeSmallest takes an item out of its lane and class.
func (q *Queue) takeSmallest(l *lane, it Item) bool {
	e, k := q.key(it), &q.lines[it.Class]
	if !k.all.remove(e) {
		return false
	}
	if first := l.items.at(0); first.order == e.order {
		k.marks.remove(e)
		if l.items.n > 1 {
			second := l.items.at(1)
			k.marks.insert(entry{order: second.order, round: second.round, item: q.berths[it.Principal][it.Class].lane - 1})
		}
	}
	return l.items.remove(e, q.spots)
}

// Serve takes a waiting item out because it starts: its principal's first turn in the class is used, whichever of its
// items it is. Classes outside open could not have gone now, so they come back without arrears; those of them that are
// held back by the same thing keep what they have coming from each other.
func (q *Queue) Serve(it Item, open, held Mask) bool {
	l := q.lane(it.Class, it.Principal)
	if l == nil {
		return false
	}
	k := &q.lines[it.Class]
	if q.mode == SmallestFirst {
		if !q.takeSmallest(l, it) {
			return false
		}
	} else {
		if !l.items.remove(q.key(it), q.spots) {
			return false
		}
		k.marks.remove(entry{order: l.key, round: l.base})
		k.round = max(k.round, l.base)
		l.base++
	}
	q.virtual = max(q.virtual, k.pass)
	k.pass += k.stride
	var passes [Classes]*uint64
	for j := range q.lines {
		passes[j] = &q.lines[j].pass
	}
	catchUp(&passes, q.virtual, open, held)
	q.left(it)
	return true
}

// catchUp takes classes that could not go to the present: each for itself, and those held together by as much as the
// last of them lacks. Each for itself, the lightest would lose its turn to the heaviest whenever that happens.
func catchUp(passes *[Classes]*uint64, virtual uint64, open, held Mask) {
	lack := uint64(0)
	for j, p := range passes {
		switch {
		case open.Has(uint8(j)) || *p >= virtual:
		case held.Has(uint8(j)):
			lack = max(lack, virtual-*p)
		default:
			*p = virtual
		}
	}
	for j, p := range passes {
		if held.Has(uint8(j)) && !open.Has(uint8(j)) {
			*p += lack
		}
	}
}

// left tidies up after an item went.
func (q *Queue) left(it Item) {
	q.n--
	q.lines[it.Class].n--
	b := &q.berths[it.Principal][it.Class]
	l := &q.lanes[b.lane-1]
	if l.items.n > 0 {
		return
	}
	b.base = l.base
	q.free = append(q.free, b.lane-1)
	*l = lane{}
	b.lane = 0
}

// PassOver says that a principal may not start now while others of its class do, and takes its waiting turns to the
// round before that of the first one that may: it is next once it may start, however often it could not, but no turn
// beyond that one comes back as arrears.
func (q *Queue) PassOver(c uint8, principal uint32, round uint32) {
	l := q.lane(c, principal)
	if l == nil || l.base+1 >= round || q.mode == SmallestFirst {
		return
	}
	k, at, n := &q.lines[c], q.berths[principal][c].lane-1, uint32(l.items.n)
	d := round - 1 - l.base
	for i := range min(d, n) {
		k.marks.remove(entry{order: l.key, round: l.base + i})
		k.marks.insert(entry{order: l.key, round: l.base + d + n - 1 - i, item: at})
	}
	l.base += d
}

// Early reports whether forgetting the principal would give it a turn before its time: it emptied in a round that its
// class has not passed yet.
func (q *Queue) Early(principal uint32) bool {
	if int(principal) >= len(q.berths) {
		return false
	}
	for c, b := range q.berths[principal] {
		if q.lines[c].n > 0 && b.base > q.lines[c].round {
			return true
		}
	}
	return false
}

// Forget drops what is remembered of a principal that has nothing waiting, so its number can be used again.
func (q *Queue) Forget(principal uint32) {
	if int(principal) < len(q.berths) {
		q.berths[principal] = [Classes]berth{}
	}
}

// Place is how many items start before this one if every class may start, only the first ever does, and nothing else
// comes or leaves; 0 is next. It is exact.
func (q *Queue) Place(it Item) (place int, ok bool) {
	ahead, ok := q.Ahead(it)
	for _, n := range ahead {
		place += n
	}
	return place, ok
}

// Ahead is Place by class.
func (q *Queue) Ahead(it Item) (ahead [Classes]int, ok bool) {
	l := q.lane(it.Class, it.Principal)
	if l == nil {
		return ahead, false
	}
	k := &q.lines[it.Class]
	own := 0
	if q.mode == SmallestFirst {
		own = k.all.rank(q.key(it))
	} else {
		own = k.marks.rank(entry{order: l.key, round: l.base + uint32(l.items.rank(q.key(it), q.spots))})
	}
	ahead[it.Class] = own
	tag := k.pass + uint64(own+1)*k.stride
	for j := range q.lines {
		o := &q.lines[j]
		if uint8(j) == it.Class || o.n == 0 || tag <= o.pass {
			continue
		}
		span := tag - o.pass
		if uint8(j) > it.Class {
			span-- // a tie goes to the higher class
		}
		ahead[j] = min(int(span/o.stride), o.n)
	}
	return ahead, true
}

// Head is the first item of a class in its order.
func (q *Queue) Head(c uint8) (handle uint32, ok bool) {
	k := &q.lines[c]
	if k.n == 0 {
		return 0, false
	}
	return q.lanes[k.marks.min().item].items.item(0), true
}

// LaneHead is the first item of a principal in a class.
func (q *Queue) LaneHead(c uint8, principal uint32) (handle uint32, ok bool) {
	l := q.lane(c, principal)
	if l == nil || l.items.n == 0 {
		return 0, false
	}
	return l.items.item(0), true
}
