package fair

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// history builds a queue by a random mix of arrivals, late returns with old orders, returned turns, cancels, starts
// in and out of order, and principals passed over.
func history(seed uint64, mode Discipline, weights [Classes]uint32) (*Queue, map[uint32]Item) {
	r := rand.New(rand.NewPCG(seed, 7))
	q, live, principals := New(mode, weights), map[uint32]Item{}, uint32(1+r.IntN(12))
	pick := func() uint32 {
		items := make([]uint32, 0, len(live))
		for i := range live {
			items = append(items, i)
		}
		slices.Sort(items)
		return items[r.IntN(len(items))]
	}
	for i := range uint32(400) {
		switch x := r.IntN(12); {
		case x < 7 || len(live) == 0:
			w := Item{uint8(r.IntN(Classes)), 1 + r.Uint32N(principals), uint64(i)<<20 | uint64(i), r.Int64N(1 << 22), i}
			old := r.IntN(4) == 0
			if old {
				w.Order = uint64(r.IntN(int(i)+1))<<20 | uint64(i)
			}
			live[i] = w
			q.Push(w, old)
		case x == 7:
			i := pick()
			w := live[i]
			delete(live, i)
			if !q.Remove(w) {
				panic("an item that waits could not be removed")
			}
		case x == 8:
			i := pick() // the second of two that were called comes first
			w := live[i]
			delete(live, i)
			q.Serve(w, EveryClass, 0)
		case x == 9:
			w := live[pick()]
			q.PassOver(w.Class, w.Principal, q.lines[w.Class].round+uint32(r.IntN(3)))
		default:
			t := next(q)
			w := live[t.Item]
			delete(live, t.Item)
			q.Serve(w, EveryClass, 0)
		}
	}
	return q, live
}

func everyone(uint8, uint32, uint32) bool { return true }

func next(q *Queue) Turn {
	var c Cursor
	q.Rewind(&c)
	t, _ := c.Next(EveryClass, 0, everyone)
	return t
}

// Place equals the order of the drain, exactly, and so does a cursor (D-3.1).
func TestPlaceIsDrainOrder(t *testing.T) {
	for seed := range uint64(300) {
		weights := [Classes]uint32{8, 4, 2, 1}
		if seed%3 == 1 {
			weights = [Classes]uint32{7, 5, 3, 10}
		}
		mode := Discipline(seed % 2)
		q, live := history(seed, mode, weights)
		place := map[uint32]int{}
		for i, w := range live {
			place[i], _ = q.Place(w)
		}
		var c Cursor
		q.Rewind(&c)
		var walked []uint32
		for range live {
			turn, ok := c.Next(EveryClass, 0, everyone)
			if !ok {
				t.Fatalf("seed %d: the cursor ended early", seed)
			}
			walked = append(walked, turn.Item)
		}
		if _, more := c.Next(EveryClass, 0, everyone); more {
			t.Fatalf("seed %d: the cursor goes past the last item", seed)
		}
		for i := range walked {
			head := next(q)
			if head.Item != walked[i] {
				t.Fatalf("seed %d: turn %d: served item %d, the cursor said %d", seed, i, head.Item, walked[i])
			}
			if place[head.Item] != i {
				t.Fatalf("seed %d: item %d served at %d, its place was %d", seed, head.Item, i, place[head.Item])
			}
			w := live[head.Item]
			q.Serve(w, EveryClass, 0)
		}
		if q.Len() != 0 || q.lines[0].n+q.lines[1].n+q.lines[2].n+q.lines[3].n != 0 || q.lines[0].marks.n+q.lines[3].all.n != 0 {
			t.Fatalf("seed %d: something is left after the drain", seed)
		}
	}
}

// A cursor with principals and classes shut out goes the way the queue itself goes with the same ones shut out.
func TestCursorWithSomeShutOut(t *testing.T) {
	for seed := range uint64(200) {
		q, live := history(seed, Discipline(seed%2), [Classes]uint32{8, 4, 2, 1})
		r := rand.New(rand.NewPCG(seed, 8))
		total := len(live)
		// who may start at each step is drawn beforehand, the same for both walks
		shut := make([]uint32, total)
		for i := range shut {
			shut[i] = uint32(r.IntN(12))
		}
		var c Cursor
		q.Rewind(&c)
		var forward []Turn
		for i := range total {
			if turn, ok := c.Next(EveryClass, 0, func(_ uint8, p, _ uint32) bool { return p != shut[i/8*8] }); ok {
				forward = append(forward, turn)
			}
		}
		at := 0
		for i := range total {
			may := func(_ uint8, p, _ uint32) bool { return p != shut[i/8*8] }
			var step Cursor
			q.Rewind(&step)
			turn, ok := step.Next(EveryClass, 0, may)
			if !ok {
				continue
			}
			if turn.Item != forward[at].Item {
				t.Fatalf("seed %d step %d: the queue serves %v, the cursor said %v", seed, i, turn, forward[at])
			}
			at++
			serveAllowed(q, live[turn.Item], turn, may)
		}
		if at != len(forward) {
			t.Fatalf("seed %d: %d served, the cursor said %d", seed, at, len(forward))
		}
	}
}

