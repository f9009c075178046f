package session

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
)

// ledger is a journal in memory.
type ledger map[Key]Saved

func (l ledger) take(m *Machine) {
	for _, s := range m.Changes(math.MaxInt, nil) {
		l[s.Key] = s
	}
}

func (l ledger) rows() (all []Saved) {
	for _, s := range l {
		all = append(all, s)
	}
	return all
}

// places is the order of the waiting sessions.
func places(m *Machine) []Key {
	type at struct {
		place int
		key   Key
	}
	var all []at
	for h := uint32(1); h <= m.records.used; h++ {
		if r := m.records.at(h); r.state == waiting {
			p, _ := m.queue.Place(m.item(h, r))
			all = append(all, at{p, r.key})
		}
	}
	slices.SortFunc(all, func(a, b at) int { return a.place - b.place })
	var keys []Key
	for _, a := range all {
		keys = append(keys, a.key)
	}
	return keys
}

// A restarted machine has everybody at the old place without having seen a ticket, and keeps what was delivered (D-2.8,
// D-2.12).
func TestRestoreKeepsPlacesAndIntervals(t *testing.T) {
	a := newRig(t, Default(1))
	a.m.Track()
	l := ledger{}
	a.want("first", a.ask(1, 1, class.Bulk), Serve)
	for n := uint64(2); n <= 21; n++ {
		a.want("second", a.ask(n, n, class.Bulk), Wait)
	}
	a.send(Event{Kind: Finish, Key: key(1), From: 0, To: 10 * mega})
	a.pass(2 * time.Second)
	l.take(a.m)
	want := places(a.m)

	b := newRig(t, Default(1))
	b.now = clock.Mono(time.Hour) // its own monotonic time
	rows := l.rows()
	for i := range rows {
		rows[i].Arrival += b.now - a.now
		rows[i].Until += b.now - a.now
	}
	if left := b.m.Restore(b.now, rows); len(left) != 0 {
		t.Fatalf("%d did not fit", len(left))
	}
	b.m.Settle(b.now.Add(SettleFor))
	if got := places(b.m); !slices.Equal(got, want) {
		t.Fatalf("order after the restart %v, before %v", got, want)
	}
	if n := b.m.Counts().Classes[class.Bulk]; n.Waiting != 20 || n.Paused != 1 {
		t.Fatalf("counts %+v", n)
	}
	// The one that had the seat queues by its old arrival, before all others, and only misses what it missed.
	b.want("back too early", b.ask(1, 1, class.Bulk), Wait)
	b.pass(SettleFor + time.Second)
	b.want("back", b.ask(1, 1, class.Bulk), Serve)
	if k := b.send(Event{Kind: Finish, Key: key(1), From: 10 * mega, To: 100 * mega}); k != Finished {
		t.Errorf("the rest of a download ends with effect %d", k)
	}
	// Nobody is a no-show before its longest check time is over, everybody is one afterwards.
	if effects := b.pass(MaxCheck); slices.ContainsFunc(effects, func(f Effect) bool { return f.Kind == NoShow }) {
		t.Error("a restored session was dropped before it could ask")
	}
	b.pass(MaxCheck)
	b.empty("restored")
}

// An ended download stays ended over a restart: its old ticket is void (D-8.2).
func TestRestoreKeepsTombstones(t *testing.T) {
	a := newRig(t, Default(1))
	a.m.Track()
	l := ledger{}
	a.ask(1, 1, class.Bulk)
	a.done(1)
	l.take(a.m)

	b := newRig(t, Default(1))
	b.m.Restore(b.now, l.rows())
	b.want("another", b.ask(2, 2, class.Bulk), Serve)
	b.pass(10 * time.Second)
	b.send(Event{Kind: Request, Key: key(1), Principal: key(1001), Size: mega, To: mega, Ticketed: true, Arrival: b.now.Add(-time.Hour)})
	if e, _ := b.m.Estimate(b.now, key(1)); e.Arrival < b.now.Add(-time.Second) {
		t.Errorf("a void ticket placed the download at %v", time.Duration(e.Arrival))
	}
}

// Whatever happens, what the journal was told equals the machine: the same counts come out of a restart.
func TestRestoreAgreesAfterAnything(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		a := newRig(t, Default(4))
		a.m.Track()
		l := ledger{}
		for range 600 {
			n := rnd.Uint64N(60)
			switch rnd.IntN(8) {
			case 0, 1, 2, 3:
				a.ask(n, n%7, class.Class(n%4))
			case 4:
				from := int64(rnd.IntN(90)) * mega
				a.send(Event{Kind: Finish, Key: key(n), From: from, To: from + 20*mega})
			case 5:
				a.send(Event{Kind: Cancel, Key: key(n)})
			default:
				a.pass(time.Duration(rnd.IntN(40)) * time.Second)
			}
			if rnd.IntN(3) == 0 {
				l.take(a.m)
			}
		}
		l.take(a.m)
		for k, s := range l {
			if s.State >= SavedPaused && s.Until <= a.now {
				delete(l, k)
			}
		}
		b := newRig(t, Default(4))
		b.now = a.now
		b.m.Restore(b.now, l.rows())
		was, is := a.m.Counts(), b.m.Counts()
		for c := range was.Classes {
			x, y := was.Classes[c], is.Classes[c]
			if x.Waiting != y.Waiting || x.Active+x.Paused != y.Paused || x.WaitingBytes != y.WaitingBytes {
				t.Fatalf("seed %d, class %v: %+v became %+v", seed, class.Class(c), x, y)
			}
		}
		b.pass(KeepGone)
		b.empty("restored")
	}
}

