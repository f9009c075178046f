package runs

import (
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
)

// Run is the narrow, hot record of a Run. What was asked for lies apart, in its Spec.
type Run struct {
	ID           string
	Tenant       string
	Pool         string
	State        lifecycle.Run
	Reason       lifecycle.Reason // of its end
	Fence        int64            // counts its Attempts
	Version      int64            // counts changes of the record
	CreatedAt    time.Time
	CreatedBy    string // account id
	CreatedName  string
	NextEligible time.Time // not before this instant: the submit's, or a retry's
	EligibleAt   time.Time // when it last came to wait for its turn; order and age count from it
	Priority     int
	Class        string
	Package      string // name@version; empty for a command
	Array        string // id of the array it is an element of
	Index        int
	Lane         string // concurrency key
	WaitsFor     int    // dependencies not met yet
	Failures     int    // Attempts that failed
	Losses       int    // Attempts that were interrupted
	Cancel       bool   // asked for; a living Attempt may still have to end
	StartedAt    time.Time
	EndedAt      time.Time
	SpentMicro   int64
	Inserted     int64 // grows with every new Run
}

// Spec is what a Run was asked to be, resolved at the submit and never changed: every default is filled in.
type Spec struct {
	Request     api.NewRun            `json:"request"`           // as it came
	Command     []string              `json:"command"`           // program and arguments
	Package     *Object               `json:"package,omitempty"` // archive of the package
	Image       *Object               `json:"image,omitempty"`   // image layout
	PackageName string                `json:"packageName,omitempty"`
	Resources   api.Resources         `json:"resources"`
	Placement   map[string]string     `json:"placement,omitempty"`
	Timeout     int64                 `json:"timeoutSeconds"`
	Expected    int64                 `json:"expectedSeconds"`
	Grace       int64                 `json:"graceSeconds"`
	LogBytes    int64                 `json:"logBytes"`
	Pids        int64                 `json:"pids"`
	Network     bool                  `json:"network,omitempty"`
	Retry       api.Retry             `json:"retry"`
	Lane        string                `json:"lane,omitempty"`
	ArrayLimit  int                   `json:"arrayLimit,omitempty"`
	Inputs      map[string]BoundInput `json:"inputs,omitempty"`
	Outputs     []api.Output          `json:"outputs,omitempty"`
	Secrets     []string              `json:"secrets,omitempty"`
	Env         map[string]string     `json:"env,omitempty"`
	HoldMicro   int64                 `json:"holdMicro,omitempty"`  // money held while an Attempt lives: price x timeout
	PriceMicro  int64                 `json:"priceMicro,omitempty"` // of a slot-second, as it was at the submit
	Traceparent string                `json:"traceparent,omitempty"`
}

// Object is immutable bytes of the store.
type Object struct {
	Repository string `json:"repository"`
	Digest     string `json:"digest"`
	Size       int64  `json:"size"`
}

// BoundInput is where an input comes from, fixed at the submit: a value, an object, or a result that will be there.
type BoundInput struct {
	Value  string        `json:"value,omitempty"`
	Object *Object       `json:"object,omitempty"`
	Result *api.ResultOf `json:"result,omitempty"`
}

// Retry is the retry policy as the lifecycle wants it.
func (s *Spec) RetryPolicy() lifecycle.Retry {
	return lifecycle.Retry{
		Failures: s.Retry.Failures, Losses: s.Retry.Losses, Backoff: time.Duration(s.Retry.BackoffSeconds) * time.Second,
	}
}

// Attempt is one try at a Run.
type Attempt struct {
	ID         string
	Run        string
	Tenant     string
	Pool       string
	Runner     string
	Number     int
	Fence      int64 // equals the Run's while the Attempt is the newest
	State      lifecycle.Attempt
	Reason     lifecycle.Reason
	Detail     string
	Sequence   int64 // of the assignment, counted per runner
	Beats      int64 // renewals of the lease
	LeaseUntil time.Time
	Resources  api.Resources
	AssignedAt time.Time
	StartedAt  time.Time
	EndedAt    time.Time
	Report     string // the runner's terminal report; empty before
	CostMicro  int64
}

// Event is one step in the life of a Run.
type Event struct {
	Run     string
	Seq     int64 // given by the store, counting up within the Run
	At      time.Time
	Kind    string
	Attempt string
	Reason  string
	Detail  string
}

// The kinds of event that are not the name of a terminal state.
const (
	Submitted       = "submitted"
	Assigned        = "assigned"
	Starting        = "starting"
	Running         = "running"
	CancelRequested = "cancel_requested"
	Finalizing      = "finalizing"
	Retried         = "retry"
	DependencyMet   = "dependency_met"
)

// Ending ends an Attempt; with it its holds end, its cost is settled, and its Run goes on or ends, all in one
// transaction.
type Ending struct {
	Attempt   string
	Fence     int64
	From      []lifecycle.Attempt // the states it may be in now; it is a conflict in any other
	State     lifecycle.Attempt   // a terminal one
	Reason    lifecycle.Reason
	Detail    string
	At        time.Time
	CostMicro int64
	Results   []api.Result // of a success
}

// Ended is what an Ending led to.
type Ended struct {
	Run     Run      // as it is now
	Freed   []string // Runs that waited for this one and need not any more
	Dropped []string // Runs that can't start any more because of how this one ended, ended with it
}
