package session

import (
	"slices"
	"testing"

	"github.com/roadstead/roadstead/internal/class"
)

// hour is what an hour of a busy link comes to.
type hour struct {
	seats    int
	use      float64 // of the link
	finished int
}

// secondHour lets clients that take so much a second, always forty waiting, load from a link of 100 MB a second for two
// hours, and tells of the second.
func secondHour(t *testing.T, p Policy, clientRate int64) (h hour) {
	r := newRig(t, p)
	next, late := uint64(1), int64(0)
	waiting := []uint64{}
	for tick := range 2 * 7200 {
		for len(waiting) < 40 {
			waiting = append(waiting, next)
			next++
		}
		waiting = slices.DeleteFunc(waiting, func(n uint64) bool { return r.ask(n, n, class.Bulk) == Serve })
		each := min(clientRate, p.LinkRate/max(int64(len(r.m.running)), 1)) / 2 // in half a second
		for _, at := range slices.Clone(r.m.running) {
			k := r.m.records.at(at).key
			r.m.Apply(r.now, Event{Kind: Progress, Key: k, Bytes: each})
			through := r.m.seats[r.m.records.at(at).seat-1].left() == 0
			if through {
				r.m.Apply(r.now, Event{Kind: Finish, Key: k, To: 100 * mega})
			}
			if tick >= 7200 {
				late += each
				h.finished += map[bool]int{true: 1}[through]
			}
		}
		r.pass(TickEvery)
	}
	h.seats, h.use = r.m.policy.Sessions, float64(late)/float64(p.LinkRate*3600)
	return h
}

// The seats find the fewest that fill the link, whatever the clients can take, and one too few is taken back at once
// (0014-seats-that-follow-the-link.md). A number set once is too small for slow clients and the link idles.
func TestSeatsFollowTheLink(t *testing.T) {
	fixed := Default(4)
	fixed.LinkRate, fixed.Reserve, fixed.Preempt = 100*mega, 0, false
	auto := fixed
	auto.AutoMin, auto.AutoMax = 2, 32
	for name, c := range map[string]struct {
		clientRate int64
		want       int
		gain       float64 // downloads finished, of those with four seats
	}{
		"slow clients": {10 * mega, 10, 2.3}, "middling": {30 * mega, 4, 0.97}, "fast": {100 * mega, 2, 0.97},
	} {
		with, without := secondHour(t, auto, c.clientRate), secondHour(t, fixed, c.clientRate)
		t.Logf("%s: %d seats, link %.3f busy, %d finished; with four seats %.3f, %d", name, with.seats, with.use, with.finished, without.use, without.finished)
		if with.seats < c.want || with.seats > c.want+1 {
			t.Errorf("%s: %d seats, want %d or one more", name, with.seats, c.want)
		}
		if with.use < 0.97 {
			t.Errorf("%s: the link was used to %.3f", name, with.use)
		}
		if gain := float64(with.finished) / float64(without.finished); gain < c.gain {
			t.Errorf("%s: %.2f times as many finished, want %.2f", name, gain, c.gain)
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
