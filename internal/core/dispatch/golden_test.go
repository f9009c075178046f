package dispatch

import (
	"math"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

// golden is tenants that always have work, and the parts of the pool that they must get.
type golden struct {
	slots   int64
	weights []int
	seconds []float64
	want    []float64
}

// estimate is how the shell of a simulation expects a Run to take: exactly, by a running mean, or always wrong by a
// factor.
type estimate struct {
	name   string
	factor float64 // of the truth; 0: running mean
	noise  bool    // Attempts take between half and one and a half of their mean
}

// The golden simulations, each within 1 % (R-2.2): with exact estimates, with Attempts that vary and a running mean, and
// with estimates that are wrong by a factor, which settling makes up for.
func TestGoldenShares(t *testing.T) {
	for name, g := range map[string]golden{
		"2 slots, weights 3:1":                {2, []int{3, 1}, []float64{10, 10}, []float64{0.75, 0.25}},
		"1 slot, 100 s against 1 s":           {1, []int{1, 1}, []float64{100, 1}, []float64{0.5, 0.5}},
		"20 slots, weights 4:2:1:1":           {20, []int{4, 2, 1, 1}, []float64{1, 10, 100, 5}, []float64{0.5, 0.25, 0.125, 0.125}},
		"20 slots, 100 tenants of one weight": {20, make([]int, 100), make([]float64, 100), make([]float64, 100)},
	} {
		for i := range g.want {
			if g.want[i] == 0 {
				g.weights[i], g.seconds[i], g.want[i] = 1, 1+float64(i%7), 0.01
			}
		}
		for _, e := range []estimate{{"exact", 1, false}, {"running mean", 0, true}, {"half", 0.5, false}, {"twice", 2, false}} {
			t.Run(name+", "+e.name, func(t *testing.T) { g.play(t, e) })
		}
	}
}

func (g golden) play(t *testing.T, e estimate) {
	r, random := newRig(t, Default()), seeded(t, 7)
	r.runner("r", g.slots)
	name := func(i int) string { return string(rune('a'+i/26)) + string(rune('a'+i%26)) }
	index, mean, served := map[string]int{}, make([]float64, len(g.want)), make([]float64, len(g.want))
	submit := func(i int) {
		took := g.seconds[i]
		if e.noise {
			took *= 0.5 + random.Float64()
		}
		expected := e.factor * took
		if e.factor == 0 {
			expected = mean[i]
		}
		r.submit(name(i), seconds(expected), seconds(took))
	}
	for i := range g.want {
		index[name(i)], mean[i] = i, 1
		r.tenant(name(i), g.weights[i])
		for range 30 {
			submit(i)
		}
	}
	total := 0.0
	r.finished = func(tenant string, _ Share, took time.Duration) {
		i := index[tenant]
		served[i] += took.Seconds()
		total += took.Seconds()
		mean[i] = 0.9*mean[i] + 0.1*took.Seconds()
		submit(i)
	}
	for total < 20_000*float64(g.slots) {
		r.decide()
		r.next()
	}
	for i, want := range g.want {
		if got := served[i] / total; math.Abs(got-want) > 0.01*max(want, 0.1) {
			t.Errorf("tenant %d got %.4f of the pool, want %.4f", i, got, want)
		}
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// The fourth golden simulation: a tenant that was away gets no arrears. From when it comes back it gets its
// share and no more, also when it came back from its cap, from a blocker, or with a refund of a Run that was charged
// far too much.
func TestReturningTenantGetsNoArrears(t *testing.T) {
	for name, before := range map[string]func(r *rig) func(){
		"idle": func(r *rig) func() { return func() {} },
		"blocked": func(r *rig) func() {
			id := r.submit("late", 10*time.Second, 10*time.Second, func(n *Run) { n.Blockers = Dependency })
			return func() { r.m.Unblock(r.now, id, Dependency) }
		},
		"with a refund to come": func(r *rig) func() {
			r.submit("late", time.Hour, 3*time.Hour/2)
			return func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Default())
			r.runner("r", 4)
			r.tenant("busy", 1)
			r.tenant("late", 1)
			served := map[string]time.Duration{}
			r.finished = func(tenant string, _ Share, took time.Duration) {
				served[tenant] += took
				if tenant == "busy" {
					r.submit("busy", took, took)
				}
			}
			comeBack := before(r)
			for range 50 {
				r.submit("busy", 10*time.Second, 10*time.Second)
			}
			r.run(clock.Mono(3 * time.Hour))
			comeBack()
			for range 2000 {
				r.submit("late", 10*time.Second, 10*time.Second)
			}
			clear(served)
			r.run(r.now.Add(10 * time.Minute))
			for range 3 {
				if got := served["late"].Seconds() / (served["late"] + served["busy"]).Seconds(); math.Abs(got-0.5) > 0.01 {
					t.Errorf("the tenant that came back got %.3f of the pool, want half", got)
				}
				clear(served)
				r.run(r.now.Add(10 * time.Minute))
			}
		})
	}
}
