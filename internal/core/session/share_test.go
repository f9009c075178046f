package session

import (
	"fmt"
	"testing"

	"github.com/roadstead/roadstead/internal/class"
)

// taker keeps one download of each of several principals and classes waiting at the door of one seat, and counts the
// starts of each.
type taker struct {
	*rig
	next   uint64
	of     map[Key][2]int // class and principal
	starts [class.Count][8]int
}

func (k *taker) come(c class.Class, principal int) {
	k.next++
	k.of[key(k.next)] = [2]int{int(c), principal}
	if k.ask(k.next, uint64(principal), c) == Wait {
		k.send(Event{Kind: Hold, Key: key(k.next)})
	}
}

// turn lets the seat go to the next one; who had it comes again.
func (k *taker) turn() {
	for n := uint64(1); n <= k.next; n++ {
		if !k.m.Active(key(n)) {
			continue
		}
		if k.send(Event{Kind: Unhold, Key: key(n)}); k.m.Counts().Responses == 0 {
			k.ask(n, 0, 0)
		}
		for range 3 { // ticks make offers while the seat is taken
			k.m.Apply(k.now, Event{Kind: Progress, Key: key(n), Bytes: 1})
			k.pass(TickEvery)
		}
		of := k.of[key(n)]
		k.starts[of[0]][of[1]]++
		k.done(n)
		k.come(class.Class(of[0]), of[1])
		return
	}
	k.t.Fatal("nobody has the seat")
}

// A principal that has its share while offers are made is passed over then, but its turn comes back with the seat: the
// principals of a class go in turn, whatever else each of them downloads (D-3.1, D-4.4).
func TestTurnOutlivesAShare(t *testing.T) {
	for people := 1; people <= 5; people++ {
		for machines := 2; machines <= 5; machines++ {
			t.Run(fmt.Sprintf("%d and %d", people, machines), func(t *testing.T) {
				k := &taker{rig: newRig(t, Default(1)), of: map[Key][2]int{}}
				for p := range people {
					k.come(class.Interactive, p)
				}
				for n := range 2*machines - 1 { // the last has one download, the others two
					k.come(class.Release, n%machines)
				}
				for range 300 {
					k.turn()
				}
				for c, n := range k.starts {
					least, most := 1<<30, 0
					for _, o := range k.of {
						if o[0] == c {
							least, most = min(least, n[o[1]]), max(most, n[o[1]])
						}
					}
					if most > least+2 {
						t.Errorf("starts of class %s by principal: %v", class.Class(c), n)
					}
				}
			})
		}
	}
}
