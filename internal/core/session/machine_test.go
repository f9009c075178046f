package session

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
)

func key(n uint64) (k Key) {
	binary.LittleEndian.PutUint64(k[:], n*0x9E3779B97F4A7C15)
	binary.LittleEndian.PutUint64(k[8:], n)
	return k
}

const mega = int64(1 << 20)

// rig drives a machine by hand.
type rig struct {
	t   *testing.T
	m   *Machine
	now clock.Mono
}

func newRig(t *testing.T, p Policy) *rig {
	t.Helper()
	m, err := New(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, m: m, now: clock.Mono(time.Second)}
}

// ask is a request of download n by a principal; it says how it was answered.
func (r *rig) ask(n, principal uint64, c class.Class) EffectKind {
	return r.send(Event{Kind: Request, Key: key(n), Principal: key(1000 + principal), Class: c, Identified: true, Size: 100 * mega, To: 100 * mega})
}

func (r *rig) send(e Event) EffectKind {
	for _, f := range r.m.Apply(r.now, e) {
		if f.Key == e.Key && (f.Kind <= Refuse || e.Kind != Request) {
			return f.Kind
		}
	}
	return 255
}

// done delivers the whole of download n.
func (r *rig) done(n uint64) {
	r.m.Apply(r.now, Event{Kind: Progress, Key: key(n), Bytes: 100 * mega})
	if k := r.send(Event{Kind: Finish, Key: key(n), To: 100 * mega}); k != Finished {
		r.t.Fatalf("download %d delivered whole ends with effect %d", n, k)
	}
}

// pass lets time go by, ticking.
func (r *rig) pass(d time.Duration) (all []Effect) {
	for end := r.now.Add(d); r.now < end; {
		r.now = r.now.Add(TickEvery)
		effects, _ := r.m.Tick(r.now)
		all = append(all, effects...)
	}
	return all
}

func (r *rig) want(what string, got, want EffectKind) {
	r.t.Helper()
	if got != want {
		r.t.Fatalf("%s: effect %d, want %d", what, got, want)
	}
}

// empty checks that everything is back at zero (D-2.13).
func (r *rig) empty(what string) {
	r.t.Helper()
	m := r.m
	for c, n := range m.Counts().Classes {
		n.Head = 0
		if n != (ClassCounts{}) {
			r.t.Errorf("%s: class %v counts %+v, want nothing", what, class.Class(c), n)
		}
	}
	if m.active != 0 || m.below != 0 || m.queue.Len() != 0 || m.responses != 0 || len(m.running)+len(m.asides) != 0 {
		r.t.Errorf("%s: active %d below %d waiting %d responses %d", what, m.active, m.below, m.queue.Len(), m.responses)
	}
	if m.contenders != [4]int32{} {
		r.t.Errorf("%s: contenders %v", what, m.contenders)
	}
	r.pass(KeepGone + time.Minute)
	if n := m.index.n + len(m.principals.index) + len(m.seats) - len(m.freeSeat) + int(m.records.used) - len(m.records.free); n != 0 {
		r.t.Errorf("%s: %d things are kept after their time", what, n)
	}
}

