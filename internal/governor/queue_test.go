package governor

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
)

// scene drives the pure queue: flows that want bytes for ever, on a link of 1,000 bytes a millisecond.
type scene struct {
	q    *queue
	now  clock.Mono
	sent map[string]int64
}

const linkRate = 1_000_000

func newScene(each int64) *scene {
	q := newQueue()
	q.limit(0, Config{Total: linkRate, PerPrincipal: each})
	return &scene{q: q, sent: map[string]int64{}}
}

func (sc *scene) flow(p string, id byte) *Flow {
	return &Flow{session: sc.q.join(sc.now, p, [16]byte{15: id})}
}

// run serves for d; again says what a served flow does next.
func (sc *scene) run(d time.Duration, again func(*Flow)) {
	for end := sc.now.Add(d); ; {
		for _, f := range sc.q.grant(sc.now) {
			sc.sent[f.session.of.name] += f.want
			sc.sent[fmt.Sprint(f.session.of.name, f.session.id[15])] += f.want
			again(f)
		}
		at, ok := sc.q.due()
		if !ok || at > end {
			sc.now = end
			return
		}
		sc.now = max(sc.now, at)
	}
}

func (sc *scene) ask(f *Flow, n int64) { f.want = n; sc.q.ask(f) }

func near(t *testing.T, what string, got, want int64, tolerance float64) {
	t.Helper()
	if d := float64(got-want) / float64(want); d > tolerance || d < -tolerance {
		t.Errorf("%s: %d, want %d within %.1f %%", what, got, want, tolerance*100)
	}
}

// A hundred connections, sessions or small slices get a principal no more than one connection (D-12.2).
func TestEqualBetweenPrincipals(t *testing.T) {
	sc := newScene(0)
	sc.ask(sc.flow("modest", 1), 1000)
	for i := range 100 {
		sc.ask(sc.flow("greedy", byte(i)), 5000)
	}
	for i := range 10 {
		sc.ask(sc.flow("tiny", byte(i)), 10)
	}
	sc.run(3*time.Second, sc.q.ask)
	for _, p := range []string{"modest", "greedy", "tiny"} {
		near(t, p, sc.sent[p], 1_000_000, 0.02)
	}
}

// Sessions of a principal share equally, however many responses each has open.
func TestEqualBetweenSessions(t *testing.T) {
	sc := newScene(0)
	sc.ask(sc.flow("p", 1), 1000)
	for range 4 {
		sc.ask(sc.flow("p", 2), 1000)
	}
	sc.run(2*time.Second, sc.q.ask)
	near(t, "session 1", sc.sent["p1"], 1_000_000, 0.01)
	near(t, "session 2", sc.sent["p2"], 1_000_000, 0.01)
}

// Hanging up after each slice and coming back as a new connection gains nothing, at either level.
func TestReopenGainsNothing(t *testing.T) {
	sc := newScene(0)
	sc.ask(sc.flow("modest", 1), 1000)
	sc.ask(sc.flow("hopper", 1), 1000)
	id := byte(1)
	sc.run(4*time.Second, func(f *Flow) {
		if f.session.of.name == "hopper" {
			sc.q.leave(sc.now, f.session)
			id++
			f = sc.flow("hopper", id)
			f.want = 1000
		}
		sc.q.ask(f)
	})
	near(t, "modest", sc.sent["modest"], 2_000_000, 0.01)
}

// The idle have no arrears: who comes late gets its part from then on, not more.
func TestNoArrears(t *testing.T) {
	sc := newScene(0)
	early, late := sc.flow("early", 1), sc.flow("late", 1)
	sc.ask(early, 1000)
	sc.run(10*time.Second, sc.q.ask)
	sc.ask(late, 1000)
	before := sc.sent["early"]
	sc.run(2*time.Second, sc.q.ask)
	near(t, "early", sc.sent["early"]-before, 1_000_000, 0.01)
	near(t, "late", sc.sent["late"], 1_000_000, 0.01)
}

// A ceiling holds over all connections of a principal, and what it leaves is everybody else's.
func TestPerPrincipalCeiling(t *testing.T) {
	sc := newScene(700_000)
	for i := range 5 {
		sc.ask(sc.flow("capped", byte(i)), 1000)
	}
	sc.run(2*time.Second, sc.q.ask)
	near(t, "capped alone", sc.sent["capped"], 1_400_000, 0.02)

	sc.ask(sc.flow("other", 1), 1000)
	sc.sent = map[string]int64{}
	sc.run(2*time.Second, sc.q.ask)
	near(t, "capped", sc.sent["capped"], 1_000_000, 0.02)
	near(t, "other", sc.sent["other"], 1_000_000, 0.02)
}

