package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

// load is a pool of 500 slots that is full, with 40,000 Runs waiting of so many tenants, and backlog more of the first.
func load(t testing.TB, tenants, backlog int) *rig {
	r := newRig(t, Default())
	for i := range 50 {
		r.runner(fmt.Sprintf("r%02d", i), 10)
	}
	for i := range tenants {
		who := fmt.Sprintf("t%05d", i)
		r.tenant(who, 1+i%4)
		for range 40_000 / tenants {
			r.submit(who, 10*time.Second, 10*time.Second)
		}
	}
	for range backlog {
		r.submit("t00000", 10*time.Second, 10*time.Second)
	}
	r.decide()
	return r
}

// life submits, decides and settles n Runs of tenants in turn, and says what one cost.
func (r *rig) life(tenants, n int) time.Duration {
	ids := make([]string, n)
	names := make([]string, n)
	for i := range n {
		r.n++
		ids[i], names[i] = fmt.Sprintf("run_%08d", r.n), fmt.Sprintf("t%05d", i*7919%tenants)
	}
	run := Run{Need: Vector{Slots: 1}, Timeout: time.Minute, Expected: 10 * time.Second}
	begin := time.Now()
	for i := range n {
		run.ID, run.Tenant = ids[i], names[i]
		if err := r.m.Submit(r.now, run); err != nil {
			r.t.Fatal(err)
		}
		e := r.ends[0]
		r.m.Finish(r.now, e.d.Run, 11*time.Second)
		ds := r.m.Decide(r.now, 10)
		if len(ds) != 1 {
			r.t.Fatalf("%d decisions", len(ds))
		}
		r.ends[0] = running{d: ds[0]}
		r.ends[0], r.ends[i%len(r.ends)] = r.ends[i%len(r.ends)], r.ends[0]
		r.now += clock.Mono(time.Millisecond)
	}
	return time.Since(begin) / time.Duration(n)
}

// What a Run costs the core, submitted, decided and settled, grows by no more than 4 from 100 to 10,000 tenants, and
// hardly by a backlog of 100,000 of one tenant. The best of several rounds, in turns, so that a busy machine slows both.
func TestCostOfTenantsAndBacklog(t *testing.T) {
	few, many, deep := load(t, 100, 0), load(t, 10_000, 0), load(t, 100, 100_000)
	best := [3]time.Duration{}
	for round := range 12 {
		for i, c := range []time.Duration{few.life(100, 5000), many.life(10_000, 5000), deep.life(100, 5000)} {
			if round == 0 || c < best[i] {
				best[i] = c
			}
		}
	}
	t.Logf("a Run costs %v with 100 tenants, %v with 10,000 (%.2f x), %v beside a backlog of 100,000 (%.2f x)", best[0], best[1],
		float64(best[1])/float64(best[0]), best[2], float64(best[2])/float64(best[0]))
	if best[1] > 4*best[0] {
		t.Errorf("with 10,000 tenants a Run costs %v, with 100 %v", best[1], best[0])
	}
	if best[2] > 4*best[0] {
		t.Errorf("beside a backlog of 100,000 a Run costs %v, without %v", best[2], best[0])
	}
}

// Runners by the thousand cost a search its tree, not a walk.
func BenchmarkRunners(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := newRig(b, Default())
			for i := range n {
				r.runner(fmt.Sprintf("r%05d", i), 2)
			}
			for range 2 * n {
				r.submit("a", time.Minute, time.Minute)
			}
			r.decide()
			b.ResetTimer()
			for range b.N {
				r.life(1, 1)
			}
		})
	}
}

// A forecast of 100,000 waiting Runs.
func BenchmarkForecast(b *testing.B) {
	r := load(b, 1000, 100_000)
	b.ResetTimer()
	for range b.N {
		r.m.Forecast(r.now, Limits{})
	}
}
