package forerun

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
)

const (
	mega = int64(1 << 20)
	now  = clock.Mono(time.Hour)
)

func key(n int) (k session.Key) {
	binary.LittleEndian.PutUint64(k[:], uint64(n)*0x9E3779B97F4A7C15)
	binary.LittleEndian.PutUint64(k[8:], uint64(n))
	return k
}

// waiter is the n-th to come of a principal.
func waiter(n, principal int, c class.Class, size int64) session.Saved {
	return session.Saved{
		Key: key(n), Principal: key(1_000_000 + principal), State: session.SavedWaiting, Class: c, Identified: true,
		Arrival: now.Add(time.Duration(n-10_000) * time.Millisecond), Size: size, Left: size,
	}
}

func fleet(n int, c class.Class, size func(i int) int64) (all []session.Saved) {
	for i := range n {
		all = append(all, waiter(i+1, i, c, size(i)))
	}
	return all
}

func same(size int64) func(int) int64 { return func(int) int64 { return size } }

func forward(t *testing.T, q Queue, r Rules) Result {
	t.Helper()
	got, err := Play(t.Context(), q, r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func near(t *testing.T, what string, got, want time.Duration, within float64) {
	t.Helper()
	if math.Abs(got.Seconds()-want.Seconds()) > within*want.Seconds()+1 {
		t.Errorf("%s: %v, want about %v", what, got, want)
	}
}

func mean(q Queue, fates []Fate, at func(Fate) clock.Mono) (d time.Duration) {
	for _, f := range fates {
		d += at(f).Sub(q.Now) / time.Duration(len(fates))
	}
	return d
}

func finish(f Fate) clock.Mono { return f.Finish }

// The last byte comes when the link carried all of them, whatever the rules; the mean end is what rules change.
func TestStrategies(t *testing.T) {
	sizes := func(i int) int64 { return (100 + int64(i*37%400)) * mega }
	q := Queue{Now: now, Waiting: fleet(200, class.Release, sizes), Rate: 100 * mega}
	bytes := int64(0)
	for _, s := range q.Waiting {
		bytes += s.Left
	}
	all := time.Duration(float64(bytes) / float64(q.Rate) * float64(time.Second))
	ordered := session.Default(4)
	smallest := ordered
	smallest.Strategy = session.SmallestFirst
	var ends []time.Duration
	for _, r := range []Rules{{Policy: ordered, Shared: true}, {Policy: ordered}, {Policy: smallest}} {
		got := forward(t, q, r)
		if !got.Whole {
			t.Fatal("not whole")
		}
		near(t, "the last byte", got.Done.Sub(now), all, 0.03)
		ends = append(ends, mean(q, got.Fates, finish))
		if again := forward(t, q, r); !reflect.DeepEqual(again, got) {
			t.Error("the same queue under the same rules ends otherwise")
		}
	}
	if !(ends[2] < ends[1]*85/100 && ends[1] < ends[0]*85/100) {
		t.Errorf("mean end: shared %v, ordered %v, smallest first %v; each should gain", ends[0], ends[1], ends[2])
	}
}

// The run agrees with the start that the live machine tells (D-6.1).
func TestAgreesWithTheEstimate(t *testing.T) {
	p := session.Default(4)
	p.LinkRate = 100 * mega
	m, err := session.New(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	at := now
	for n := 1; n <= 80; n++ {
		m.Apply(at, session.Event{
			Kind: session.Request, Key: key(n), Principal: key(1_000_000 + n%20), Class: class.Class(n % class.Count), Identified: true, Size: 200 * mega, To: 200 * mega,
		})
		at = at.Add(time.Millisecond)
	}
	m.Tick(at)
	seated, waiting, more := m.Snapshot(1000)
	if more != 0 || len(seated) != 4 {
		t.Fatalf("%d seated, %d waiting, %d more", len(seated), len(waiting), more)
	}
	q := Queue{Now: at, Seated: seated, Waiting: waiting, Rate: p.LinkRate}
	got := forward(t, q, Rules{Policy: p})
	if drained, known := m.Drained(at); !known {
		t.Error("the machine knows no rate")
	} else {
		near(t, "drained", got.Drained.Sub(at), drained.Sub(at), 0.15)
	}
	off := time.Duration(0)
	for i, f := range got.Fates {
		est, _ := m.Estimate(at, waiting[i].Key)
		off += max(est.Start.Sub(f.Start), f.Start.Sub(est.Start)) / time.Duration(len(waiting))
	}
	if turn := 8 * time.Second; off > turn {
		t.Errorf("starts are %v from the estimates in the mean, more than a seat turn", off)
	}
}

// Active sessions keep their seats when there are fewer seats (D-3), and the order is kept.
func TestFewerSeats(t *testing.T) {
	var q Queue
	q.Now, q.Rate = now, 100*mega
	for n := 1; n <= 8; n++ {
		s := waiter(n, n, class.Release, 100*mega)
		s.State, s.Begun, s.Left, s.Spans = session.SavedActive, true, 50*mega, []session.Span{{From: 0, To: 50 * mega}}
		q.Seated = append(q.Seated, s)
	}
	q.Waiting = []session.Saved{waiter(11, 11, class.Release, 100*mega), waiter(12, 12, class.Release, 100*mega)}
	got := forward(t, q, Rules{Policy: session.Default(1)})
	near(t, "first start", got.Fates[0].Start.Sub(now), 4*time.Second, 0.1)
	near(t, "second start", got.Fates[1].Start.Sub(now), 5*time.Second, 0.1)
	near(t, "end", got.Done.Sub(now), 6*time.Second, 0.1)
}

// A closed class starts when its window opens, and who waits for a window that never opens ends the run (D-5.2).
func TestWindows(t *testing.T) {
	q := Queue{Now: now, Waiting: fleet(3, class.Bulk, same(100*mega)), Rate: 100 * mega}
	opens := now.Add(5 * time.Hour)
	r := Rules{Policy: session.Default(4)}
	r.Windows[class.Bulk] = func(at clock.Mono) (bool, bool, []clock.Mono) {
		if at >= opens {
			return true, false, nil
		}
		return false, false, []clock.Mono{opens}
	}
	got := forward(t, q, r)
	if !got.Whole {
		t.Fatal("not whole")
	}
	near(t, "start", got.Fates[0].Start.Sub(now), 5*time.Hour, 0.001)
	r.Windows[class.Bulk] = func(clock.Mono) (bool, bool, []clock.Mono) { return false, false, nil }
	if got = forward(t, q, r); got.Whole || got.Fates[0].Started {
		t.Errorf("a window that never opens let somebody start: %+v", got)
	}
}

// A higher class takes a seat from a lower one after a minute when that is allowed, and everybody ends all the same
// (D-4.5).
func TestPreemption(t *testing.T) {
	q := Queue{Now: now, Rate: 10 * mega}
	s := waiter(1, 1, class.Background, 10_000*mega)
	s.State = session.SavedActive
	q.Seated = []session.Saved{s}
	q.Waiting = []session.Saved{waiter(2, 2, class.Release, 100*mega)}
	p := session.Default(1)
	if got := forward(t, q, Rules{Policy: p}); !got.Whole || got.Fates[0].Start.Sub(now) > 3*time.Minute {
		t.Errorf("with preemption: %+v", got)
	}
	p.Preempt = false
	near(t, "start without preemption", forward(t, q, Rules{Policy: p}).Fates[0].Start.Sub(now), 1000*time.Second, 0.01)
}

// Nothing is promised when the link's rate is not known, and a run that is stopped says so.
func TestUnknownAndStopped(t *testing.T) {
	if _, err := Play(t.Context(), Queue{}, Rules{Policy: session.Default(1)}); err == nil {
		t.Error("played without a rate")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := Play(ctx, Queue{Now: now, Waiting: fleet(10, class.Bulk, same(mega)), Rate: mega}, Rules{Policy: session.Default(1)})
	if err != nil || got.Whole {
		t.Errorf("a stopped run: %+v, %v", got, err)
	}
}

// A run of 20,000 sessions takes about a second, so that a dry run answers.
func BenchmarkPlay(b *testing.B) {
	for _, n := range []int{1000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			q := Queue{Now: now, Waiting: fleet(n, class.Release, func(i int) int64 { return int64(1+i%16) * 1000 * mega }), Rate: 120 * mega}
			for b.Loop() {
				if r, err := Play(b.Context(), q, Rules{Policy: session.Default(16)}); err != nil || !r.Whole {
					b.Fatal(err)
				}
			}
		})
	}
}
