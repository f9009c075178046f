package dispatch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
)

// p95 of some waits.
func p95(waits []time.Duration) time.Duration {
	slices.Sort(waits)
	return waits[len(waits)*95/100]
}

// quiet plays a pool that a noisy tenant saturates with a backlog of so many Runs, and says how long the 399 others wait
// at the 95th percentile. Their Runs come in the same order at the same instants whatever the backlog.
func quiet(t *testing.T, backlog int) time.Duration {
	r, random := newRig(t, Default()), seeded(t, 5)
	r.runner("r", 40)
	for i := range 400 {
		r.tenant(fmt.Sprintf("t%03d", i), 1)
	}
	const noisy = "t200"
	for range backlog {
		r.submit(noisy, 30*time.Second, 30*time.Second)
	}
	var waits []time.Duration
	r.started = func(d Decision, waited time.Duration) {
		switch {
		case d.Tenant == noisy:
			r.submit(noisy, 30*time.Second, 30*time.Second) // it stays as deep as it is
		case r.now > clock.Mono(2*time.Hour):
			waits = append(waits, waited)
		}
	}
	r.run(r.now.Add(10 * time.Minute))
	for len(waits) < 8000 {
		r.run(r.now.Add(seconds(1.5 * random.ExpFloat64()))) // 0.6 to 0.7 of the pool without the noise
		who := random.IntN(399)
		if who >= 200 {
			who++
		}
		r.submit(fmt.Sprintf("t%03d", who), 40*time.Second, seconds(20+40*random.Float64()))
	}
	if left := r.m.TenantCounts(noisy).Queued; left < backlog*9/10 {
		t.Fatalf("the backlog of %d shrank to %d", backlog, left)
	}
	return p95(waits)
}

// A noisy tenant hurts only itself: in a pool that it saturates, its backlog growing from 1,000 to 100,000 changes the
// p95 wait of 399 quiet tenants by no more than 10 % (R-2.2).
func TestNoisyTenantHurtsItself(t *testing.T) {
	few, many := quiet(t, 1000), quiet(t, 100_000)
	t.Logf("p95 wait of the quiet ones: %v beside 1,000 Runs, %v beside 100,000", few, many)
	if few <= 0 || float64(many) > 1.1*float64(few) || float64(many) < 0.9*float64(few) {
		t.Errorf("p95 wait of the quiet ones: %v beside 1,000 Runs, %v beside 100,000", few, many)
	}
}

// A large Run behind a stream of small ones starts by its reservation: not later than when the Attempts that were there
// when it became first are over, and small ones that are over before go ahead.
func TestLargeRunStartsByItsReservation(t *testing.T) {
	r := newRig(t, Default())
	r.runner("a", 4)
	r.runner("b", 2) // too small for it: the stream goes on here
	minute := time.Minute
	for i := range 2000 {
		r.submit("small", minute/2, time.Duration(20+i*7%20)*time.Second, func(n *Run) { n.Timeout = minute })
	}
	r.run(r.now.Add(10 * time.Minute))
	large := r.submit("large", minute, minute, func(n *Run) { n.Need[Slots] = 4 })
	came := r.now
	r.decide()
	brief := r.submit("zzz", time.Second, time.Second, func(n *Run) { n.Timeout = 2 * time.Second })
	begun, went := clock.Mono(0), clock.Mono(0)
	r.started = func(d Decision, _ time.Duration) {
		switch d.Run {
		case large:
			begun = r.now
		case brief:
			went = r.now
		}
	}
	r.next()
	r.decide()
	if small := r.m.Why(r.now, r.submit("small", minute, minute)); len(small) != 1 || small[0].Reason != ReasonReserved && small[0].Reason != ReasonTurn {
		t.Errorf("a small one behind it: %v", small)
	}
	r.run(r.now.Add(10 * time.Minute))
	if begun == 0 || begun > came.Add(minute) {
		t.Errorf("the large Run started at %v, want within its reservation of a minute after %v", begun, came)
	}
	if went == 0 || went >= begun {
		t.Errorf("a brief Run that is over before the reservation started at %v, the large one at %v", went, begun)
	}
}