// serveAllowed does what the machine does: takes those passed over along, then serves, with the classes that could go.
func serveAllowed(q *Queue, w Item, turn Turn, may mayStart) {
	var open Mask
	for c := range uint8(Classes) {
		for p := range uint32(len(q.berths)) {
			if q.LaneLen(c, p) > 0 && may(c, p, 0) {
				open |= 1 << c
			}
		}
	}
	for p := range uint32(len(q.berths)) {
		if !may(turn.Class, p, 0) {
			q.PassOver(turn.Class, p, turn.Round)
		}
	}
	q.Serve(w, open, 0)
}

// Smallest first: fewer bytes, then first come, whoever they belong to (D-3.2).
func TestSmallestFirst(t *testing.T) {
	q := New(SmallestFirst, [Classes]uint32{8, 4, 2, 1})
	items := []Item{{1, 1, 10, 9 << 20, 0}, {1, 1, 11, 1 << 20, 1}, {1, 2, 12, 5 << 20, 2}, {1, 3, 13, 1 << 20, 3}, {1, 3, 14, 0, 4}}
	for _, it := range items {
		q.Push(it, false)
	}
	for i, want := range []uint32{4, 1, 3, 2, 0} {
		turn := next(q)
		if turn.Item != want {
			t.Fatalf("turn %d went to item %d, want %d", i, turn.Item, want)
		}
		q.Serve(items[turn.Item], EveryClass, 0)
	}
}

// One-download principals are first come first served among themselves, in whatever order they come back (D-3.1).
func TestReturnInReverseKeepsArrivalOrder(t *testing.T) {
	q := New(RoundRobin, [Classes]uint32{8, 4, 2, 1})
	for i := 19; i >= 0; i-- {
		q.Push(Item{2, uint32(100 + i), uint64(i), 1, uint32(i)}, true)
	}
	for i := range uint32(20) {
		turn := next(q)
		if turn.Item != i {
			t.Fatalf("turn %d went to arrival %d", i, turn.Item)
		}
		q.Serve(Item{2, 100 + i, uint64(i), 1, i}, EveryClass, 0)
	}
}

// A principal that always has one more download cannot take two turns while another waits for its second.
func TestLeavingAndReturningGainsNothing(t *testing.T) {
	q := New(RoundRobin, [Classes]uint32{8, 4, 2, 1})
	for i := range uint64(10) {
		q.Push(Item{0, 1, i, 1, uint32(i)}, false)
	}
	served := [3]int{}
	for i := range uint64(10) {
		q.Push(Item{0, 2, 100 + i, 1, uint32(100 + i)}, false)
		for range 2 {
			turn := next(q)
			served[turn.Principal]++
			order := uint64(turn.Item)
			q.Serve(Item{0, turn.Principal, order, 1, turn.Item}, EveryClass, 0)
			if q.LaneLen(0, 2) == 0 {
				break
			}
		}
	}
	if served[2]-served[1] > 1 || served[1]-served[2] > 1 {
		t.Fatalf("turns %v are not alternating", served[1:])
	}
}

// The ranked set agrees with a sorted slice under random work, chunk splits and merges included.
func TestRanksAgainstSortedSlice(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var set ranks
	var model []entry
	for i := range 60_000 {
		grow := 6
		if i > 30_000 {
			grow = 3
		}
		if r.IntN(10) < grow || len(model) == 0 {
			e := entry{order: r.Uint64N(1 << 40), round: uint32(r.IntN(4)), item: uint32(i)}
			p := lowerBound(model, e)
			if p < len(model) && model[p].order == e.order && model[p].round == e.round {
				continue
			}
			model = slices.Insert(model, p, e)
			set.insert(e)
		} else {
			p := r.IntN(len(model))
			if i%5 == 0 {
				p = 0
			}
			if !set.remove(model[p]) {
				t.Fatalf("step %d: an entry is missing", i)
			}
			model = slices.Delete(model, p, p+1)
		}
		if len(model) == 0 {
			continue
		}
		p := r.IntN(len(model))
		if got := set.rank(model[p]); got != p {
			t.Fatalf("step %d: rank %d, want %d", i, got, p)
		}
		if set.at(p) != model[p] || set.min() != model[0] || set.n != len(model) {
			t.Fatalf("step %d: at, min or length differ", i)
		}
	}
}

func ExampleQueue_Place() {
	q := New(RoundRobin, [Classes]uint32{8, 4, 2, 1})
	items := []Item{
		{Class: 2, Principal: 1, Order: 10, Handle: 0}, // principal 1 brings two bulk downloads
		{Class: 2, Principal: 1, Order: 11, Handle: 1},
		{Class: 2, Principal: 2, Order: 12, Handle: 2}, // principal 2 brings one
	}
	for _, it := range items {
		q.Push(it, false)
	}
	for _, it := range items {
		place, _ := q.Place(it)
		fmt.Println(place)
	}
	// Output:
	// 0
	// 2
	// 1
}