// Every way out gives back what it took (D-2.13).
func TestEveryPathReturnsToZero(t *testing.T) {
	one := Default(1)
	for name, path := range map[string]func(r *rig){
		"served whole": func(r *rig) { r.want("walk in", r.ask(1, 1, class.Bulk), Serve); r.done(1) },
		"cut and idle, then forgotten": func(r *rig) {
			r.ask(1, 1, class.Bulk)
			r.send(Event{Kind: Finish, Key: key(1)})
			r.pass(one.Idle + time.Second)
			if r.m.Counts().Classes[class.Bulk].Paused != 1 {
				r.t.Error("an idle session is not paused")
			}
			r.pass(KeepPaused + time.Minute)
		},
		"stalled with its response open": func(r *rig) {
			r.ask(1, 1, class.Bulk)
			r.pass(one.Idle + time.Second)
			r.send(Event{Kind: Finish, Key: key(1)})
			r.pass(KeepPaused + time.Minute)
		},
		"cancelled while active": func(r *rig) {
			r.ask(1, 1, class.Bulk)
			r.send(Event{Kind: Cancel, Key: key(1)})
			r.send(Event{Kind: Finish, Key: key(1)})
		},
		"cancelled while waiting, held and paused": func(r *rig) {
			r.ask(1, 1, class.Bulk)
			r.send(Event{Kind: Finish, Key: key(1)})
			r.pass(one.Idle + time.Second)
			r.ask(2, 2, class.Bulk)
			r.want("no seat", r.ask(3, 3, class.Release), Wait)
			r.send(Event{Kind: Hold, Key: key(3)})
			for n := uint64(1); n <= 3; n++ {
				r.send(Event{Kind: Cancel, Key: key(n)})
			}
			r.send(Event{Kind: Unhold, Key: key(3)})
			r.send(Event{Kind: Finish, Key: key(2)})
		},
		"no-show": func(r *rig) {
			r.ask(1, 1, class.Bulk)
			r.want("no seat", r.ask(2, 2, class.Bulk), Wait)
			gone := slices.ContainsFunc(r.pass(29*time.Second), func(e Effect) bool { return e.Kind == NoShow })
			if gone {
				r.t.Error("gone before its check time and slack")
			}
			r.done(1)
			r.pass(6 * time.Minute)
		},
		"held until its seat comes": func(r *rig) {
			r.ask(1, 1, class.Bulk)
			r.ask(2, 2, class.Bulk)
			r.send(Event{Kind: Hold, Key: key(2)})
			r.pass(10 * time.Second)
			r.done(1)
			if !slices.ContainsFunc(r.m.effects, func(e Effect) bool { return e.Kind == Seated && e.Key == key(2) }) {
				r.t.Error("a held session was not seated when the seat came")
			}
			r.want("seated", r.ask(2, 2, class.Bulk), Serve)
			r.send(Event{Kind: Unhold, Key: key(2)})
			r.done(2)
		},
		"aside and through": func(r *rig) {
			r.aside(1)
			r.want("a range more", r.ask(1, 1, class.Bulk), Serve)
			r.send(Event{Kind: Finish, Key: key(1)})
			r.done(1)
			r.done(2)
		},
		"aside and cancelled": func(r *rig) {
			r.aside(1)
			r.send(Event{Kind: Cancel, Key: key(1)})
			r.send(Event{Kind: Finish, Key: key(1)})
			r.done(2)
		},
		"aside, idle and forgotten": func(r *rig) {
			r.aside(1)
			r.send(Event{Kind: Finish, Key: key(1)})
			r.done(2)
			r.pass(one.Idle + time.Second)
			if c := r.m.Counts().Classes[class.Bulk]; c.Paused != 1 || c.Aside != 0 {
				r.t.Errorf("idle aside: %+v, want it paused", c)
			}
			r.pass(KeepPaused + time.Minute)
		},
		"aside, idle and back in a seat": func(r *rig) {
			r.aside(1)
			r.done(2)
			r.pass(one.Idle + time.Second)
			r.send(Event{Kind: Finish, Key: key(1)})
			r.want("back", r.ask(1, 1, class.Bulk), Serve)
			r.done(1)
		},
	} {
		r := newRig(t, one)
		path(r)
		r.empty(name)
	}
}

// A seat goes to nobody in particular: of those marked, the first to arrive takes it; others don't (D-2.12).
func TestFirstMarkedToArriveTakesTheSeat(t *testing.T) {
	r := newRig(t, Default(1))
	r.ask(1, 1, class.Bulk)
	for n := uint64(2); n <= 4; n++ {
		r.want("waits", r.ask(n, n, class.Bulk), Wait)
	}
	r.done(1)
	r.pass(TickEvery)
	r.want("third in the order is not marked", r.ask(4, 4, class.Bulk), Wait)
	r.want("second in the order comes first", r.ask(3, 3, class.Bulk), Serve)
	r.want("the first finds no seat", r.ask(2, 2, class.Bulk), Wait)
	r.done(3)
	r.pass(TickEvery)
	r.want("the first lost nothing", r.ask(2, 2, class.Bulk), Serve)
}

// While a seat stays free the offer widens, so nobody waits for the absent (D-2.12).
func TestOfferWidens(t *testing.T) {
	r := newRig(t, Default(1))
	r.ask(1, 1, class.Bulk)
	for n := uint64(2); n <= 40; n++ {
		r.ask(n, n, class.Bulk)
	}
	r.done(1)
	r.pass(TickEvery)
	r.want("the last is not called at once", r.ask(40, 40, class.Bulk), Wait)
	r.pass(10 * time.Second)
	r.want("the last is called when nobody else came", r.ask(40, 40, class.Bulk), Serve)
}

