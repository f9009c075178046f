package session

import (
	"encoding/binary"
	"math/bits"
)

// index finds a record by its key: open addressing over handles, the keys staying in the records. Keys are hashes
// already; the seed keeps a client from choosing ids that fall together. It is sized once for the most records there
// may be, so it never grows. A slot is the hash over the handle: a record is touched only when its hash is the one
// looked for, so a look-up costs one cache line beside the record's own.
type index struct {
	slots []uint64 // 0 when empty: a handle is never 0
	shift int
	seed  uint64
	n     int
}

func newIndex(most int, seed uint64) index {
	size := bits.Len(uint(2*most - 1)) // at most half full
	return index{slots: make([]uint64, 1<<size), shift: 64 - size, seed: seed}
}

const hashOnly = ^uint64(1<<32 - 1)

// hash is a key's, in the upper half.
func (x *index) hash(k *Key) uint64 {
	return (binary.LittleEndian.Uint64(k[:8]) ^ x.seed) * 0x9e3779b97f4a7c15 & hashOnly
}

// home is the slot an entry belongs to if nothing stood in its way.
func (x *index) home(entry uint64) int { return int(entry >> x.shift) }

// find is the handle of a key, 0 when there is none.
func (x *index) find(a *arena, k *Key) uint32 {
	hash := x.hash(k)
	for i := x.home(hash); ; i = (i + 1) & (len(x.slots) - 1) {
		e := x.slots[i]
		if e == 0 || (e^hash)&hashOnly == 0 && a.at(uint32(e)).key == *k {
			return uint32(e)
		}
	}
}

// add enters a record whose key is not there.
func (x *index) add(a *arena, h uint32) {
	e := x.hash(&a.at(h).key) | uint64(h)
	i := x.home(e)
	for x.slots[i] != 0 {
		i = (i + 1) & (len(x.slots) - 1)
	}
	x.slots[i] = e
	x.n++
}

// remove takes a record out and moves up those that stood behind it, so that no gap ends a search early.
func (x *index) remove(a *arena, h uint32) {
	mask := len(x.slots) - 1
	e := x.hash(&a.at(h).key) | uint64(h)
	gap := x.home(e)
	for x.slots[gap] != e {
		gap = (gap + 1) & mask
	}
	for i := (gap + 1) & mask; x.slots[i] != 0; i = (i + 1) & mask {
		if (i-x.home(x.slots[i]))&mask >= (i-gap)&mask {
			x.slots[gap] = x.slots[i]
			gap = i
		}
	}
	x.slots[gap] = 0
	x.n--
}
