package session

import (
	"testing"

	"github.com/roadstead/roadstead/internal/class"
)

// The seats find the fewest that fill the link, whatever the clients can take, and one too few is taken back at once.
func TestSeatsFollowTheLink(t *testing.T) {
	for name, c := range map[string]struct {
		clientRate int64 // MB per second that one client takes; the link carries 100
		want       int
	}{
		"slow clients": {10, 10}, "middling": {30, 4}, "fast": {100, 2},
	} {
		p := Default(4)
		p.LinkRate, p.AutoMin, p.AutoMax, p.Reserve, p.Preempt = 100*mega, 2, 32, 0, false
		r := newRig(t, p)
		next, moved := uint64(1), int64(0)
		waiting := []uint64{}
		var late int64
		var fill int64
		for tick := range 2 * 3600 {
			for len(waiting) < 40 {
				waiting = append(waiting, next)
				next++
			}
			for i := 0; i < len(waiting); i++ {
				if r.ask(waiting[i], waiting[i], class.Bulk) == Serve {
					waiting = append(waiting[:i], waiting[i+1:]...)
					i--
				}
			}
			active := int64(len(r.m.running))
			each := min(c.clientRate*mega, 100*mega/max(active, 1)) / 2 // in half a second
			for _, h := range append([]uint32(nil), r.m.running...) {
				k := r.m.records.at(h).key
				r.m.Apply(r.now, Event{Kind: Progress, Key: k, Bytes: each})
				moved += each
				if r.m.seats[r.m.records.at(h).seat-1].left() == 0 {
					r.m.Apply(r.now, Event{Kind: Finish, Key: k, To: 100 * mega})
				}
			}
			if tick > 3600 {
				late += moved
				fill += int64(p.LinkRate / 2)
			}
			moved = 0
			r.pass(TickEvery)
		}
		if got := r.m.policy.Sessions; got < c.want || got > c.want+1 {
			t.Errorf("%s: %d seats after an hour, want %d or one more", name, got, c.want)
		}
		if use := float64(late) / float64(fill); use < 0.95 {
			t.Errorf("%s: the link was used to %.3f", name, use)
		}
	}
}

// Seats that follow the link need to know what it carries.
func TestAutomaticSeatsNeedARate(t *testing.T) {
	p := Default(4)
	p.AutoMin, p.AutoMax = 2, 8
	if p.Validate() == nil {
		t.Error("accepted without a bandwidth")
	}
	p.LinkRate = mega
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
}