// What does not fit is told, not kept (D-7.1); a known key stays as it is.
func TestRestoreWithinBounds(t *testing.T) {
	p := Default(1)
	p.MaxSessions, p.MaxPerPrincipal = 3, 2
	r := newRig(t, p)
	row := func(n, principal uint64) Saved {
		return Saved{Key: key(n), Principal: key(principal), State: SavedWaiting, Arrival: clock.Mono(n), Size: mega, Left: mega}
	}
	left := r.m.Restore(r.now, []Saved{row(5, 1), row(4, 1), row(3, 1), row(2, 2), row(1, 3), row(1, 3)})
	if len(left) != 2 || r.m.Counts().Sessions != 3 {
		t.Fatalf("%d kept, left %+v", r.m.Counts().Sessions, left)
	}
}

// The list of changes is bounded by the records although nobody reads it.
func TestChangesAreBounded(t *testing.T) {
	r := newRig(t, Default(1))
	r.m.Track()
	for n := range uint64(20_000) {
		r.ask(n, n, class.Bulk)
		r.send(Event{Kind: Finish, Key: key(n)})
		r.send(Event{Kind: Cancel, Key: key(n)})
		if n%1000 == 0 {
			r.pass(KeepGone + time.Second)
		}
	}
	if n := r.m.Unsaved(); n > 5*pageSize {
		t.Errorf("%d changes are remembered of %d records", n, r.m.Counts().Sessions)
	}
	l := ledger{}
	l.take(r.m)
	if len(l) != r.m.Counts().Sessions {
		t.Errorf("%d sessions told, %d are there", len(l), r.m.Counts().Sessions)
	}
}

func TestRecordStaysSmall(t *testing.T) {
	if n := unsafe.Sizeof(record{}); n > 96 {
		t.Errorf("a record has %d bytes; a million of them were promised at 96 each", n)
	}
}

func TestGini(t *testing.T) {
	for _, c := range []struct {
		sizes []int64
		want  float64
		ok    bool
	}{
		{nil, 0, false}, {[]int64{7}, 0, false}, {[]int64{5, 5, 5, 5}, 0, true}, {[]int64{0, 0, 0, 100}, 0.75, true},
		{[]int64{1, 3}, 0.25, true}, {[]int64{0, 0}, 0, true},
	} {
		if g, ok := gini(slices.Clone(c.sizes)); ok != c.ok || math.Abs(g-c.want) > 1e-9 {
			t.Errorf("%v: %v, %v", c.sizes, g, ok)
		}
	}
	r := newRig(t, Default(1))
	for n := range uint64(5000) {
		size := int64(mega)
		if n%10 == 0 {
			size = 1000 * mega
		}
		r.send(Event{Kind: Request, Key: key(n), Principal: key(n), Class: class.Bulk, Size: size, To: size, Identified: true})
	}
	r.pass(time.Second)
	if g, ok := r.m.Gini(); !ok || g < 0.8 || g > 0.95 || len(r.m.sizes) > giniMost {
		t.Errorf("a tenth wants nearly everything: %v, %v from %d", g, ok, len(r.m.sizes))
	}
}

// BenchmarkArrivals is what noting changes for a journal costs.
func BenchmarkArrivals(b *testing.B) {
	for name, tracks := range map[string]bool{"plain": false, "journalled": true} {
		b.Run(name, func(b *testing.B) {
			p := Default(16)
			p.MaxSessions = 1 << 20
			m, err := New(p, 1)
			if err != nil {
				b.Fatal(err)
			}
			if tracks {
				m.Track()
			}
			var buf []Saved
			n := uint64(0)
			for b.Loop() {
				n++
				if n%(1<<19) == 0 {
					b.StopTimer()
					if m, err = New(p, 1); err != nil {
						b.Fatal(err)
					}
					if tracks {
						m.Track()
					}
					b.StartTimer()
				}
				m.Apply(clock.Mono(n), Event{Kind: Request, Key: key(n), Principal: key(n % 10_000), Class: class.Bulk, Identified: true, Size: mega, To: mega})
				if n%2000 == 0 {
					buf = m.Changes(2000, buf[:0])
				}
			}
		})
	}
}
