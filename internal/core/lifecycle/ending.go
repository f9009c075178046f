package lifecycle

import "time"

// Reason is the word that says why a state was reached.
type Reason string

// The reasons of an Attempt's or a Run's end. Reasons of waiting are the dispatch machine's.
const (
	Done                 Reason = "done"
	ExitCode             Reason = "exit_code"             // the payload ended with another code than 0
	Killed               Reason = "killed"                // the payload was ended by a signal that was not ours
	TimedOut             Reason = "timeout"               // over its time limit
	OutOfMemory          Reason = "out_of_memory"         // over its memory limit
	OutOfDisk            Reason = "out_of_disk"           // over its disk limit
	LogLimit             Reason = "log_limit"             // wrote more log than allowed
	CannotStart          Reason = "cannot_start"          // the payload could not be started: nothing ran (R10)
	ResultsUnverified    Reason = "results_unverified"    // the results did not prove true, or not in time
	LeaseLost            Reason = "lease_lost"            // nothing was heard of the runner for lease and grace
	RunnerLost           Reason = "runner_lost"           // the runner says it does not know how the payload ended
	NotStarted           Reason = "not_started"           // the runner never took it over: nothing ran, and it counts as no loss
	Drained              Reason = "drained"               // the pool's drain deadline passed
	CancelRequested      Reason = "cancel_requested"      //
	DependencyFailed     Reason = "dependency_failed"     // what it was to follow did not end as it asked
	Replaced             Reason = "replaced"              // a newer Run of its concurrency key took its place
	Skipped              Reason = "skipped"               // another Run of its concurrency key was there already
	TooOld               Reason = "too_old"               // waited longer than the pool allows
	NeverFits            Reason = "never_fits"            // larger than any runner of the pool
	PackageUnavailable   Reason = "package_unavailable"   // its package may not be used any more
	CredentialsForbidden Reason = "credentials_forbidden" // its secrets may not be given any more
)

// Retry is a Run's policy for another Attempt. A failure and a loss are counted apart: that a machine died says
// nothing about the job (R14).
type Retry struct {
	Failures int           // Attempts after a failed one
	Losses   int           // Attempts after an interrupted one
	Backoff  time.Duration // wait before the first retry; doubled each time
}

// MaxBackoff bounds the wait before a retry.
const MaxBackoff = 15 * time.Minute

// Ending is how an Attempt ended.
type Ending struct {
	State  Attempt // a terminal one
	Reason Reason
	Cancel bool // the Run's cancel was asked for before: no retry follows
}

// Next says what becomes of a Run whose Attempt ended: its next state, and for Queued how long it waits before it is
// eligible again. failures and losses are the Attempts that ended so before this one.
func Next(e Ending, policy Retry, failures, losses int) (state Run, wait time.Duration) {
	switch {
	case e.State == AttemptSucceeded:
		return Succeeded, 0
	case e.Cancel || e.State == AttemptCancelled:
		return Cancelled, 0
	case e.State == AttemptInterrupted && e.Reason == NotStarted:
		return Queued, 0
	case e.State == AttemptFailed && retried(e.Reason) && failures < policy.Failures:
		return Queued, backoff(policy.Backoff, failures)
	case e.State == AttemptInterrupted && losses < policy.Losses:
		return Queued, backoff(policy.Backoff, losses)
	case e.State == AttemptInterrupted:
		return Interrupted, 0
	}
	return Failed, 0
}

// retried reports whether another try can end differently: what can't start now can't start then (R10).
func retried(r Reason) bool {
	return r != CannotStart && r != NeverFits && r != PackageUnavailable && r != CredentialsForbidden
}

func backoff(first time.Duration, tries int) time.Duration {
	wait := first
	for range tries {
		if wait >= MaxBackoff {
			break
		}
		wait *= 2
	}
	return min(wait, MaxBackoff)
}
