package governor

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roadstead/roadstead/internal/class"
)

// size is how much the queue remembers.
func (q *queue) size() int {
	n := len(q.names) + q.road.ready.Len() + q.aside.ready.Len() + q.parked.Len()
	for i := range q.gates {
		n += q.gates[i].Len()
	}
	return n
}

// put opens a flow of a session on a lane.
func (sc *scene) put(p string, id byte, l Lane) *Flow {
	f := sc.flow(p, id)
	sc.q.steer(f.session, l)
	return f
}

// Who is aside gets what nobody else wants: nearly nothing on a full link, all of an idle one (minimum rate).
func TestAsideGetsWhatIsLeft(t *testing.T) {
	sc := newScene(0)
	sc.ask(sc.put("slow", 1, Lane{Aside: true}), 1000)
	sc.ask(sc.put("late", 1, Lane{Aside: true}), 1000)
	sc.run(2*time.Second, sc.q.ask)
	near(t, "slow alone with late", sc.sent["slow"], 1_000_000, 0.01)

	quick := sc.flow("quick", 1)
	sc.sent = map[string]int64{}
	sc.ask(quick, 1000)
	stop := false
	sc.run(10*time.Second, func(f *Flow) {
		if f != quick || !stop {
			sc.q.ask(f)
		}
	})
	near(t, "aside beside one that wants all", sc.sent["slow"]+sc.sent["late"], 10*trickle, 0.05)
	near(t, "the trickle is shared", sc.sent["slow"], 5*trickle, 0.05)
	near(t, "quick", sc.sent["quick"], 10*(linkRate-trickle), 0.01)

	stop, sc.sent = true, map[string]int64{}
	sc.run(time.Second, func(f *Flow) {
		if f != quick {
			sc.q.ask(f)
		}
	})
	near(t, "aside after it has gone", sc.sent["slow"], 500_000, 0.01)
}

// What a principal's ceiling keeps it from is left over, and the ceiling holds aside too.
func TestAsideBesideCeilings(t *testing.T) {
	sc := newScene(400_000)
	sc.ask(sc.flow("capped", 1), 1000)
	sc.ask(sc.put("slow", 1, Lane{Aside: true}), 1000)
	sc.ask(sc.put("capped", 2, Lane{Aside: true}), 1000)
	sc.run(2*time.Second, sc.q.ask)
	near(t, "capped in all", sc.sent["capped"], 800_000, 0.02)
	near(t, "slow", sc.sent["slow"], 800_000, 0.02)
}

// A session moves while it waits, and back; moving wins nothing.
func TestSteerWhileWaiting(t *testing.T) {
	sc := newScene(0)
	a, b := sc.flow("a", 1), sc.flow("b", 1)
	sc.ask(a, 1000)
	sc.ask(b, 1000)
	sc.run(time.Second, sc.q.ask)
	sc.q.steer(b.session, Lane{Aside: true})
	sc.sent = map[string]int64{}
	sc.run(time.Second, sc.q.ask)
	near(t, "a", sc.sent["a"], linkRate-trickle, 0.01)
	sc.q.steer(b.session, Lane{})
	sc.sent = map[string]int64{}
	sc.run(time.Second, sc.q.ask)
	near(t, "b back on the road", sc.sent["b"], linkRate/2, 0.01)
	hop := false
	sc.sent = map[string]int64{}
	sc.run(2*time.Second, func(f *Flow) {
		if f == b {
			hop = !hop
			sc.q.steer(b.session, Lane{Outside: hop, Class: class.Bulk})
		}
		sc.q.ask(f)
	})
	if sc.sent["b"] > sc.sent["a"]*101/100 {
		t.Errorf("changing lanes won %d against %d", sc.sent["b"], sc.sent["a"])
	}
}

