package dispatcher

import (
	"fmt"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/core/lifecycle"
)

// A lease is lost after lease and grace without a renewal, by this process's own clock, which begins anew with the
// process and after every outage; then its Run is tried again or ends, by its policy (R-6.3, R-6.7, R01, R14).
func TestLeaseLoss(t *testing.T) {
	const whole = 105 * time.Second
	r := newRig(t, 4)
	r.submit("never", "a")
	r.submit("again", "a", retries(0, 3))
	r.step()
	for _, l := range r.rows.attempts {
		l.Attempt.State = lifecycle.Running
	}
	r.pass(2*time.Second, true)
	r.pass(whole-2*time.Second, false)
	r.want("within the lease", "never", "again")

	r.restart()
	r.step()
	r.pass(whole-2*time.Second, false)
	r.want("a new process counts anew", "never", "again")

	r.rows.down = errCut
	r.pass(10*time.Minute, false)
	r.rows.down = nil
	r.pass(whole-2*time.Second, false)
	r.want("an outage starts the count anew", "never", "again")

	r.pass(5*time.Second, false)
	if s, why := r.state("never"), r.rows.runs["never"].Run.Reason; s != lifecycle.Interrupted || why != lifecycle.LeaseLost {
		t.Errorf("without retries it is %s (%s)", s, why)
	}
	if s := r.state("again"); s != lifecycle.Queued {
		t.Errorf("with retries it is %s", s)
	}
	for range 2 {
		r.pass(10*time.Second, true)
		r.end("again", lifecycle.AttemptInterrupted, lifecycle.RunnerLost)
	}
	r.pass(20*time.Second, true)
	r.end("again", lifecycle.AttemptSucceeded, lifecycle.Done)
	if n := r.rows.tries["again"]; n != 4 || r.state("again") != lifecycle.Succeeded {
		t.Errorf("%d Attempts, %s", n, r.state("again"))
	}
}

// An Attempt that no runner took over counts as no loss, and its Run goes to a runner that lives.
func TestNotTakenOver(t *testing.T) {
	r := newRig(t, 1)
	r.submit("run", "a")
	r.step()
	r.addRunner("r2", 1)
	for range 120 {
		r.clock.pass(time.Second)
		r.rows.runners["r2"].Beats++
		r.step()
	}
	r.want("after the lease", "run")
	for id, e := range r.rows.ends {
		if e.Reason != lifecycle.NotStarted || r.rows.runs["run"].Run.Losses != 0 {
			t.Errorf("%s ended by %s, %d losses", id, e.Reason, r.rows.runs["run"].Run.Losses)
		}
	}
	for _, l := range r.rows.attempts {
		if l.Attempt.Runner != "r2" {
			t.Errorf("it went to %s", l.Attempt.Runner)
		}
	}
}

// Hundreds of Attempts whose runners and dispatcher died leave within a lease and a sweep of the new one; nothing stays
// overdue and every slot is free (R01).
func TestAllRunnersDie(t *testing.T) {
	r := newRig(t, 200)
	for i := range 200 {
		r.submit(fmt.Sprintf("run-%03d", i), "a")
	}
	r.step()
	for _, l := range r.rows.attempts {
		l.Attempt.State = lifecycle.Running
	}
	r.pass(time.Second, true)
	if len(r.rows.attempts) != 200 {
		t.Fatalf("%d Attempts", len(r.rows.attempts))
	}
	r.restart()
	r.step()
	r.pass(50*time.Second, false)
	r.restart() // in the middle of its watch
	r.step()
	r.pass(107*time.Second, false)
	f := r.s.Figures()[0]
	if len(r.rows.attempts) != 0 || f.Overdue != 0 || f.Counts.Active != 0 || f.Counts.Used[0] != 0 {
		t.Errorf("%d Attempts are left: %+v", len(r.rows.attempts), f)
	}
	for id, run := range r.rows.runs {
		if run.Run.State != lifecycle.Interrupted {
			t.Errorf("%s is %s", id, run.Run.State)
		}
	}
}