// The ceiling of a principal outlives its connections.
func TestHangingUpKeepsTheCeiling(t *testing.T) {
	sc := newScene(100_000)
	f := sc.flow("p", 1)
	sc.ask(f, 100_000)
	sc.run(0, func(f *Flow) { sc.q.leave(sc.now, f.session) })
	sc.ask(sc.flow("p", 2), 1000)
	sc.now = sc.q.total.free
	if len(sc.q.grant(sc.now)) > 0 {
		t.Error("served beyond its ceiling")
	}
	if at, _ := sc.q.due(); at < clock.Mono(900*time.Millisecond) {
		t.Errorf("next bytes at %v, want about a second", time.Duration(at))
	}
	for i := range 1000 {
		sc.now = sc.now.Add(time.Second)
		g := sc.flow(fmt.Sprint("x", i), 1)
		sc.q.ask(g)
		sc.q.drop(g)
		sc.q.leave(sc.now, g.session)
	}
	if n := len(sc.q.names); n > 64 {
		t.Errorf("%d principals remembered", n)
	}
}

// Ceilings change in mid-wait; what was granted stays paid for.
func TestChangeOfRate(t *testing.T) {
	sc := newScene(0)
	sc.ask(sc.flow("p", 1), 1000)
	sc.run(time.Second, sc.q.ask)
	sc.q.limit(sc.now, Config{Total: linkRate / 10})
	sc.sent = map[string]int64{}
	sc.run(time.Second, sc.q.ask)
	near(t, "slower", sc.sent["p"], 100_000, 0.02)
	sc.q.limit(sc.now, Config{})
	if at, ok := sc.q.due(); !ok || at > sc.now {
		t.Errorf("without ceilings the waiting must go at once")
	}
}

// Random histories: the rate is kept, nobody is lost or served twice, drops leave no trace.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		sc := newScene([]int64{0, 300_000}[seed%2])
		waiting := map[*Flow]bool{}
		var idle []*Flow
		for i := range 40 {
			idle = append(idle, sc.flow(fmt.Sprint("p", r.IntN(8)), byte(i%7)))
		}
		var sent int64
		for range 2000 {
			switch i := r.IntN(len(idle) + 1); {
			case i < len(idle) && r.IntN(4) > 0:
				f := idle[i]
				idle = append(idle[:i], idle[i+1:]...)
				waiting[f] = true
				sc.ask(f, 1+r.Int64N(3000))
			case r.IntN(8) == 0:
				for f := range waiting {
					sc.q.steer(f.session, Lane{Aside: r.IntN(3) == 0, Outside: r.IntN(3) == 0, Class: class.Class(r.IntN(class.Count))})
					break
				}
			case r.IntN(8) == 0:
				for f := range waiting {
					sc.q.drop(f)
					delete(waiting, f)
					idle = append(idle, f)
					break
				}
			default:
				sc.now = sc.now.Add(time.Duration(r.IntN(2_000_000)))
			}
			for _, f := range sc.q.grant(sc.now) {
				if !waiting[f] {
					t.Fatalf("seed %d: served one that did not wait", seed)
				}
				delete(waiting, f)
				idle = append(idle, f)
				sent += f.want
			}
			if at, ok := sc.q.due(); ok != (len(waiting) > 0) || ok && at <= sc.now {
				t.Fatalf("seed %d: %d wait, next %v at %v, %v", seed, len(waiting), at, sc.now, ok)
			}
		}
		if most := int64(sc.now.Sub(0).Seconds()*linkRate) + linkRate/4 + 3000; sent > most {
			t.Fatalf("seed %d: sent %d of at most %d", seed, sent, most)
		}
		for f := range waiting {
			sc.q.drop(f)
			idle = append(idle, f)
		}
		for _, f := range idle {
			sc.q.leave(sc.now, f.session)
		}
		sc.q.sweepAt = 0
		sc.q.sweep(sc.now.Add(time.Minute))
		if sc.q.size() != 0 {
			t.Fatalf("seed %d: something is left behind", seed)
		}
	}
}
