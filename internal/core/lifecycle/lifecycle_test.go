package lifecycle

import (
	"testing"
	"time"
)

// Every state is reached, every terminal one is left by nothing, and no other pair may follow (R-6.3, design section 5).
func TestStates(t *testing.T) {
	reached := map[Run]bool{}
	for from, all := range runFollows {
		for _, to := range all {
			reached[to] = true
			if !from.MayBecome(to) {
				t.Errorf("%q may become %q, but MayBecome denies it", from, to)
			}
		}
	}
	for _, s := range Runs() {
		if !reached[s] {
			t.Errorf("nothing leads to a Run that is %s", s)
		}
	}
	for _, s := range []Run{Succeeded, Failed, Interrupted, Cancelled, Expired} {
		if !s.Ended() {
			t.Errorf("a Run that is %s should be at its end", s)
		}
	}
	if Queued.Ended() || Active.Ended() || Queued.MayBecome(Succeeded) || Active.MayBecome(Expired) {
		t.Error("a Run that never ran can't succeed, and one that runs can't expire")
	}
	got := map[Attempt]bool{}
	for _, all := range attemptFollows {
		for _, to := range all {
			got[to] = true
		}
	}
	for _, s := range Attempts() {
		if !got[s] {
			t.Errorf("nothing leads to an Attempt that is %s", s)
		}
	}
	if Assigned.MayBecome(Running) || Running.MayBecome(AttemptSucceeded) {
		t.Error("nothing runs without leave to start, and nothing succeeds unverified (R-6.4)")
	}
	if !AttemptInterrupted.Ended() || Finalizing.Ended() {
		t.Error("interrupted is an end, finalizing is none")
	}
}

// Losses and failures have their own retries, a cancel ends all of them (R14, R-6.3, R10).
func TestNext(t *testing.T) {
	policy := Retry{Failures: 2, Losses: 3, Backoff: 10 * time.Second}
	for _, c := range []struct {
		name             string
		ending           Ending
		policy           Retry
		failures, losses int
		state            Run
		wait             time.Duration
	}{
		{"success", Ending{State: AttemptSucceeded, Reason: Done}, policy, 0, 0, Succeeded, 0},
		{"success beats a cancel that came later", Ending{State: AttemptSucceeded, Cancel: true}, policy, 0, 0, Succeeded, 0},
		{"first failure", Ending{State: AttemptFailed, Reason: ExitCode}, policy, 0, 0, Queued, 10 * time.Second},
		{"second failure waits twice as long", Ending{State: AttemptFailed, Reason: ExitCode}, policy, 1, 3, Queued, 20 * time.Second},
		{"failures used up", Ending{State: AttemptFailed, Reason: ExitCode}, policy, 2, 0, Failed, 0},
		{"losses don't count as failures", Ending{State: AttemptInterrupted, Reason: LeaseLost}, policy, 2, 2, Queued, 40 * time.Second},
		{"losses used up", Ending{State: AttemptInterrupted, Reason: LeaseLost}, policy, 0, 3, Interrupted, 0},
		{"never", Ending{State: AttemptInterrupted, Reason: LeaseLost}, Retry{}, 0, 0, Interrupted, 0},
		{"what was never started is no loss", Ending{State: AttemptInterrupted, Reason: NotStarted}, Retry{}, 0, 0, Queued, 0},
		{"cancelled while lost", Ending{State: AttemptInterrupted, Cancel: true}, policy, 0, 0, Cancelled, 0},
		{"what can't start is not tried again", Ending{State: AttemptFailed, Reason: CannotStart}, policy, 0, 0, Failed, 0},
		{"bounded backoff", Ending{State: AttemptInterrupted}, Retry{Losses: 90, Backoff: time.Hour}, 0, 80, Queued, MaxBackoff},
	} {
		state, wait := Next(c.ending, c.policy, c.failures, c.losses)
		if state != c.state || wait != c.wait {
			t.Errorf("%s: %s after %v, want %s after %v", c.name, state, wait, c.state, c.wait)
		}
	}
}
