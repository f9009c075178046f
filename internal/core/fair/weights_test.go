package fair

import "testing"

// While all classes wait, starts go by weight: of any fifteen in a row 8, 4, 2 and 1 (D-4.1).
func TestClassesGoByWeight(t *testing.T) {
	q := New(RoundRobin, [Classes]uint32{8, 4, 2, 1})
	items := map[uint32]Item{}
	for i := range uint32(400) {
		it := Item{uint8(i % Classes), 1 + i/Classes%5, uint64(i), 1, i}
		items[i] = it
		q.Push(it, false)
	}
	for round := range 10 {
		var starts [Classes]int
		for range 15 {
			turn := next(q)
			starts[turn.Class]++
			q.Serve(items[turn.Item], EveryClass, 0)
		}
		if starts != [Classes]int{8, 4, 2, 1} {
			t.Fatalf("round %d: starts %v", round, starts)
		}
	}
}

// A principal whose older download comes back goes by that one's arrival, with what it has waiting since (D-3.1).
func TestOlderReturnBringsItsPrincipalForward(t *testing.T) {
	q := New(RoundRobin, [Classes]uint32{8, 4, 2, 1})
	q.Push(Item{2, 1, 40, 1, 40}, false)
	q.Push(Item{2, 2, 50, 1, 50}, false)
	q.Push(Item{2, 2, 10, 1, 10}, true)
	if turn := next(q); turn.Item != 10 {
		t.Fatalf("the turn went to arrival %d, the oldest is 10", turn.Item)
	}
}