// Another seat that comes free takes nothing of an offer back that was made while one stood free (D-2.12).
func TestOfferStaysWide(t *testing.T) {
	p := Default(2)
	p.Reserve = 0
	r := newRig(t, p)
	for n := uint64(1); n <= 40; n++ {
		r.ask(n, n, class.Bulk)
	}
	called := func() (n int) {
		for k := uint64(3); k <= 40; k++ {
			if e, _ := r.m.Estimate(r.now, key(k)); e.Called {
				n++
			}
		}
		return n
	}
	r.pass(TickEvery)
	r.done(1)
	r.pass(5 * TickEvery)
	before := called()
	r.done(2)
	if after := called(); before < 10 || after < before+2 {
		t.Errorf("%d are called while a seat stands free, %d when there are two", before, after)
	}
}

// The reserve is left to people; they find it at once (D-4.2).
func TestReserveIsForPeople(t *testing.T) {
	p := Default(4)
	p.PerPrincipal = 4
	r := newRig(t, p)
	for n := uint64(1); n <= 3; n++ {
		r.want("below the reserve", r.ask(n, n, class.Bulk), Serve)
	}
	r.want("the reserve", r.ask(4, 4, class.Release), Wait)
	r.pass(time.Second)
	r.want("the reserve again", r.ask(4, 4, class.Release), Wait)
	r.want("a person", r.ask(5, 5, class.Interactive), Serve)
	r.want("a second person", r.ask(6, 6, class.Interactive), Wait)
}

// A principal at its share waits while another could start, and takes what is free beyond it when none could (D-4.4).
func TestShareYieldsToContendersOnly(t *testing.T) {
	p := Default(3)
	p.PerPrincipal = 1
	r := newRig(t, p)
	r.want("first", r.ask(1, 1, class.Bulk), Serve)
	r.want("beyond its share, nobody else there", r.ask(2, 1, class.Bulk), Serve)
	r.want("third seat", r.ask(3, 1, class.Bulk), Serve)
	r.want("full", r.ask(4, 1, class.Bulk), Wait)
	r.want("another principal", r.ask(5, 2, class.Bulk), Wait)
	r.pass(TickEvery)
	r.done(1)
	r.pass(TickEvery)
	r.want("its fourth, although first in the order", r.ask(4, 1, class.Bulk), Wait)
	r.want("the contender", r.ask(5, 2, class.Bulk), Serve)
	r.done(2)
	r.pass(TickEvery)
	r.want("no contender left", r.ask(4, 1, class.Bulk), Serve)
}

// Who idles its seat away comes back by its arrival, not ahead of those who waited, and goes on where it was (D-2.8).
func TestPauseKeepsArrivalAndCoverage(t *testing.T) {
	r := newRig(t, Default(1))
	r.want("starts", r.ask(1, 1, class.Bulk), Serve)
	r.send(Event{Kind: Progress, Key: key(1), Bytes: 60 * mega})
	r.send(Event{Kind: Finish, Key: key(1), To: 60 * mega})
	r.want("waits", r.ask(2, 2, class.Bulk), Wait)
	for range 5 {
		r.pass(5 * time.Second)
		r.ask(2, 2, class.Bulk)
	}
	r.pass(5 * time.Second)
	r.want("the one who waited", r.ask(2, 2, class.Bulk), Serve)
	r.want("the one who paused", r.ask(1, 1, class.Bulk), Wait)
	r.want("a newcomer", r.ask(3, 3, class.Bulk), Wait)
	r.pass(TickEvery)
	if e, _ := r.m.Estimate(r.now, key(1)); e.Position != 1 {
		t.Errorf("back from a pause at place %d, want 1: its arrival is the oldest", e.Position)
	}
	r.done(2)
	r.pass(TickEvery)
	r.want("back", r.send(Event{Kind: Request, Key: key(1), Size: 100 * mega, From: 60 * mega, To: 100 * mega}), Serve)
	r.want("complete with what was delivered before", r.send(Event{Kind: Finish, Key: key(1), From: 60 * mega, To: 100 * mega}), Finished)
}

