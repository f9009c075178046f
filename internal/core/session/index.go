package session

import (
	"encoding/binary"
	"math/bits"
)

// index finds a record by its key: open addressing over handles, the keys staying in the records. Keys are hashes
// already; the seed keeps a client from choosing ids that fall together. It is sized once for the most records there
// may be, so it never grows and a look-up costs one cache line beside the record's own.
type index struct {
	slots []uint32
	shift int
	seed  uint64
	n     int
}

func newIndex(most int, seed uint64) index {
	size := bits.Len(uint(2*most - 1)) // at most half full
	return index{slots: make([]uint32, 1<<size), shift: 64 - size, seed: seed}
}

// home is the slot a key belongs to if nothing stood in its way.
func (x *index) home(k *Key) int {
	return int((binary.LittleEndian.Uint64(k[:8]) ^ x.seed) * 0x9e3779b97f4a7c15 >> x.shift)
}

// find is the handle of a key, 0 when there is none.
func (x *index) find(a *arena, k *Key) uint32 {
	for i := x.home(k); ; i = (i + 1) & (len(x.slots) - 1) {
		if h := x.slots[i]; h == 0 || a.at(h).key == *k {
			return h
		}
	}
}

// add enters a record whose key is not there.
func (x *index) add(a *arena, h uint32) {
	i := x.home(&a.at(h).key)
	for x.slots[i] != 0 {
		i = (i + 1) & (len(x.slots) - 1)
	}
	x.slots[i] = h
	x.n++
}

// remove takes a record out and moves up those that stood behind it, so that no gap ends a search early.
func (x *index) remove(a *arena, h uint32) {
	mask := len(x.slots) - 1
	gap := x.home(&a.at(h).key)
	for x.slots[gap] != h {
		gap = (gap + 1) & mask
	}
	for i := (gap + 1) & mask; x.slots[i] != 0; i = (i + 1) & mask {
		if home := x.home(&a.at(x.slots[i]).key); (i-home)&mask >= (i-gap)&mask {
			x.slots[gap] = x.slots[i]
			gap = i
		}
	}
	x.slots[gap] = 0
	x.n--
}
