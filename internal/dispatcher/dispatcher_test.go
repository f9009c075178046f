package dispatcher

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/core/lifecycle"
)

var errCut = errors.New("the connection was cut")

// A dispatcher that is built again from its rows, over and over, decides what one that lived through it all decides
//
func TestRebuiltDecidesAlike(t *testing.T) {
	play := func(restarts bool) []string {
		r := newRig(t, 4)
		r.rows.shares = []ShareRow{{Tenant: "a", Weight: 300}, {Tenant: "b", Weight: 100}, {Tenant: "c", Weight: 100, MaxSlots: 1}}
		random := rand.New(rand.NewPCG(3, 4))
		for i := range 60 {
			r.submit(fmt.Sprintf("run-%02d", i), string("abc"[random.IntN(3)]), retries(1, 1))
		}
		for n := range 200 {
			r.pass(time.Second, true)
			for _, l := range sortedRows(r.rows.attempts) {
				switch random.IntN(6) {
				case 0:
					r.end(l.Attempt.Run, lifecycle.AttemptSucceeded, lifecycle.Done)
				case 1:
					r.end(l.Attempt.Run, lifecycle.AttemptFailed, lifecycle.ExitCode)
				}
			}
			if restarts && n%3 == 0 {
				r.step() // what has ended is settled and flushed
				r.clock.pass(time.Second)
				r.step()
				r.restart()
			} else {
				r.step()
				r.clock.pass(time.Second)
				r.step()
			}
		}
		return r.rows.order
	}
	through, rebuilt := play(false), play(true)
	if len(through) < 60 || !slices.Equal(through, rebuilt) {
		t.Errorf("one process decided %v,\nmany decided    %v", through, rebuilt)
	}
}

// An owner that was deposed commits nothing any more, and takes its pool back only after the new one was silent for
// long, by its own clock.
func TestDeposed(t *testing.T) {
	r := newRig(t, 1)
	r.alone = false
	r.restart()
	r.submit("first", "a")
	r.step()
	r.want("as the owner", "first")
	if _, err := r.rows.TakePool(t.Context(), "p", "rival", r.rows.pool.Epoch); err != nil {
		t.Fatal(err)
	}
	r.end("first", lifecycle.AttemptSucceeded, lifecycle.Done)
	r.submit("second", "a")
	// It has not heard of the rival yet: the commit refuses it.
	r.s.step(t.Context(), r.s.owned()[0], true)
	r.want("deposed")
	for range 60 {
		r.pass(time.Second, true)
		r.rows.pool.Beats++ // the rival lives
	}
	r.want("while the rival lives")
	r.clock.wall = r.clock.wall.Add(time.Hour)
	r.pass(ownerLease-time.Second, true)
	r.want("just before the rival is given up")
	r.pass(3*time.Second, true)
	r.want("after it", "second")
}

// What became of a commit whose answer was lost, the rows say: nothing is assigned twice and nothing is forgotten
//
func TestCommitOfUnknownOutcome(t *testing.T) {
	r := newRig(t, 2)
	r.submit("run-1", "a")
	r.rows.after = errCut
	r.step()
	r.want("committed, and nobody knows", "run-1")
	r.submit("run-2", "a")
	r.submit("run-3", "a")
	r.rows.before = errCut
	r.pass(time.Second, true)
	r.want("not committed", "run-1")
	r.pass(time.Second, true)
	r.want("built again", "run-1", "run-2")
	r.end("run-1", lifecycle.AttemptSucceeded, lifecycle.Done)
	r.pass(time.Second, true)
	r.want("the slot of the first is free", "run-2", "run-3")
	for run, n := range r.rows.tries {
		if n != 1 {
			t.Errorf("%s was assigned %d times", run, n)
		}
	}
}

// Runs expire by how long they were eligible, not by how long they are known, and dependencies stop the count.
func TestExpiry(t *testing.T) {
	r := newRig(t, 1)
	r.rows.pool.Policy.MaxAge = 60
	r.submit("busy", "a")
	r.step()
	r.submit("old", "a")
	r.submit("later", "a", notBefore(r.clock.wall.Add(50*time.Second)))
	r.submit("dependent", "a", func(row *RunRow) { row.Run.WaitsFor = 1 })
	r.pass(59*time.Second, true)
	if s := r.state("old"); s != lifecycle.Queued {
		t.Errorf("after 59 s it is %s", s)
	}
	r.pass(12*time.Second, true)
	if s := r.state("old"); s != lifecycle.Expired || r.rows.runs["old"].Run.Reason != lifecycle.TooOld {
		t.Errorf("after 71 s it is %s (%s)", s, r.rows.runs["old"].Run.Reason)
	}
	if s := r.state("later"); s != lifecycle.Queued {
		t.Errorf("one that was eligible for 21 s is %s", s)
	}
	r.pass(time.Minute, true)
	if s := r.state("later"); s != lifecycle.Expired {
		t.Errorf("one that was eligible for 81 s is %s", s)
	}
	if s := r.state("dependent"); s != lifecycle.Queued {
		t.Errorf("one that waits for another is %s", s)
	}
}

