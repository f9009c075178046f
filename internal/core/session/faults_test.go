package session

import (
	"slices"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
)

// A download is complete when what it was given whole leaves no gap, pieces that only touch included, and not before its
// last response has ended (D-2.7).
func TestPiecesThatTouch(t *testing.T) {
	r := newRig(t, Default(1))
	piece := func(from, to int64) Event {
		return Event{Kind: Request, Key: key(1), Principal: key(1001), Identified: true, Size: 100, From: from, To: to}
	}
	ends := func(from, to int64) EffectKind { return r.send(Event{Kind: Finish, Key: key(1), From: from, To: to}) }
	r.want("first piece", r.send(piece(0, 40)), Serve)
	r.want("last piece", r.send(piece(70, 100)), Serve)
	r.want("middle", r.send(piece(40, 70)), Serve)
	r.want("the middle once more", r.send(piece(40, 70)), Serve)
	r.want("first ends", ends(0, 40), 255)
	r.want("last ends", ends(70, 100), 255)
	r.want("middle ends, but another runs", ends(40, 70), 255)
	r.want("the last response ends", ends(0, 0), Finished)
}

// A client is not dropped before its check time and thirty seconds are over, and soon after (D-2.11).
func TestSlackAfterTheCheckTime(t *testing.T) {
	r := newRig(t, Default(1))
	r.ask(1, 1, class.Bulk)
	r.ask(2, 2, class.Bulk)
	r.pass(TickEvery)
	r.ask(2, 2, class.Bulk)
	e, _ := r.m.Answer(r.now, key(2))
	dropped := func(d time.Duration) bool {
		return slices.ContainsFunc(r.pass(d), func(e Effect) bool { return e.Kind == NoShow })
	}
	if dropped(e.Check.Sub(r.now) + NoShowSlack - TickEvery) {
		t.Error("dropped inside the slack")
	}
	if !dropped(2 * time.Second) {
		t.Error("not dropped after the slack")
	}
}

// Who yields its seat takes none while the one it yielded to waits, though a seat comes free and it asks first (D-4.5).
func TestYielderWaitsForItsHead(t *testing.T) {
	r := newRig(t, Default(2))
	r.ask(1, 1, class.Bulk)
	r.ask(2, 2, class.Interactive)
	r.want("no seat", r.ask(3, 3, class.Interactive), Wait)
	r.pass(TickEvery)
	r.send(Event{Kind: Hold, Key: key(3)})
	alive := func() {
		r.m.Apply(r.now, Event{Kind: Progress, Key: key(1), Bytes: 1})
		r.m.Apply(r.now, Event{Kind: Progress, Key: key(2), Bytes: 1})
	}
	for range 61 {
		alive()
		r.pass(time.Second)
	}
	if !r.m.Yielding(key(1)) {
		t.Fatal("the seat of the lower class is not asked back after a minute")
	}
	r.send(Event{Kind: Unhold, Key: key(3)}) // the head leaves the door, and waits on
	r.want("yields on its boundary", r.send(Event{Kind: Finish, Key: key(1), To: 8 * mega}), Yielded)
	for range 20 {
		alive()
		r.pass(TickEvery)
		r.want("the one that yielded", r.ask(1, 1, class.Bulk), Wait)
	}
	r.want("the head", r.ask(3, 3, class.Interactive), Serve)
	r.done(3)
	r.pass(TickEvery)
	r.want("the one that yielded, when the head has started", r.ask(1, 1, class.Bulk), Serve)
}

// At most one seat is asked back in a tick, however many heads wait at the door (D-4.5).
func TestOneSeatATick(t *testing.T) {
	p := Default(3)
	p.PerPrincipal = 3
	r := newRig(t, p)
	for n := uint64(1); n <= 3; n++ {
		r.want("starts", r.ask(n, n, class.Background), Serve)
	}
	for n := uint64(4); n <= 6; n++ {
		r.want("waits", r.ask(n, n, class.Class(n-4)), Wait)
		r.send(Event{Kind: Hold, Key: key(n)})
	}
	asked := 0
	for range 140 {
		for n := uint64(1); n <= 3; n++ {
			r.m.Apply(r.now, Event{Kind: Progress, Key: key(n), Bytes: 1})
		}
		r.pass(TickEvery)
		now := 0
		for n := uint64(1); n <= 3; n++ {
			if r.m.Yielding(key(n)) {
				now++
			}
		}
		if now > asked+1 {
			t.Fatalf("%d seats asked back in one tick", now-asked)
		}
		asked = now
	}
	if asked == 0 {
		t.Fatal("no seat was asked back")
	}
}

