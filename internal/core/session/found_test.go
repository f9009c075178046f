package session

import (
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/class"
)

// D-7.3: a process that stood still for an hour heard nobody; those who waited keep their places and those who read keep
// their seats when it goes on.
func TestStandingStillDropsNobody(t *testing.T) {
	r := newRig(t, Default(1))
	r.want("reads", r.ask(1, 1, class.Bulk), Serve)
	r.want("waits", r.ask(2, 2, class.Bulk), Wait)
	r.pass(10 * time.Second)
	r.ask(2, 2, class.Bulk)
	r.now = r.now.Add(time.Hour)
	for range 60 {
		for _, e := range r.pass(time.Second) {
			t.Errorf("effect %d for download %d", e.Kind, e.Key[8])
		}
		r.m.Apply(r.now, Event{Kind: Progress, Key: key(1), Bytes: 1})
	}
	if e, ok := r.m.Estimate(r.now, key(2)); !ok || e.Arrival > r.now.Add(-time.Hour) {
		t.Errorf("the one who waited is there: %t, arrived at %s", ok, time.Duration(e.Arrival))
	}
	// It is dropped after all when it stays away.
	gone := false
	for _, e := range r.pass(time.Minute) {
		gone = gone || e.Kind == NoShow && e.Key == key(2)
	}
	if !gone {
		t.Error("who stays away past the grace is still there (D-2.11)")
	}
}

// D-4.5, D-9.3: seats that the operator takes away are nobody's, so no session is asked for one of them; who was asked
// before keeps its seat.
func TestFewerSeatsTakeNobodysSeat(t *testing.T) {
	p := Default(3)
	p.Reserve, p.PerPrincipal = 0, 3
	r := newRig(t, p)
	for n := uint64(1); n <= 3; n++ {
		r.want("reads", r.ask(n, 1, class.Background), Serve)
	}
	r.want("waits", r.ask(4, 4, class.Release), Wait)
	r.send(Event{Kind: Hold, Key: key(4)})
	asked := func() (n int) {
		for k := uint64(1); k <= 3; k++ {
			if r.m.Yielding(key(k)) {
				n++
			}
		}
		return n
	}
	wait := func(ticks int) {
		for range ticks {
			for n := uint64(1); n <= 3; n++ {
				r.m.Apply(r.now, Event{Kind: Progress, Key: key(n), Bytes: 1})
			}
			r.pass(TickEvery)
		}
	}
	wait(122)
	if asked() != 1 {
		t.Fatalf("%d seats are asked back after a minute, want one", asked())
	}
	p.Sessions, p.PerPrincipal = 1, 1
	if err := r.m.Configure(r.now, p); err != nil {
		t.Fatal(err)
	}
	for n := uint64(1); n <= 3; n++ {
		r.want("the boundary", r.send(Event{Kind: Finish, Key: key(n), To: 8 * mega}), 255)
		r.want("the next range", r.send(Event{Kind: Request, Key: key(n), Size: 100 * mega, From: 8 * mega, To: 100 * mega}), Serve)
	}
	wait(10)
	if n := r.m.active; n != 3 || asked() != 0 {
		t.Errorf("%d of 3 read on over one seat, %d are asked for theirs", n, asked())
	}
}

// D-5.2, D-2.12: one of a closed class that had aged does not stand before the aged of an open one.
func TestClosedAgedBlockNobody(t *testing.T) {
	p := Default(1)
	p.Aging, p.Preempt = 5*time.Minute, false
	r := newRig(t, p)
	r.ask(1, 1, class.Release)
	r.ask(2, 2, class.Background)
	r.ask(3, 3, class.Bulk)
	for range 160 { // both rise to the turn that the aged share
		r.pass(5 * time.Second)
		r.m.Apply(r.now, Event{Kind: Progress, Key: key(1), Bytes: 1})
		r.ask(2, 2, class.Background)
		r.ask(3, 3, class.Bulk)
	}
	r.ask(4, 4, class.Bulk) // one that just came, and stays away
	r.send(Event{Kind: Hold, Key: key(3)})
	r.m.SetWindow(r.now, class.Background, false, false, nil)
	r.done(1)
	r.pass(4 * TickEvery)
	if !r.m.Active(key(3)) {
		t.Fatal("the aged one of the open class is not called to the free seat")
	}
	r.want("the aged one whose class is closed", r.ask(2, 2, class.Background), Wait)
	r.want("seated", r.ask(3, 3, class.Bulk), Serve)
	r.send(Event{Kind: Unhold, Key: key(3)})
	r.m.SetWindow(r.now, class.Background, true, false, nil)
	r.pass(2 * TickEvery)
	r.done(3)
	r.want("open again, and the oldest", r.ask(2, 2, class.Background), Serve)
	r.done(2)
	r.send(Event{Kind: Cancel, Key: key(4)})
	r.empty("all through")
}