// A cancelled Run whose Attempt no runner took over ends at once, also when the dispatcher is new.
func TestCancelledBeforeTakenOver(t *testing.T) {
	for _, restart := range []bool{false, true} {
		r := newRig(t, 1)
		r.submit("run", "a")
		r.step()
		r.rows.runs["run"].Run.Cancel = true
		r.s.Wake("p", "run")
		if restart {
			r.restart()
		}
		r.pass(3*time.Second, true)
		if s := r.state("run"); s != lifecycle.Cancelled {
			t.Errorf("with a restart %t it is %s", restart, s)
		}
	}
}

// Nothing that waits or runs goes by the clock on the wall: jumps of it lose no lease, start nothing early, expire
// nothing, and keep nothing from starting, also when rows are read again afterwards (R26, R13).
func TestWallJumps(t *testing.T) {
	for name, jump := range map[string]time.Duration{
		"nine years back": -9 * 365 * 24 * time.Hour, "an hour ahead": time.Hour, "an hour back": -time.Hour, "forty days ahead": 40 * 24 * time.Hour, "a second back": -time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1)
			r.submit("runs", "a", retries(1, 0), func(row *RunRow) { row.Spec.Retry.BackoffSeconds = 5 })
			r.step()
			r.submit("waits", "a")
			r.submit("later", "b", notBefore(r.clock.wall.Add(10*time.Minute)))
			r.pass(5*time.Second, true)
			r.clock.wall = r.clock.wall.Add(jump)
			r.pass(2*time.Minute, true)
			r.want("after the jump", "runs")
			r.end("runs", lifecycle.AttemptFailed, lifecycle.ExitCode)
			r.pass(time.Second, true)
			r.want("a slot is free", "waits")
			r.submit("new", "a")
			r.end("waits", lifecycle.AttemptSucceeded, lifecycle.Done)
			r.pass(3*time.Second, true)
			if r.live("new")+r.live("runs") != 1 {
				t.Errorf("nothing starts: %s, %s", r.state("new"), r.state("runs"))
			}
			for range 2 {
				for _, l := range sortedRows(r.rows.attempts) {
					r.end(l.Attempt.Run, lifecycle.AttemptSucceeded, lifecycle.Done)
				}
				r.pass(3*time.Second, true)
			}
			if r.rows.tries["later"] != 0 {
				t.Error("one started before its time")
			}
			r.pass(8*time.Minute, true)
			r.want("in its time", "later")
			if r.state("later") == lifecycle.Expired || len(r.rows.ends) != 4 {
				t.Errorf("%s; %d ends", r.state("later"), len(r.rows.ends))
			}
		})
	}
}

// After a jump of years back, rows that were written before it do not wait for years: not when they are read again in the
// middle of it either (R26).
func TestRowsOfTheFuture(t *testing.T) {
	r := newRig(t, 1)
	r.submit("busy", "a")
	r.step()
	r.submit("waits", "a")
	r.pass(time.Second, true)
	r.clock.wall = r.clock.wall.Add(-9 * 365 * 24 * time.Hour)
	r.rows.down = errCut
	r.pass(2*time.Second, true)
	r.rows.down = nil
	r.pass(2*time.Second, true)
	r.want("read again", "busy")
	r.end("busy", lifecycle.AttemptSucceeded, lifecycle.Done)
	r.pass(2*time.Second, true)
	r.want("a slot is free", "waits")
}

// A thousand Runs that may not start for two hours are given to nobody before, not by a process that was restarted
// either, and then get one Attempt each (R13).
func TestDelayedRunsStartOnce(t *testing.T) {
	r := newRig(t, 100)
	for i := range 9 {
		r.addRunner(fmt.Sprintf("r%d", i+2), 100)
	}
	at := r.clock.wall.Add(2 * time.Hour)
	for i := range 1000 {
		r.submit(fmt.Sprintf("run-%04d", i), "a", notBefore(at))
	}
	for range 3 {
		for range 11 {
			r.pass(time.Second, true)
			r.clock.pass(3*time.Minute + 30*time.Second)
		}
		r.restart()
	}
	for r.clock.wall.Before(at.Add(-2 * time.Second)) {
		r.pass(time.Second, true)
	}
	if len(r.rows.order) != 0 {
		t.Fatalf("%d started before their time", len(r.rows.order))
	}
	r.pass(30*time.Second, true)
	if len(r.rows.order) != 1000 || len(r.rows.attempts) != 1000 {
		t.Errorf("%d assignments of %d Runs", len(r.rows.order), len(r.rows.tries))
	}
}
