package session

import (
	"slices"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/class"
)

// aside makes download n a slow reader that has moved aside for the next one, which has its seat.
func (r *rig) aside(n uint64) {
	r.t.Helper()
	r.m.policy.MinRate = mega
	r.want("walk in", r.ask(n, n, class.Bulk), Serve)
	r.want("no seat", r.ask(n+1, n+1, class.Bulk), Wait)
	r.send(Event{Kind: Hold, Key: key(n + 1)})
	if !r.read(n, 25*time.Second, 0) {
		r.t.Fatal("a slow reader keeps the seat that another waits for")
	}
	r.want("seated", r.ask(n+1, n+1, class.Bulk), Serve)
	r.send(Event{Kind: Unhold, Key: key(n + 1)})
	if c := r.m.Counts().Classes[class.Bulk]; c.Aside != 1 || c.Active != 1 || !r.m.Aside(key(n)) || !r.m.Active(key(n)) {
		r.t.Errorf("counts %+v with one aside", c)
	}
}

// read lets download n take 1 kB each half second, held back by the governor for a part of the time, and says whether
// it moved aside.
func (r *rig) read(n uint64, d, held time.Duration) bool {
	for end := r.now.Add(d); r.now < end; {
		r.pass(TickEvery)
		effects := r.m.Apply(r.now, Event{Kind: Progress, Key: key(n), Bytes: 1000, Paced: held})
		if slices.ContainsFunc(effects, func(e Effect) bool { return e.Kind == MovedAside && e.Key == key(n) }) {
			return true
		}
	}
	return false
}

// contested is a slow reader in the only seat, and one that waits for it at the door.
func contested(t *testing.T) *rig {
	p := Default(1)
	p.MinRate, p.Aging = mega, 0
	r := newRig(t, p)
	r.want("walk in", r.ask(1, 1, class.Bulk), Serve)
	r.want("no seat", r.ask(2, 2, class.Bulk), Wait)
	r.send(Event{Kind: Hold, Key: key(2)})
	return r
}

// A reader is judged by its own time: the governor's does not count, parallel ranges count once, and the time between
// two ranges counts up to six seconds, or a byte now and then would hold a seat.
func TestMinimumRateCountsTheReadersTime(t *testing.T) {
	r := contested(t)
	if r.read(1, time.Minute, TickEvery) {
		t.Error("moved aside although the governor held it back")
	}
	if r.read(1, 35*time.Second, TickEvery/2) {
		t.Error("moved aside after less than twenty seconds of its own")
	}
	if !r.read(1, 6*time.Second, TickEvery/2) {
		t.Error("not moved aside after twenty seconds of its own")
	}

	r = contested(t)
	r.read(1, 15*time.Second, 0)
	r.send(Event{Kind: Finish, Key: key(1)})
	r.pass(20 * time.Second)
	r.want("its next range", r.ask(1, 1, class.Bulk), Serve)
	if !r.read(1, TickEvery, 0) {
		t.Error("not moved aside after fifteen seconds and a pause")
	}

	r = contested(t)
	r.send(Event{Kind: Finish, Key: key(1), To: 1})
	moved := 0
	for range 10 { // the same byte every three seconds
		r.pass(3 * time.Second)
		r.send(Event{Kind: Request, Key: key(1), Size: 100 * mega, To: 1})
		for _, e := range r.m.Apply(r.now, Event{Kind: Progress, Key: key(1), Bytes: 1}) {
			if e.Kind == MovedAside {
				moved++
			}
		}
		r.send(Event{Kind: Finish, Key: key(1), To: 1})
	}
	if moved != 1 {
		t.Errorf("a byte every three seconds holds its seat (moved aside %d times)", moved)
	}

	r = contested(t)
	for range 3 {
		r.want("a range more", r.ask(1, 1, class.Bulk), Serve)
	}
	if r.read(1, 26*time.Second, TickEvery) || !r.read(1, 2*time.Second, TickEvery) {
		t.Error("one of four ranges is held back all the time: three quarters of the time are the reader's")
	}
}

// A process that was suspended judges nobody by the time it slept.
func TestMinimumRateAfterSuspension(t *testing.T) {
	r := contested(t)
	r.read(1, 5*time.Second, 0)
	r.now = r.now.Add(25 * time.Second)
	if r.read(1, 8*time.Second, 0) {
		t.Error("moved aside for a silence that was the server's")
	}
}

// A minimum rate that is set while downloads run counts from then on.
func TestMinimumRateSetAtRunTime(t *testing.T) {
	r := contested(t)
	p := r.m.Policy()
	p.MinRate = 0
	if err := r.m.Configure(r.now, p); err != nil {
		t.Fatal(err)
	}
	if r.read(1, time.Minute, 0) {
		t.Error("moved aside without a minimum rate")
	}
	p.MinRate = mega
	if err := r.m.Configure(r.now, p); err != nil {
		t.Fatal(err)
	}
	if r.read(1, 19*time.Second, 0) || !r.read(1, 2*time.Second, 0) {
		t.Error("not judged by twenty seconds from the change on")
	}
}

// There is a bound to those aside; beyond it the slow keep their seats.
func TestAsideIsBounded(t *testing.T) {
	p := Default(1)
	p.MinRate, p.Preempt = mega, false
	r := newRig(t, p)
	n := uint64(1)
	// moves reads on with everybody, and says whether the last one moved aside
	moves := func(d time.Duration) (moved bool) {
		for end := r.now.Add(d); r.now < end && !moved; {
			for k := uint64(1); k < n; k++ {
				r.m.Apply(r.now, Event{Kind: Progress, Key: key(k)})
			}
			moved = r.read(n, TickEvery, 0)
		}
		return moved
	}
	r.want("walk in", r.ask(n, n, class.Bulk), Serve)
	for ; n <= asideLeast; n++ {
		r.want("no seat", r.ask(n+1, n+1, class.Bulk), Wait)
		r.send(Event{Kind: Hold, Key: key(n + 1)})
		if !moves(22 * time.Second) {
			t.Fatalf("%d is not moved aside", n)
		}
		r.want("seated", r.ask(n+1, n+1, class.Bulk), Serve)
		r.send(Event{Kind: Unhold, Key: key(n + 1)})
	}
	r.want("no seat", r.ask(n+1, n+1, class.Bulk), Wait)
	r.send(Event{Kind: Hold, Key: key(n + 1)})
	if moves(time.Minute) {
		t.Errorf("%d are aside, want at most %d", n, asideLeast)
	}
}

// The reserve would keep the seat of a slow interactive reader from all who wait: it stays.
func TestNoSeatIsGivenUpForNobody(t *testing.T) {
	p := Default(4)
	p.MinRate, p.PerPrincipal, p.Preempt = mega, 4, false
	r := newRig(t, p)
	r.want("walk in", r.ask(1, 1, class.Interactive), Serve)
	for n := uint64(2); n <= 4; n++ {
		r.want("walk in", r.ask(n, 2, class.Bulk), Serve)
	}
	r.want("the reserve", r.ask(5, 2, class.Bulk), Wait)
	r.send(Event{Kind: Hold, Key: key(5)})
	if r.read(1, 25*time.Second, 0) {
		t.Error("left its seat although nobody may take it")
	}
	r.want("one of the reserve's", r.ask(6, 6, class.Interactive), Wait)
	if !r.read(1, 25*time.Second, 0) {
		t.Error("keeps its seat although one waits that may take it")
	}
}