// Without a reservation the same large Run would wait for ever: the stream keeps every slot. This is what the test above
// would not notice if small Runs happened to leave room.
func TestStreamNeverLeavesRoomByItself(t *testing.T) {
	r := newRig(t, Default())
	r.runner("a", 4)
	for i := range 4 {
		s := time.Duration(20+i) * time.Second
		r.submit("small", s, s, func(n *Run) { n.Timeout = time.Minute })
	}
	r.started = func(d Decision, _ time.Duration) {
		if d.Tenant == "small" {
			r.submit("small", r.took[d.Run], r.took[d.Run], func(n *Run) { n.Timeout = time.Minute })
		}
	}
	r.run(r.now.Add(10 * time.Minute))
	if c := r.m.Counts(); c.Free[Slots] != 0 {
		t.Fatalf("the stream leaves %d slots", c.Free[Slots])
	}
}

// A tenant's cap holds for slots and every other resource, its first Run keeps its place under it, and whoever is over it
// says so; other tenants go on.
func TestTenantCap(t *testing.T) {
	r := newRig(t, Default())
	r.ok(r.m.SetRunner(r.now, Runner{ID: "r", Capacity: Vector{Slots: 10, MilliCPU: 10_000}}))
	r.ok(r.m.SetTenant(r.now, Tenant{ID: "a", Weight: 100, Cap: Vector{Slots: 3, MilliCPU: 4000}}))
	minute := time.Minute
	cpu := func(n int64) func(*Run) { return func(run *Run) { run.Need[MilliCPU] = n } }
	for range 2 {
		r.submit("a", minute, minute, cpu(1000))
	}
	wide := r.submit("a", minute, minute, cpu(3000))
	r.submit("a", minute, minute, cpu(1000))
	r.submit("b", minute, minute, cpu(1000))
	over := r.submit("a", minute, minute, cpu(5000))
	r.decide()
	if a := r.m.TenantCounts("a"); a.Active != 2 || a.Used[MilliCPU] != 2000 || r.m.TenantCounts("b").Active != 1 {
		t.Errorf("a runs %+v, b %+v", a, r.m.TenantCounts("b"))
	}
	if w := r.m.Why(r.now, wide); w[0].Reason != ReasonTenantCap {
		t.Errorf("the first of a tenant at its cap: %v", w)
	}
	if w := r.m.Why(r.now, over); w[0].Reason != ReasonNeverFits {
		t.Errorf("a Run larger than its tenant's cap: %v", w)
	}
	r.ok(r.m.SetTenant(r.now, Tenant{ID: "a", Weight: 100, Cap: Vector{Slots: 20, MilliCPU: 9000}}))
	r.decide()
	if a := r.m.TenantCounts("a"); a.Active != 4 || a.Used[MilliCPU] != 6000 {
		t.Errorf("with a larger cap a runs %+v", a)
	}
	if w := r.m.Why(r.now, over); w[0].Reason != ReasonTenantCap {
		t.Errorf("it fits the new cap: %v", w)
	}
}

// The cap of a pool holds for all its Attempts, and keeps nobody out for ever.
func TestPoolCap(t *testing.T) {
	p := Default()
	p.Cap = Vector{Slots: 3}
	r := newRig(t, p)
	r.runner("r", 10)
	minute := time.Minute
	for range 5 {
		r.submit("a", minute, minute)
	}
	if got := len(r.decide()); got != 3 {
		t.Errorf("%d started, want 3", got)
	}
	large := r.submit("b", minute, minute, func(n *Run) { n.Need[Slots] = 3 })
	if w := r.m.Why(r.now, large); w[0].Reason != ReasonPoolCap {
		t.Errorf("over the pool's cap: %v", w)
	}
	r.next()
	if got := r.decide(); len(got) != 0 {
		t.Errorf("%v passed the first, which waits for the cap", got)
	}
	r.next()
	r.next()
	if got := r.decide(); len(got) != 1 || got[0] != large {
		t.Errorf("%v started, want the large one", got)
	}
}