// One Run of a concurrency key is active, and as many of an array as it allows, in their order; those that end or are
// cancelled let the next through, and a restart changes nothing of it.
func TestGates(t *testing.T) {
	r := newRig(t, 10)
	lane := func(row *RunRow) { row.Spec.Lane = "k" }
	array := func(row *RunRow) { row.Run.Array, row.Spec.ArrayLimit = "arr", 2 }
	for i := range 3 {
		r.submit(fmt.Sprintf("lane-%d", i), "a", lane)
	}
	for i := range 4 {
		r.submit(fmt.Sprintf("array-%d", i), "a", array)
	}
	r.submit("other-tenant", "b", lane)
	r.step()
	r.want("at first", "lane-0", "array-0", "array-1", "other-tenant")
	r.restart()
	r.pass(2*time.Second, true)
	r.want("after a restart", "lane-0", "array-0", "array-1", "other-tenant")
	r.rows.runs["lane-1"].Run.State = lifecycle.Cancelled
	r.s.Wake("p", "lane-1")
	r.end("lane-0", lifecycle.AttemptSucceeded, lifecycle.Done)
	r.end("array-0", lifecycle.AttemptFailed, lifecycle.ExitCode)
	r.pass(time.Second, true)
	r.want("later", "lane-2", "array-1", "array-2", "other-tenant")
}

// A Run that the budget can't hold waits without a slot while those of others start, and starts when money comes back
//
func TestBudget(t *testing.T) {
	r := newRig(t, 3)
	price := func(micro int64) func(*RunRow) { return func(row *RunRow) { row.Spec.HoldMicro = micro } }
	r.rows.limits["poor"] = 100
	r.submit("p1", "poor", price(60))
	r.submit("p2", "poor", price(60))
	r.submit("p3", "poor", price(30))
	r.submit("rich", "rich", price(1e6))
	r.step()
	r.want("as far as the money goes", "p1", "p3", "rich")
	if place := r.s.Place(r.rows.runs["p2"].Run); place.Reason != "budget" {
		t.Errorf("it waits for %q", place.Reason)
	}
	r.end("p3", lifecycle.AttemptSucceeded, lifecycle.Done)
	r.pass(2*time.Second, true)
	r.want("too little came back", "p1", "rich")
	r.end("p1", lifecycle.AttemptSucceeded, lifecycle.Done)
	r.pass(2*time.Second, true)
	r.want("enough came back", "p2", "rich")
}

// A pool that is drained starts nothing and lets what runs go on; so does a runner.
func TestDrain(t *testing.T) {
	r := newRig(t, 1)
	r.addRunner("r2", 1)
	r.rows.runners["r2"].Draining = true
	r.submit("one", "a")
	r.submit("two", "a")
	r.step()
	r.want("with one runner draining", "one")
	r.rows.runners["r2"].Draining, r.rows.pool.Draining = false, true
	r.pass(5*time.Second, true)
	r.want("drained", "one")
	r.rows.pool.Draining = false
	r.pass(2*time.Second, true)
	r.want("open again", "one", "two")
}

// Whatever door Runs come through, retries among them, a tenant never has more than its cap (R-2.1, R20).
func TestCapHoldsForRetries(t *testing.T) {
	r := newRig(t, 8)
	r.rows.shares = []ShareRow{{Tenant: "a", Weight: 100, MaxSlots: 2}}
	for i := range 10 {
		r.submit(fmt.Sprintf("run-%d", i), "a", retries(2, 2))
	}
	random := rand.New(rand.NewPCG(5, 6))
	for n := range 150 {
		r.pass(time.Second, true)
		if len(r.rows.attempts) > 2 {
			t.Fatalf("%d live Attempts", len(r.rows.attempts))
		}
		for _, l := range sortedRows(r.rows.attempts) {
			switch random.IntN(3) {
			case 0:
				r.end(l.Attempt.Run, lifecycle.AttemptFailed, lifecycle.ExitCode)
			case 1:
				r.end(l.Attempt.Run, lifecycle.AttemptInterrupted, lifecycle.LeaseLost)
			}
		}
		if n%20 == 7 {
			r.restart()
		}
	}
	for id, run := range r.rows.runs {
		if !run.Run.State.Ended() {
			t.Errorf("%s is %s", id, run.Run.State)
		}
	}
}