// Sessions begun outside their window share their class's part, equally between principals; the rest is the others'
// (D-5.2).
func TestOutsideShare(t *testing.T) {
	sc := newScene(0)
	c := Config{Total: linkRate}
	c.Outside[class.Bulk], c.Outside[class.Background] = 0.2, 0.05
	sc.q.limit(0, c)
	for i := range 5 {
		sc.ask(sc.put("many", byte(i), Lane{Outside: true, Class: class.Bulk}), 1000)
	}
	sc.ask(sc.put("one", 1, Lane{Outside: true, Class: class.Bulk}), 1000)
	sc.ask(sc.put("mirror", 1, Lane{Outside: true, Class: class.Background}), 1000)
	sc.ask(sc.flow("inside", 1), 1000)
	sc.ask(sc.flow("one", 9), 1000) // another session of the same principal, begun inside
	sc.run(4*time.Second, sc.q.ask)
	near(t, "many outside", sc.sent["many"], 400_000, 0.02)
	near(t, "one outside", sc.sent["one1"], 400_000, 0.02)
	near(t, "mirror", sc.sent["mirror"], 200_000, 0.03)
	near(t, "the link", sc.sent["many"]+sc.sent["one"]+sc.sent["mirror"]+sc.sent["inside"], 4*linkRate, 0.01)
	near(t, "inside, as much as the principal that is both", sc.sent["inside"], sc.sent["one"], 0.02)
}

// A share is a ceiling, not a promise: outside its window nobody gets more than inside.
func TestOutsideIsNeverBetter(t *testing.T) {
	sc := newScene(0)
	c := Config{Total: linkRate}
	c.Outside[class.Bulk] = 0.5
	sc.q.limit(0, c)
	sc.ask(sc.put("out", 1, Lane{Outside: true, Class: class.Bulk}), 1000)
	for i := range 9 {
		sc.ask(sc.flow(fmt.Sprint("in", i), 1), 1000)
	}
	sc.run(2*time.Second, sc.q.ask)
	near(t, "out", sc.sent["out"], 200_000, 0.02)
}

// A share of nothing leaves who began on a larger one a trickle; who is gone leaves nothing behind.
func TestOutsideShareOfNothing(t *testing.T) {
	sc := newScene(0)
	f := sc.put("out", 1, Lane{Outside: true, Class: class.Release})
	g := sc.put("out", 2, Lane{Outside: true, Class: class.Release})
	sc.ask(f, 1000)
	sc.ask(g, 1000)
	sc.run(4*time.Second, sc.q.ask)
	near(t, "out", sc.sent["out"], 4*trickle, 0.05)
	for _, f := range []*Flow{f, g} {
		sc.q.drop(f)
		sc.q.leave(sc.now, f.session)
	}
	if n := sc.q.size(); n != 0 {
		t.Errorf("%d things are left behind", n)
	}
}

// The flow that waits moves when it is told, from inside its own wait, and says how long it was held.
func TestFlowIsSteeredWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, Config{Total: 100_000})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		busy := g.Flow("busy", [16]byte{1})
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer busy.Close()
			for busy.Take(ctx, 10_000, nil) == nil {
			}
		}()
		f := g.Flow("slow", [16]byte{2})
		defer f.Close()
		f.Steer(Lane{Aside: true, Class: class.Bulk})
		if f.Slice() != asideSlice || g.Flow("slow", [16]byte{2}).lane != f.lane {
			t.Error("a flow of a session aside doesn't know it")
		}
		if err := f.Take(ctx, 10*asideSlice, nil); err != nil { // uses the trickle of ten seconds
			t.Fatal(err)
		}
		f.Paced()
		began, told := time.Now(), time.Duration(0)
		if err := f.Take(ctx, 1000, func() {
			told += f.Paced()
			f.Steer(Lane{})
		}); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d < StillEvery || d > StillEvery+time.Second {
			t.Errorf("got its bytes %v after it asked, want soon after it was moved back", d)
		} else if told < StillEvery || told+f.Paced() != d {
			t.Errorf("held for %v, says %v at first", d, told)
		}
		cancel()
		<-done
	})
}
