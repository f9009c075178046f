// Package lifecycle says which states a Run and an Attempt have and what may follow what; nothing else decides that.
//
// A Run is what a tenant asked for; an Attempt is one try at it on one runner. Every change of state in the database
// names the state it leaves, and takes the two from here (design: section 5).
package lifecycle

import "slices"

// Run is the state of a Run.
type Run string

// The states of a Run. The last five are terminal: what ended stays ended, a new try is a new Run.
const (
	Queued      Run = "queued"      // waits for its turn; the reason says for what
	Active      Run = "active"      // has a living Attempt
	Succeeded   Run = "succeeded"   // its results were verified
	Failed      Run = "failed"      // its last Attempt failed and no retry is left
	Interrupted Run = "interrupted" // its last Attempt was lost and no retry is left
	Cancelled   Run = "cancelled"   // somebody or something it depends on ended it
	Expired     Run = "expired"     // waited longer than the pool allows
)

// Attempt is the state of an Attempt.
type Attempt string

// The states of an Attempt. The last four are terminal.
const (
	Assigned           Attempt = "assigned"    // a runner shall take it; nothing was started
	Starting           Attempt = "starting"    // the runner has leave to start the payload
	Running            Attempt = "running"     // the payload was started
	Finalizing         Attempt = "finalizing"  // the payload ended; its results are being verified
	AttemptSucceeded   Attempt = "succeeded"   //
	AttemptFailed      Attempt = "failed"      //
	AttemptInterrupted Attempt = "interrupted" // lost: nobody can say whether it ended
	AttemptCancelled   Attempt = "cancelled"   //
)

var runFollows = map[Run][]Run{
	"":     {Queued, Cancelled},
	Queued: {Active, Cancelled, Expired, Failed},
	Active: {Queued, Succeeded, Failed, Interrupted, Cancelled},
}

var attemptFollows = map[Attempt][]Attempt{
	"":         {Assigned},
	Assigned:   {Starting, Finalizing, AttemptFailed, AttemptInterrupted, AttemptCancelled},
	Starting:   {Running, Finalizing, AttemptFailed, AttemptInterrupted, AttemptCancelled},
	Running:    {Finalizing, AttemptFailed, AttemptInterrupted, AttemptCancelled},
	Finalizing: {AttemptSucceeded, AttemptFailed, AttemptInterrupted, AttemptCancelled},
}

// Ended reports whether nothing follows any more.
func (r Run) Ended() bool { return len(runFollows[r]) == 0 }

// MayBecome reports whether next may follow r.
func (r Run) MayBecome(next Run) bool { return slices.Contains(runFollows[r], next) }

// Ended reports whether nothing follows any more.
func (a Attempt) Ended() bool { return len(attemptFollows[a]) == 0 }

// MayBecome reports whether next may follow a.
func (a Attempt) MayBecome(next Attempt) bool { return slices.Contains(attemptFollows[a], next) }

// Runs lists the states of a Run in the order of a life.
func Runs() []Run { return []Run{Queued, Active, Succeeded, Failed, Interrupted, Cancelled, Expired} }

// Attempts lists the states of an Attempt in the order of a life.
func Attempts() []Attempt {
	return []Attempt{Assigned, Starting, Running, Finalizing, AttemptSucceeded, AttemptFailed, AttemptInterrupted, AttemptCancelled}
}