// What fits no runner says so at once, and is looked at again when runners change; it holds up nobody of its tenant.
func TestNeverFits(t *testing.T) {
	r := newRig(t, Default())
	minute := time.Minute
	large := func(n *Run) { n.Need[Slots] = 8 }
	id := r.submit("a", minute, minute, large)
	if w := r.m.Why(r.now, id); w[0].Reason != ReasonPoolOffline {
		t.Errorf("in a pool without runners: %v", w)
	}
	r.runner("r", 2)
	r.submit("a", minute, minute)
	if w := r.m.Why(r.now, id); w[0].Reason != ReasonNeverFits || r.m.Fits(Run{ID: "x", Tenant: "a", Need: Vector{Slots: 8}, Timeout: minute, Expected: minute}) {
		t.Errorf("larger than the runner: %v", w)
	}
	if got := r.decide(); len(got) != 1 || got[0] == id {
		t.Errorf("%v started", got)
	}
	r.ok(r.m.SetRunner(r.now, Runner{ID: "big", Capacity: Vector{Slots: 8}, State: Lost}))
	if w := r.m.Why(r.now, id); w[0].Reason != ReasonTurn {
		t.Errorf("one that could hold it is known, another is online: %v", w)
	}
	r.runner("big", 8)
	if got := r.decide(); len(got) != 1 || got[0] != id {
		t.Errorf("%v started, want %s", got, id)
	}
	r.next()
	r.next()
	again := r.submit("a", minute, minute, large)
	if lost := r.m.DropRunner(r.now, "big"); len(lost) != 0 {
		t.Errorf("a runner that had ended all lost %v", lost)
	}
	if w := r.m.Why(r.now, again); w[0].Reason != ReasonNeverFits {
		t.Errorf("the runner went away: %v", w)
	}
}

// Work goes to the tightest runner whose labels match; draining and lost ones take none and keep what they have; one
// that is dropped says what it had.
func TestPlacement(t *testing.T) {
	r := newRig(t, Default())
	minute := time.Minute
	set := func(id string, slots int64, s RunnerState, labels ...Label) {
		r.ok(r.m.SetRunner(r.now, Runner{ID: id, Capacity: Vector{Slots: slots}, State: s, Labels: labels}))
	}
	set("big", 8, Active)
	set("small", 2, Active)
	set("zoned", 8, Active, Label{"zone", "a"}, Label{"disk", "fast"})
	start := func(with ...func(*Run)) string {
		t.Helper()
		r.submit("a", minute, minute, with...)
		ds := r.m.Decide(r.now, 10)
		if len(ds) != 1 {
			return fmt.Sprint(ds)
		}
		return ds[0].Runner
	}
	two := func(n *Run) { n.Need[Slots] = 2 }
	zone := func(n *Run) { n.Labels = []Label{{"disk", "fast"}, {"zone", "a"}} }
	for i, c := range []struct {
		got  string
		want string
	}{
		{start(two), "small"},
		{start(func(n *Run) { n.Need[Slots] = 7 }), "big"},
		{start(), "big"}, // one slot left: tighter than zoned
		{start(zone), "zoned"},
	} {
		if c.got != c.want {
			t.Errorf("Run %d went to %s, want %s", i, c.got, c.want)
		}
	}
	set("zoned", 8, Draining, Label{"zone", "a"}, Label{"disk", "fast"})
	if got := start(zone); got != "[]" {
		t.Errorf("a draining runner took %s", got)
	}
	if lost := r.m.DropRunner(r.now, "zoned"); len(lost) != 1 || lost[0] != "run_00000004" {
		t.Errorf("the dropped runner had %v", lost)
	}
	if !r.m.Requeue(r.now, "run_00000004", minute, r.now) || r.m.Counts().Active != 3 {
		t.Errorf("its Run is not queued again: %+v", r.m.Counts())
	}
}