// A ticket is read only when no record of its key exists; a tombstone overrules it (D-8.2).
func TestTicketsAndTombstones(t *testing.T) {
	r := newRig(t, Default(1))
	r.ask(1, 1, class.Bulk)
	r.ask(2, 2, class.Bulk)
	r.now = r.now.Add(time.Second)
	old := Event{Kind: Request, Key: key(3), Principal: key(1003), Class: class.Bulk, Size: mega, To: mega, Ticketed: true, Arrival: -clock.Mono(time.Hour)}
	r.want("returns with a ticket", r.send(old), Wait)
	r.pass(TickEvery)
	place := func(n uint64) int { e, _ := r.m.Estimate(r.now, key(n)); return e.Position }
	if place(3) != 1 || place(2) != 2 {
		t.Errorf("places %d and %d, want the ticket's arrival before the other", place(3), place(2))
	}
	r.send(Event{Kind: Cancel, Key: key(3)})
	r.want("again with the same ticket", r.send(old), Wait)
	r.pass(TickEvery)
	if place(3) != 2 {
		t.Errorf("place %d after a tombstone, want the end of the class", place(3))
	}
}

// A reader of the tail does not end the session, and a download resumed in the middle ends without the bytes before it
// (D-2.7).
func TestCompletion(t *testing.T) {
	r := newRig(t, Default(1))
	tail := Event{Kind: Request, Key: key(1), Principal: key(1001), Size: 100, From: 90, To: 100, Tail: true}
	r.want("tail", r.send(tail), Serve)
	r.want("tail read", r.send(Event{Kind: Finish, Key: key(1), From: 90, To: 100}), 255)
	r.want("from the middle", r.send(Event{Kind: Request, Key: key(1), Size: 100, From: 40, To: 90}), Serve)
	r.want("cut", r.send(Event{Kind: Finish, Key: key(1)}), 255)
	r.want("again", r.send(Event{Kind: Request, Key: key(1), Size: 100, From: 40, To: 90}), Serve)
	r.want("whole", r.send(Event{Kind: Finish, Key: key(1), From: 40, To: 90}), Finished)
}

// No more than the allowed responses of a session run at once (D-2.10).
func TestSurplusRanges(t *testing.T) {
	r := newRig(t, Default(2))
	for range 4 {
		r.want("within", r.ask(1, 1, class.Bulk), Serve)
	}
	r.want("one too many", r.ask(1, 1, class.Bulk), Surplus)
	r.send(Event{Kind: Finish, Key: key(1)})
	r.want("room again", r.ask(1, 1, class.Bulk), Serve)
}

// Over a bound the answer is busy with a time, never memory (D-7.1); tombstones make room first.
func TestBounds(t *testing.T) {
	p := Default(1)
	p.MaxSessions, p.MaxPerPrincipal = 10, 3
	r := newRig(t, p)
	for n := uint64(1); n <= 3; n++ {
		r.ask(n, 1, class.Bulk)
	}
	r.want("a principal's fourth", r.ask(4, 1, class.Bulk), Refuse)
	for n := uint64(10); n < 17; n++ {
		r.ask(n, n, class.Bulk)
	}
	effects := r.m.Apply(r.now, Event{Kind: Request, Key: key(99), Principal: key(5)})
	if len(effects) != 1 || effects[0].Kind != Refuse || effects[0].RetryAfter <= 0 {
		t.Fatalf("over the bound: %+v, want a refusal with a time", effects)
	}
	r.send(Event{Kind: Cancel, Key: key(12)})
	r.want("a tombstone made room", r.ask(99, 5, class.Bulk), Wait)
}

// After a restart nobody starts until the settling is over, and then those who came first do, whatever the order they
// came back in (D-2.12, D-3.1).
func TestSettleStartsByArrival(t *testing.T) {
	r := newRig(t, Default(2))
	r.m.Settle(r.now.Add(SettleFor))
	for i := 20; i > 0; i-- {
		e := Event{Kind: Request, Key: key(uint64(i)), Principal: key(uint64(1000 + i)), Class: class.Release, Identified: true,
			Size: 100 * mega, To: 100 * mega, Ticketed: true, Arrival: clock.Mono(i-100) * clock.Mono(time.Second)}
		r.want("settling", r.send(e), Wait)
	}
	r.pass(SettleFor)
	for i := uint64(20); i > 2; i-- {
		r.want("not its turn", r.ask(i, i, class.Release), Wait)
	}
	r.want("second", r.ask(2, 2, class.Release), Serve)
	r.want("first", r.ask(1, 1, class.Release), Serve)
}