// The promise that a start is scored by is the first one told with a place, not a later, better one (D-6.3).
func TestFirstPromiseIsScored(t *testing.T) {
	p := Default(1)
	p.LinkRate = mega
	r := newRig(t, p)
	r.ask(1, 1, class.Bulk)
	r.ask(2, 2, class.Bulk)
	r.pass(TickEvery)
	first, _ := r.m.Answer(r.now, key(2))
	for range 15 { // the link is slower than it was thought: later answers say so
		r.pass(time.Second)
		r.m.Apply(r.now, Event{Kind: Progress, Key: key(1), Bytes: mega / 4})
		r.ask(2, 2, class.Bulk)
		r.m.Answer(r.now, key(2))
	}
	later, _ := r.m.Answer(r.now, key(2))
	if later.Start == first.Start {
		t.Fatal("the estimate did not move; the test shows nothing")
	}
	r.done(1)
	r.pass(TickEvery)
	r.ask(2, 2, class.Bulk)
	for _, e := range r.m.effects {
		if e.Kind == Started {
			if d := e.Point.Sub(first.Start); !e.Promised || d < -time.Second || d > time.Second {
				t.Errorf("scored by a start at %s, told first was %s", time.Duration(e.Point), time.Duration(first.Start))
			}
			return
		}
	}
	t.Fatal("it did not start")
}

// A pause keeps the pieces that were delivered, in whatever order, and the arrival: the one who comes back goes before
// those who came meanwhile (D-2.8).
func TestPauseKeepsPieces(t *testing.T) {
	p := Default(1)
	r := newRig(t, p)
	half := func(from, to int64) Event {
		return Event{Kind: Request, Key: key(1), Principal: key(1001), Class: class.Bulk, Identified: true, Size: 100 * mega, From: from, To: to}
	}
	r.want("second half first", r.send(half(50*mega, 100*mega)), Serve)
	r.want("first half", r.send(half(0, 50*mega)), Serve)
	r.send(Event{Kind: Progress, Key: key(1), Bytes: 60 * mega})
	r.want("second half delivered", r.send(Event{Kind: Finish, Key: key(1), From: 50 * mega, To: 100 * mega}), 255)
	r.want("first half cut", r.send(Event{Kind: Finish, Key: key(1)}), 255)
	r.pass(p.Idle + time.Second)
	r.want("another takes the seat", r.ask(2, 2, class.Bulk), Serve)
	r.want("and one waits", r.ask(3, 3, class.Bulk), Wait)
	r.pass(time.Second)
	r.want("back from the pause", r.send(half(0, 50*mega)), Wait)
	r.pass(TickEvery)
	if e, _ := r.m.Estimate(r.now, key(1)); e.Position != 1 {
		t.Errorf("back at place %d, it came first", e.Position)
	}
	r.done(2)
	r.pass(TickEvery)
	r.want("seated again", r.send(half(0, 50*mega)), Serve)
	r.want("the missing half", r.send(Event{Kind: Finish, Key: key(1), To: 50 * mega}), Finished)
}

// Time in which its window was shut raises nobody, and time since counts (D-3.1).
func TestClosedTimeAgesNobody(t *testing.T) {
	p := Default(1)
	p.Aging, p.Preempt, p.PerPrincipal = 10*time.Minute, false, 1
	r := newRig(t, p)
	r.m.SetWindow(r.now, class.Background, false, false, nil)
	r.ask(1, 1, class.Release)
	r.ask(2, 2, class.Background)
	wait := func(d time.Duration) {
		for end := r.now.Add(d); r.now < end; {
			r.pass(5 * time.Second)
			r.m.Apply(r.now, Event{Kind: Progress, Key: key(1), Bytes: 1})
			r.ask(2, 2, class.Background)
			if r.now > clock.Mono(20*time.Minute) {
				r.ask(3, 3, class.Bulk)
			}
		}
	}
	ahead := func() int {
		w, _ := r.m.Why(r.now, key(2))
		return w.Ahead[class.Bulk]
	}
	wait(25 * time.Minute)
	r.m.SetWindow(r.now, class.Background, true, false, nil)
	wait(5 * time.Minute)
	if ahead() != 1 {
		t.Error("it rose by time in which its window was shut")
	}
	wait(6 * time.Minute)
	if ahead() != 0 {
		t.Error("it did not rise by time in which its window was open")
	}
}

// A principal that has its share of seats is passed over while another waits that has none, though it asks first (D-4.4).
func TestShareIsExact(t *testing.T) {
	p := Default(3)
	p.PerPrincipal = 1
	r := newRig(t, p)
	for n := uint64(1); n <= 3; n++ {
		r.want("starts", r.ask(n, n, class.Bulk), Serve)
	}
	r.want("its second", r.ask(4, 1, class.Bulk), Wait)
	r.want("another's first", r.ask(5, 5, class.Bulk), Wait)
	r.pass(TickEvery)
	r.done(3)
	r.pass(TickEvery)
	r.want("its second", r.ask(4, 1, class.Bulk), Wait)
	r.want("another's first", r.ask(5, 5, class.Bulk), Serve)
}
