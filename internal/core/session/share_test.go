package session

import (
	"fmt"
	"testing"

	"github.com/roadstead/roadstead/internal/class"
)

// takers keep downloads of several principals and classes at the door of a few seats, and count the starts of each.
type takers struct {
	*rig
	last   uint64
	number map[Key]uint64
	class  map[Key]class.Class
	whose  map[Key]int
	served map[Key]bool // has a response
	starts [class.Count][8]int
}

func newTakers(t *testing.T, p Policy) *takers {
	p.Aging, p.Preempt = 0, false
	return &takers{
		rig: newRig(t, p), number: map[Key]uint64{}, class: map[Key]class.Class{}, whose: map[Key]int{}, served: map[Key]bool{},
	}
}

func (k *takers) come(c class.Class, principal int) {
	k.last++
	id := key(k.last)
	k.number[id], k.class[id], k.whose[id] = k.last, c, principal
	if k.served[id] = k.ask(k.last, uint64(principal), c) == Serve; !k.served[id] {
		k.send(Event{Kind: Hold, Key: id})
	}
}

// turn ends the download that runs longest among those of people, or of the others if there is one; the seat goes to
// the next one, and whose it was comes again.
func (k *takers) turn(people bool) {
	for range 3 { // offers are made while the seats are taken
		for _, h := range k.m.running {
			k.m.Apply(k.now, Event{Kind: Progress, Key: k.m.records.at(h).key, Bytes: 1})
		}
		k.pass(TickEvery)
	}
	id, found := k.m.records.at(k.m.running[0]).key, false
	for _, h := range k.m.running {
		if r := k.m.records.at(h); !found && people == (r.class == class.Interactive) {
			id, found = r.key, true
		}
	}
	c, p := k.class[id], k.whose[id]
	if !k.served[id] {
		k.send(Event{Kind: Unhold, Key: id})
		k.ask(k.number[id], uint64(p), c)
	}
	k.starts[c][p]++
	k.done(k.number[id])
	k.come(c, p)
}

// A principal that has its share while offers are made is passed over then, but its turn comes back with the seat: the
// principals of a class go in turn, whatever else each of them downloads (D-3.1, D-4.4).
func TestTurnOutlivesAShare(t *testing.T) {
	for people := 1; people <= 5; people++ {
		for machines := 2; machines <= 5; machines++ {
			k := newTakers(t, Default(1))
			for p := range people {
				k.come(class.Interactive, p)
			}
			for n := range 2*machines - 1 { // the last has one download, the others two
				k.come(class.Release, n%machines)
			}
			for range 300 {
				k.turn(true)
			}
			for c, n := range map[class.Class]int{class.Interactive: people, class.Release: machines} {
				least, most := 1<<30, 0
				for _, starts := range k.starts[c][:n] {
					least, most = min(least, starts), max(most, starts)
				}
				if most > least+2 {
					t.Errorf("%d people, %d machines: starts of class %s by principal: %v", people, machines, c, k.starts[c])
				}
			}
		}
	}
}

// Classes below interactive share what the reserve leaves them by their weights, however often interactive downloads
// start meanwhile (D-4.1, D-4.2).
func TestWeightsUnderAReserve(t *testing.T) {
	for seats := 2; seats <= 6; seats++ {
		for reserve := 1; reserve < seats; reserve++ {
			t.Run(fmt.Sprintf("%d of %d", reserve, seats), func(t *testing.T) {
				p := Default(seats)
				p.Reserve = reserve
				k := newTakers(t, p)
				for c := range class.Count {
					for n := range 8 {
						k.come(class.Class(c), n)
					}
				}
				for i := range 700 {
					k.turn(i%6 != 0)
				}
				var of [class.Count]int
				for c := range of {
					for _, n := range k.starts[c] {
						of[c] += n
					}
				}
				for c := class.Bulk; c <= class.Background; c++ {
					w := float64(p.Weights[c]) / float64(p.Weights[class.Release])
					if got := float64(of[c]) / float64(of[class.Release]); got < 0.85*w || got > 1.15*w {
						t.Errorf("starts by class: %v", of)
					}
				}
			})
		}
	}
}
