package session

import (
	"math/rand/v2"
	"testing"
)

// The index agrees with a map under random work, with keys that fall together on purpose.
func TestIndexAgainstMap(t *testing.T) {
	const most = 300
	r := rand.New(rand.NewPCG(2, 2))
	x, a, model := newIndex(most, 7), arena{}, map[Key]uint32{}
	for range 50_000 {
		k := key(r.Uint64N(500))
		if r.IntN(2) == 0 {
			copy(k[:8], make([]byte, 8)) // all of these have one home
		}
		h := x.find(&a, &k)
		if h != model[k] {
			t.Fatalf("found %d, want %d", h, model[k])
		}
		switch {
		case h != 0:
			x.remove(&a, h)
			a.give(h)
			delete(model, k)
		case len(model) < most:
			h = a.take()
			a.at(h).key = k
			x.add(&a, h)
			model[k] = h
		}
		if x.n != len(model) {
			t.Fatalf("%d entries, want %d", x.n, len(model))
		}
	}
}
