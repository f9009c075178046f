package dispatch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

// While tenants wait without a pause, what any two got over their weights differs by no more than the bound of start-time
// fair queueing, and each one's live figure says so: with exact estimates and with wrong ones, at every instant.
func TestFairnessStaysInItsBound(t *testing.T) {
	for name, wrong := range map[string]float64{"exact": 0, "wrong by half either way": 0.5} {
		t.Run(name, func(t *testing.T) {
			r, random := newRig(t, Default()), seeded(t, 11)
			r.runner("r", 12)
			weights := []int{1, 2, 4, 4, 7}
			submit := func(who string) {
				took := seconds(1 + 100*random.Float64()*random.Float64())
				r.submit(who, seconds(took.Seconds()*(1-wrong+2*wrong*random.Float64())), took)
			}
			for i, w := range weights {
				who := fmt.Sprintf("t%d", i)
				r.tenant(who, w)
				for range 30 {
					submit(who)
				}
			}
			r.started = func(d Decision, _ time.Duration) { submit(d.Tenant) }
			pairs, worst := 0, 0.0
			for range 5000 {
				r.next()
				r.decide()
				all := r.m.Fairness()
				for i, a := range all {
					if a.Worst > a.Bound || a.Error > a.Worst || -a.Error > a.Worst {
						t.Fatalf("%+v is out of its bound", a)
					}
					for _, b := range all[:i] {
						wa, wb := time.Duration(a.Weight), time.Duration(b.Weight)
						// both have waited since the same V, less what each still paid for when it came
						off := (a.Served/wa - b.Served/wb).Abs()
						if off > a.Bound+b.Bound+wa+wb {
							t.Fatalf("%s and %s are %v apart, over %v", a.Tenant, b.Tenant, off, a.Bound+b.Bound)
						}
						worst = max(worst, float64(off)/float64(a.Bound+b.Bound))
						pairs++
					}
				}
			}
			t.Logf("%s: %d comparisons, the worst at %.2f of its bound; the end:", BoundFormula, pairs, worst)
			for _, f := range r.m.Fairness() {
				if !f.Waiting || wrong == 0 && f.Drift > time.Microsecond {
					t.Errorf("%+v", f)
				}
				t.Logf("  %s w %d: W %.1f s, w(V-V0) %.1f s, error %.3f s of %.3f s (Lmax %.2f s, C %.2f s)", f.Tenant, f.Weight,
					f.Served.Seconds(), f.Ideal.Seconds(), f.Error.Seconds(), f.Bound.Seconds(), f.Largest.Seconds(), f.Drift.Seconds())
			}
		})
	}
	if !strings.Contains(BoundFormula, "Lmax") {
		t.Error("the formula is not printed")
	}
}

// The dominant share decides, not the slots: a tenant whose Runs take half the memory is charged for that.
func TestDominantShare(t *testing.T) {
	r := newRig(t, Default())
	r.ok(r.m.SetRunner(r.now, Runner{ID: "r", Capacity: Vector{Slots: 100, MilliCPU: 9000, Memory: 18 << 30}}))
	served, running := map[string]time.Duration{}, map[string]int{}
	kinds := map[string]Vector{"cpu": {Slots: 1, MilliCPU: 3000, Memory: 1 << 30}, "memory": {Slots: 1, MilliCPU: 1000, Memory: 4 << 30}}
	submit := func(who string) {
		r.submit(who, 10*time.Second, 10*time.Second, func(n *Run) { n.Need = kinds[who]; n.Timeout = 10 * time.Second })
	}
	for who := range kinds {
		for range 20 {
			submit(who)
		}
	}
	r.started = func(d Decision, _ time.Duration) {
		submit(d.Tenant)
		served[d.Tenant] += d.Charge
		running[d.Tenant]++
	}
	r.run(r.now.Add(10 * time.Hour))
	// the example of dominant resource fairness: 9 cores and 18 GiB, three of (1, 4) beside two of (3, 1)
	if a, b := running["memory"], running["cpu"]; float64(a)/float64(b) < 1.48 || float64(a)/float64(b) > 1.52 {
		t.Errorf("%d Runs of memory and %d of cores, want 3:2", a, b)
	}
	if a, b := served["memory"].Seconds(), served["cpu"].Seconds(); a/b < 0.99 || a/b > 1.01 {
		t.Errorf("dominant shares %.0f s and %.0f s, want the same", a, b)
	}
}

