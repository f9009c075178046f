package fair

import "math/bits"

// smallFIFO is how many slots a lane has at most; past it the lane becomes a ranked set.
const smallFIFO = 256

// spots say for every handle which slot of its lane it stands in, plus one; 0 when in none.
type spots []uint16

// of is the slot of a handle, -1 when it has none.
func (s spots) of(handle uint32) int {
	if int(handle) >= len(s) {
		return -1
	}
	return int(s[handle]) - 1
}

// fifo holds the waiting sessions of one lane by order. Most principals of a wide fleet have one session, which
// costs no allocation. A session keeps its slot until the slots are packed, and a bit tells whether it still waits: to
// find it, to rank it and to take it out then touches no entry. With a million waiting, what is touched is what an
// operation costs.
type fifo struct {
	big   *ranks                 // instead of the slots, once there are more than they can hold
	live  [smallFIFO / 64]uint64 // the slots whose entries wait
	n     int32
	used  int32   // slots given out, those whose entries went included
	head  uint32  // item of the first that waits, while there is no big
	last  entry   // in the highest slot given out, whether it waits or not
	slots []entry // by order; nil while only one was ever given out
}

func (f *fifo) has(slot int) bool { return f.live[slot>>6]&(1<<(slot&63)) != 0 }

// slot is where the i-th entry stands.
func (f *fifo) slot(i int) int {
	for w, word := range f.live {
		n := bits.OnesCount64(word)
		if i >= n {
			i -= n
			continue
		}
		for ; i > 0; i-- {
			word &= word - 1
		}
		return w<<6 + bits.TrailingZeros64(word)
	}
	return -1
}

// insert adds e, which must not be in the lane.
func (f *fifo) insert(e entry, at spots) {
	if f.big == nil && int(f.used) >= max(len(f.slots), 1) {
		f.room(at)
	}
	switch {
	case f.big != nil:
		f.big.insert(e)
	case f.used == 0 || f.last.before(e):
		f.stand(int(f.used), e, at)
	default:
		f.squeeze(e, at)
	}
	f.n++
}

// stand gives e the next slot, after all that wait.
func (f *fifo) stand(slot int, e entry, at spots) {
	if f.n == 0 {
		f.head = e.item
	}
	f.last = e
	if f.slots != nil {
		f.slots[slot] = e
	}
	f.live[slot>>6] |= 1 << (slot & 63)
	f.used++
	at[e.item] = uint16(slot + 1)
}

// room makes a slot free where all are given out: by packing when a quarter of them is empty, or else by more of them.
func (f *fifo) room(at spots) {
	switch most := len(f.slots); {
	case int(f.n) <= most*3/4:
		f.pack(f.slots, at)
	case most < smallFIFO:
		f.pack(make([]entry, max(4, 2*most)), at)
	default:
		f.big = &ranks{}
		for i, e := range f.slots {
			if f.has(i) {
				f.big.insert(e)
				at[e.item] = 0
			}
		}
		f.slots = nil
	}
}

// pack moves those that wait to the first slots of to.
func (f *fifo) pack(to []entry, at spots) {
	if f.slots == nil && f.n > 0 {
		to[0] = f.last // alone, in its slot already
	}
	k := 0
	for i, e := range f.slots[:min(int(f.used), len(f.slots))] {
		if !f.has(i) {
			continue
		}
		to[k] = e
		k++
		at[e.item] = uint16(k)
	}
	f.slots = to
	f.number(int(f.n))
}

// number says that those who wait are in the first n slots and all others are free.
func (f *fifo) number(n int) {
	f.used = int32(n)
	if n > 0 {
		f.head, f.last = f.slots[0].item, f.slots[n-1]
	}
	for w := range f.live {
		f.live[w] = 1<<min(max(n-w<<6, 0), 64) - 1
	}
}

// squeeze puts e before some that wait already.
func (f *fifo) squeeze(e entry, at spots) {
	f.pack(f.slots, at)
	s := f.slots[:f.used+1]
	p := lowerBound(s[:f.used], e)
	copy(s[p+1:], s[p:])
	s[p] = e
	for i, o := range s[p:] {
		at[o.item] = uint16(p + i + 1)
	}
	f.number(len(s))
}

// remove takes e out and reports whether it was there.
func (f *fifo) remove(e entry, at spots) bool {
	if f.big != nil {
		if !f.big.remove(e) {
			return false
		}
		f.n--
		return true
	}
	slot := at.of(e.item)
	if slot < 0 || !f.has(slot) {
		return false
	}
	at[e.item] = 0
	f.live[slot>>6] &^= 1 << (slot & 63)
	f.n--
	if f.n > 0 && f.head == e.item {
		f.head = f.slots[f.slot(0)].item
	}
	return true
}

// rank is the number of entries before e, which must be in the lane.
func (f *fifo) rank(e entry, at spots) (n int) {
	if f.big != nil {
		return f.big.rank(e)
	}
	slot := max(at.of(e.item), 0)
	for w := range slot >> 6 {
		n += bits.OnesCount64(f.live[w])
	}
	return n + bits.OnesCount64(f.live[slot>>6]&(1<<(slot&63)-1))
}

// at is the i-th entry, i below n.
func (f *fifo) at(i int) entry {
	switch {
	case f.big != nil:
		return f.big.at(i)
	case f.slots == nil:
		return f.last
	}
	return f.slots[f.slot(i)]
}

// item is the i-th entry's, i below n.
func (f *fifo) item(i int) uint32 {
	if i == 0 && f.big == nil {
		return f.head
	}
	return f.at(i).item
}
