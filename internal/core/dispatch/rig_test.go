package dispatch

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

// rig drives a machine: what it starts ends by itself when its time is over.
type rig struct {
	t    testing.TB
	m    *Machine
	now  clock.Mono
	n    int
	ends endings
	took map[string]time.Duration // how long an Attempt of a Run will really take
	came map[string]clock.Mono

	started  func(d Decision, waited time.Duration) // when set
	finished func(tenant string, share Share, took time.Duration)
	batch    int // of Decide
}

type running struct {
	at     clock.Mono
	d      Decision
	actual time.Duration
}

// endings is a heap of what runs.
type endings []running

func (e endings) Len() int { return len(e) }
func (e endings) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].d.Seq < e[j].d.Seq
}
func (e endings) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(x any)   { *e = append(*e, x.(running)) }
func (e *endings) Pop() any {
	o := *e
	x := o[len(o)-1]
	*e = o[:len(o)-1]
	return x
}

func newRig(t testing.TB, p Policy) *rig {
	t.Helper()
	m, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, m: m, now: clock.Mono(time.Hour), took: map[string]time.Duration{}, came: map[string]clock.Mono{}, batch: 100}
}

func (r *rig) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// runner adds a runner of so many slots.
func (r *rig) runner(id string, slots int64) {
	r.t.Helper()
	r.ok(r.m.SetRunner(r.now, Runner{ID: id, Capacity: Vector{Slots: slots}}))
}

func (r *rig) tenant(id string, weight int) {
	r.t.Helper()
	r.ok(r.m.SetTenant(r.now, Tenant{ID: id, Weight: weight}))
}

// submit queues a Run of one slot that is expected to take and takes these times.
func (r *rig) submit(tenant string, expected, actual time.Duration, with ...func(*Run)) string {
	r.t.Helper()
	r.n++
	run := Run{ID: fmt.Sprintf("run_%08d", r.n), Tenant: tenant, Need: Vector{Slots: 1}, Timeout: 10 * max(expected, actual), Expected: expected}
	for _, f := range with {
		f(&run)
	}
	r.ok(r.m.Submit(r.now, run))
	r.took[run.ID], r.came[run.ID] = actual, r.now
	return run.ID
}

// decide starts what can be started, and says what.
func (r *rig) decide() (runs []string) {
	for {
		ds := r.m.Decide(r.now, r.batch)
		for _, d := range ds {
			heap.Push(&r.ends, running{r.now.Add(r.took[d.Run]), d, r.took[d.Run]})
			runs = append(runs, d.Run)
			if r.started != nil {
				r.started(d, r.now.Sub(r.came[d.Run]))
			}
		}
		if len(ds) < r.batch {
			return runs
		}
	}
}

// next lets the first Attempt end.
func (r *rig) next() (running, bool) {
	if len(r.ends) == 0 {
		return running{}, false
	}
	e := heap.Pop(&r.ends).(running)
	r.now = max(r.now, e.at)
	if !r.m.Finish(r.now, e.d.Run, e.actual) {
		r.t.Fatalf("%s does not end", e.d.Run)
	}
	delete(r.took, e.d.Run)
	delete(r.came, e.d.Run)
	if r.finished != nil {
		r.finished(e.d.Tenant, e.d.Share, e.actual)
	}
	return e, true
}

// run lets time go by until an instant.
func (r *rig) run(until clock.Mono) {
	for {
		r.decide()
		at, more := r.m.Next()
		if len(r.ends) > 0 && (!more || r.ends[0].at <= at) {
			at, more = r.ends[0].at, true
			for len(r.ends) > 0 && r.ends[0].at == at && at <= until {
				r.next()
			}
			if at <= until {
				continue
			}
		}
		if !more || at > until {
			r.now = until
			return
		}
		r.now = at
	}
}

func seeded(t testing.TB, seed uint64) *rand.Rand {
	t.Helper()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}