// Running past the estimate is charged at each renewal, not only at the end: a tenant that says a second and takes an
// hour is served less from the first renewal on.
func TestRenewalsCharge(t *testing.T) {
	r := newRig(t, Default())
	r.runner("r", 2)
	liar := r.submit("liar", time.Second, time.Hour)
	r.decide()
	before := r.m.Tags()
	for range 6 {
		r.now = r.now.Add(10 * time.Second)
		r.m.Renew(r.now, liar, r.now.Sub(clock.Mono(time.Hour)))
	}
	after := r.m.Tags()
	if got := time.Duration(after.Tenants[0].Finish - before.Tenants[0].Finish); got != 59*time.Second/2 {
		t.Errorf("a minute of half the pool moved F by %v more than the second charged", got)
	}
	r.m.Renew(r.now, liar, 5*time.Second)
	if again := r.m.Tags(); again.Tenants[0] != after.Tenants[0] {
		t.Error("an old renewal changed the account")
	}
	r.m.Finish(r.now, liar, time.Minute)
	if end := r.m.Tags(); end.Tenants[0].Finish != after.Tenants[0].Finish {
		t.Error("what was charged by renewals is charged again at the end")
	}
}

// Nobody starves: in a pool where some runners are special, tenants that ask for those and ones that don't all go on
// being served, as does one that comes late to the special ones.
func TestNobodyStarves(t *testing.T) {
	r, random := newRig(t, Default()), seeded(t, 2)
	r.runner("plain", 30)
	r.ok(r.m.SetRunner(r.now, Runner{ID: "special", Capacity: Vector{Slots: 1}, Labels: []Label{{"gpu", "yes"}}}))
	gpu := func(n *Run) { n.Labels = []Label{{"gpu", "yes"}} }
	wants := map[string][]func(*Run){"a": {gpu}, "b": nil, "c": nil, "late": {gpu}, "wide": {func(n *Run) { n.Need[Slots] = 30 }}}
	last, starts := map[string]clock.Mono{}, map[string]int{}
	submit := func(who string) {
		s := seconds(5 + 10*random.Float64())
		r.submit(who, s, s, append([]func(*Run){func(n *Run) { n.Timeout = 20 * time.Second }}, wants[who]...)...)
	}
	r.started = func(d Decision, _ time.Duration) {
		submit(d.Tenant)
		starts[d.Tenant]++
		if gap := r.now.Sub(last[d.Tenant]); last[d.Tenant] != 0 && gap > 10*time.Minute {
			t.Errorf("%s waited %v for a start", d.Tenant, gap)
		}
		last[d.Tenant] = r.now
	}
	for _, who := range []string{"a", "b", "c", "wide"} {
		for range 100 {
			submit(who)
		}
	}
	r.run(r.now.Add(10 * time.Hour))
	for range 50 {
		submit("late")
	}
	begin := starts["a"]
	r.run(r.now.Add(10 * time.Hour))
	if a, b := starts["a"]-begin, starts["late"]; b < a*9/10 || a < b*9/10 {
		t.Errorf("on the special runner a got %d starts and the one that came late %d", a, b)
	}
	if starts["wide"] < 1000 {
		t.Errorf("the wide ones started %d times in 20 hours", starts["wide"])
	}
}

// A tenant that asks for something else with each Run waits for itself: the others go on, and all of its Runs start.
func TestManyNeeds(t *testing.T) {
	r := newRig(t, Default())
	r.ok(r.m.SetRunner(r.now, Runner{ID: "r", Capacity: Vector{Slots: 8, Memory: 1 << 40}}))
	s := 10 * time.Second
	var ids []string
	for i := range 500 {
		ids = append(ids, r.submit("odd", s, s, func(n *Run) { n.Need[Memory] = int64(1 + (i*7919)%500) }))
	}
	for range 100 {
		r.submit("even", s, s)
	}
	if n := len(r.m.tenants[r.m.tenantOf["odd"]].lanes); n != maxLanes || r.m.Counts().Ready != 600 {
		t.Errorf("%d lanes, %+v", n, r.m.Counts())
	}
	even, odd := 0, 0
	r.started = func(d Decision, _ time.Duration) {
		if d.Tenant == "even" {
			even++
		} else {
			odd++
		}
		if even < 100 && (even-odd > 9 || odd-even > 9) {
			t.Fatalf("%d and %d started", even, odd)
		}
	}
	for i := range 30 {
		r.next()
		r.decide()
		r.m.Cancel(r.now, ids[i*16]) // some go away meanwhile, if they are still there
	}
	r.run(r.now.Add(10 * time.Hour))
	if c := r.m.Counts(); c.Queued != 0 || c.Active != 0 || len(r.m.shapeOf) != 0 || len(r.m.selectorOf) != 0 || len(r.m.byID) != 0 {
		t.Errorf("something is left: %+v", c)
	}
}