// Inside a tenant the order is age and priority in one key that never changes: a retry keeps its place, a Run
// that was blocked counts from when it no longer was, timed ones from that instant however late anybody looks (R13).
func TestOrderInsideATenant(t *testing.T) {
	r := newRig(t, Default())
	r.runner("r", 1)
	s := time.Second
	first := r.submit("a", s, s)
	later := r.submit("a", s, s, func(n *Run) { n.NotBefore = r.now.Add(90 * s) })
	blocked := r.submit("a", s, s, func(n *Run) { n.Blockers = Dependency | Budget })
	r.now = r.now.Add(30 * s)
	middle := r.submit("a", s, s)
	urgent := r.submit("a", s, s, func(n *Run) { n.Priority = 1 }) // worth a minute: before first
	if _, ok := r.m.Position(later); ok {
		t.Error("a Run that could never start has a position")
	}
	if got := r.m.Decide(r.now, 1); got[0].Run != urgent {
		t.Fatalf("%s went first", got[0].Run)
	}
	r.m.Requeue(r.now, urgent, s, r.now.Add(5*s))
	if got := r.m.Decide(r.now, 1); got[0].Run != first {
		t.Fatalf("%s is second", got[0].Run)
	}
	r.m.Finish(r.now, first, s)
	r.now = r.now.Add(10 * s)
	if got := r.m.Decide(r.now, 1); got[0].Run != urgent {
		t.Errorf("a retry lost its place to %s", got[0].Run)
	}
	r.m.Finish(r.now, urgent, s)
	r.m.Unblock(r.now, blocked, Budget)
	r.now = r.now.Add(60 * s)
	r.m.Unblock(r.now, blocked, Dependency)
	var order []string
	for range 3 {
		d := r.m.Decide(r.now, 1)[0]
		order = append(order, d.Run)
		r.m.Finish(r.now, d.Run, s)
	}
	if want := []string{middle, later, blocked}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

// A Run with a bad field is refused by name, a known one as such, and what is not there is said not to be.
func TestRefusals(t *testing.T) {
	r := newRig(t, Default())
	good := Run{ID: "x", Tenant: "a", Need: Vector{Slots: 1}, Timeout: time.Minute, Expected: time.Second}
	for field, spoil := range map[string]func(*Run){
		"run":       func(n *Run) { n.ID = "" },
		"tenant":    func(n *Run) { n.Tenant = "" },
		"resources": func(n *Run) { n.Need[Memory] = -1 },
		"timeout":   func(n *Run) { n.Timeout = 0 },
		"expected":  func(n *Run) { n.Expected = time.Hour },
		"priority":  func(n *Run) { n.Priority = 101 },
		"labels":    func(n *Run) { n.Labels = []Label{{"", "x"}} },
	} {
		n := good
		spoil(&n)
		if err := r.m.Submit(r.now, n); !fault.Is(err, fault.InvalidInput) || fault.From(err).Details[0].Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	r.ok(r.m.Submit(r.now, good))
	if err := r.m.Submit(r.now, good); !fault.Is(err, fault.AlreadyExists) {
		t.Errorf("twice: %v", err)
	}
	if r.m.Finish(r.now, "x", 0) || r.m.Renew(r.now, "x", 0) || r.m.Started(r.now, "x") || r.m.Requeue(r.now, "x", 0, 0) || r.m.Cancel(r.now, "y") {
		t.Error("something that is not there was found")
	}
	if r.m.SetTenant(r.now, Tenant{ID: "a"}) == nil || r.m.SetRunner(r.now, Runner{}) == nil || r.m.SetPolicy(r.now, Policy{MaxPriority: -1}) == nil {
		t.Error("a bad setting was taken")
	}
	if !r.m.Cancel(r.now, "x") || r.m.Counts().Queued != 0 {
		t.Error("not cancelled")
	}
}
