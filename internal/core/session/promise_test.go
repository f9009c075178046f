package session

import (
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/core/forecast"
)

// knows teaches the machine that starts are a tenth of a width late at most.
func (r *rig) knows(c class.Class) {
	var learnt [class.Count]forecast.Calibration
	for i := range 100 {
		learnt[c].Learn(float64(i) / 1000)
	}
	r.m.Teach(learnt)
}

// queued is a rig whose only seat is taken by download 1 for as long as it takes; 2 waits, and was told when it starts
// after the queue had been seen for a while.
func queued(t *testing.T) (r *rig, told Estimate) {
	p := Default(1)
	p.LinkRate, p.MinRate, p.Preempt = mega, 0, false
	r = newRig(t, p)
	r.knows(class.Bulk)
	r.ask(1, 1, class.Bulk)
	r.ask(3, 3, class.Bulk)
	for range 90 {
		r.pass(time.Second)
		r.m.Apply(r.now, Event{Kind: Progress, Key: key(1), Bytes: mega})
		r.m.Answer(r.now, key(3))
	}
	r.ask(2, 2, class.Bulk)
	r.pass(TickEvery)
	told, _ = r.m.Answer(r.now, key(2))
	if h := r.m.index.find(&r.m.records, ptr(key(2))); r.m.records.at(h).promise.blind {
		t.Fatal("a start in a queue that is known is told as if it were not")
	}
	return r, told
}

func ptr(k Key) *Key { return &k }

// Who waits past the p90 it was told has missed it, and later ones are told more before it starts (D-6.3).
func TestOverdueCountsAtOnce(t *testing.T) {
	r, told := queued(t)
	before := r.m.learnt[class.Bulk].Spread(0, false).P90
	misses := 0
	for range 600 {
		r.pass(time.Second)
		r.m.Apply(r.now, Event{Kind: Progress, Key: key(1), Bytes: 1})
		r.m.Answer(r.now, key(3))
		r.m.Answer(r.now, key(2))
		if after := r.m.learnt[class.Bulk].Spread(0, false).P90; after != before {
			if r.now <= told.P90 {
				t.Fatal("a miss was learnt before it was one")
			}
			misses, before = misses+1, after
		}
	}
	if misses != 1 {
		t.Errorf("%d misses were learnt of one session that is overdue; the other was told blindly", misses)
	}
}

// A wait is scored once. Who comes back from a pause waits anew, and is told anew (D-6.3).
func TestWaitIsScoredOnce(t *testing.T) {
	r, _ := queued(t)
	started := func(n uint64) (e Effect) {
		t.Helper()
		r.pass(TickEvery)
		for range 10 {
			r.ask(n, n, class.Bulk)
			for _, e := range r.m.effects {
				if e.Kind == Started && e.Key == key(n) {
					return e
				}
			}
			r.pass(TickEvery)
		}
		t.Fatalf("download %d does not start", n)
		return e
	}
	r.done(1)
	if e := started(3); !e.Promised {
		t.Error("the start is not scored")
	}
	r.pass(r.m.policy.Idle + time.Second) // it falls silent, and the next has its seat
	if e := started(2); !e.Promised {
		t.Error("the start is not scored")
	}
	r.ask(3, 3, class.Bulk)
	r.pass(TickEvery)
	again, _ := r.m.Answer(r.now, key(3))
	r.done(2)
	e := started(3)
	if d := e.Point.Sub(again.Start); !e.Promised || d < -time.Second || d > time.Second {
		t.Errorf("the second wait is scored by %v, told was %v", time.Duration(e.Point), time.Duration(again.Start))
	}
}

// Those of higher classes that are still to come are in what a session is told, not in when it is to ask again (D-6.1,
// D-6.2).
func TestStartCountsOnThoseToCome(t *testing.T) {
	p := Default(1)
	p.LinkRate, p.Preempt = 10*mega, false
	told := func(others bool) Estimate {
		r := newRig(t, p)
		r.ask(1, 1, class.Bulk)
		for n := uint64(2); n < 12; n++ {
			r.ask(n, n, class.Background)
		}
		running := uint64(1)
		for i := range uint64(300) {
			r.pass(time.Second)
			if others && i%20 == 0 {
				r.ask(100+i, 100+i, class.Release)
			}
			r.m.Apply(r.now, Event{Kind: Progress, Key: key(running), Bytes: 10 * mega})
			for n := uint64(2); n < 12; n++ {
				r.m.Answer(r.now, key(n))
			}
			for i := range uint64(300) {
				r.m.Answer(r.now, key(100+i))
			}
		}
		for i := range uint64(300) {
			r.send(Event{Kind: Cancel, Key: key(100 + i)}) // so that the same wait in both
		}
		r.pass(TickEvery)
		e, _ := r.m.Answer(r.now, key(11))
		return e
	}
	alone, beside := told(false), told(true)
	if d := beside.Start.Sub(alone.Start); d < 10*time.Second {
		t.Errorf("it is told to start %v later when releases come all the time", d)
	}
	if d := beside.Check.Sub(alone.Check); d != 0 {
		t.Errorf("it is to ask %v later", d)
	}
}