// With everyone there, sessions start in the order the plan announced, reserve, share and classes included.
func TestStartOrderIsThePlan(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		p := Default(2 + rnd.IntN(8))
		p.PerPrincipal = 1 + rnd.IntN(p.Sessions)
		p.LinkRate = 10 * mega
		r := newRig(t, p)
		type client struct {
			n, principal uint64
			c            class.Class
		}
		all := map[Key]client{}
		waiting := []Key{}
		for n := range uint64(60) {
			c := client{n + 1, rnd.Uint64N(6), class.Class(rnd.IntN(class.Count))}
			all[key(n+1)] = c
			if r.ask(c.n, c.principal, c.c) == Wait {
				waiting = append(waiting, key(n+1))
			}
			r.now++
		}
		for len(waiting) > 0 {
			r.pass(TickEvery)
			expect := r.planned()
			// one seat comes free: whoever the plan puts first at a moment after now must be who gets it
			tag, _, _ := soonest(r.m)
			first := r.m.records.at(tag).key
			for h := uint32(1); h <= r.m.records.used; h++ {
				r.m.progress(r.now, h, Event{}) // nobody idles, nobody stays away
				r.m.records.at(h).deadline = r.now.Add(time.Hour)
			}
			r.done(all[first].n)
			r.pass(TickEvery)
			again := r.planned()
			var started []Key
			for _, h := range slices.Clone(r.m.offers) {
				k := r.m.records.at(h).key
				if c := all[k]; r.ask(c.n, c.principal, c.c) == Serve {
					started = append(started, k)
				}
			}
			n := len(started)
			if !sameKeys(started, expect[:n]) || !sameKeys(started, again[:n]) {
				t.Fatalf("seed %d: %d started, not those that the plan put first", seed, n)
			}
			waiting = slices.DeleteFunc(waiting, func(k Key) bool { return slices.Contains(started, k) })
			if len(started) == 0 && len(waiting) > 0 && len(r.m.running) == 0 {
				t.Fatalf("seed %d: seats are free and nobody was called", seed)
			}
		}
	}
}

// planned lists who starts, in the plan's order.
func (r *rig) planned() (keys []Key) {
	r.m.makePlan(r.now)
	for _, e := range r.m.plan.entries {
		keys = append(keys, r.m.records.at(e.handle).key)
	}
	return keys
}

func sameKeys(a, b []Key) bool {
	less := func(x, y Key) int { return bytes.Compare(x[:], y[:]) }
	return slices.Equal(slices.SortedFunc(slices.Values(a), less), slices.SortedFunc(slices.Values(b), less))
}

// soonest is the session that the split of the link ends first.
func soonest(m *Machine) (uint32, time.Duration, bool) {
	m.fill(&m.plan.seats)
	return m.plan.seats.Next()
}

// One event log gives one answer, twenty times over: nothing inside draws on time, chance or map order.
func TestReplay(t *testing.T) {
	var first uint64
	for i := range 20 {
		m, _ := New(Default(4), 9)
		r, sum, now := rand.New(rand.NewPCG(5, 5)), fnv.New64a(), clock.Mono(0)
		for range 4000 {
			now = now.Add(time.Duration(r.IntN(200)) * time.Millisecond)
			e := Event{Kind: EventKind(r.IntN(6)), Key: key(r.Uint64N(300)), Principal: key(r.Uint64N(20)), Class: class.Class(r.IntN(4)),
				Size: r.Int64N(50 * mega), Bytes: r.Int64N(mega), Ticketed: r.IntN(5) == 0, Arrival: now - clock.Mono(r.Int64N(1e12))}
			e.To = e.Size
			for _, f := range m.Apply(now, e) {
				fmt.Fprint(sum, f)
			}
			if r.IntN(3) == 0 {
				effects, _ := m.Tick(now)
				for _, f := range effects {
					fmt.Fprint(sum, f)
				}
			}
			est, ok := m.Estimate(now, e.Key)
			fmt.Fprint(sum, est, ok)
		}
		if i == 0 {
			first = sum.Sum64()
		} else if sum.Sum64() != first {
			t.Fatalf("run %d differs", i)
		}
	}
}

// Where a rate is set it holds; without one the measured one does (D-6.1).
func TestRateOfEstimates(t *testing.T) {
	for configured, want := range map[int64]int64{0: 20 * mega, 10 * mega: 10 * mega} {
		p := Default(1)
		p.LinkRate = configured
		r := newRig(t, p)
		r.want("first", r.ask(1, 1, class.Release), Serve)
		for range 20 {
			r.now = r.now.Add(250 * time.Millisecond)
			r.send(Event{Kind: Progress, Key: key(1), Bytes: 5 * mega})
		}
		r.pass(TickEvery)
		if got := r.m.Counts().Rate; got != want {
			t.Errorf("configured %d: rate %d, want %d", configured, got, want)
		}
	}
}
