package fair

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A lane agrees with a sorted slice under random work: late comers before others, gaps packed, slots run out of.
func TestLaneAgainstSortedSlice(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		most, late := 1+r.IntN(2*smallFIFO), 1+r.IntN(8)
		at, free := make(spots, most), []uint32{}
		for i := range at {
			free = append(free, uint32(i))
		}
		var lane fifo
		var model []entry
		for step := range uint64(4000) {
			if len(free) > 0 && (r.IntN(5) < 3 || len(model) == 0) {
				e := entry{order: 1 << 20 * (step + 1), round: uint32(seed % 2), item: free[len(free)-1]}
				if r.IntN(late) == 0 {
					e.order = r.Uint64N(e.order)<<1 | 1
				}
				free = free[:len(free)-1]
				model = slices.Insert(model, lowerBound(model, e), e)
				lane.insert(e, at)
			} else {
				p := r.IntN(len(model)) * r.IntN(2) // the first half of the time
				e := model[p]
				model = slices.Delete(model, p, p+1)
				if !lane.remove(e, at) {
					t.Fatalf("seed %d step %d: an entry is missing", seed, step)
				}
				if lane.remove(e, at) {
					t.Fatalf("seed %d step %d: an entry was there twice", seed, step)
				}
				free = append(free, e.item)
			}
			if int(lane.n) != len(model) {
				t.Fatalf("seed %d step %d: %d entries, want %d", seed, step, lane.n, len(model))
			}
			if len(model) == 0 {
				continue
			}
			p := r.IntN(len(model))
			if got := lane.rank(model[p], at); got != p {
				t.Fatalf("seed %d step %d: rank %d, want %d", seed, step, got, p)
			}
			if lane.at(p) != model[p] || lane.item(p) != model[p].item || lane.item(0) != model[0].item || lane.at(0) != model[0] {
				t.Fatalf("seed %d step %d: at or item differ", seed, step)
			}
		}
	}
}

// A principal's only session costs its lane no allocation.
func TestOneSessionAllocatesNothing(t *testing.T) {
	at := make(spots, 1)
	if n := testing.AllocsPerRun(100, func() {
		var lane fifo
		lane.insert(entry{order: 5}, at)
		lane.remove(entry{order: 5}, at)
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}
