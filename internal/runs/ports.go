package runs

import (
	"context"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/identity"
)

// Records is what must not be forgotten of Runs. Each method is one transaction, safe from many goroutines and
// processes at once; what it acknowledges is on the disk.
type Records interface {
	SubmitRecords
	ReadRecords
	CancelRecords
}

// SubmitRecords writes new Runs.
type SubmitRecords interface {
	// SubmitRuns writes all Runs of a submission or none. The idempotency key is looked up before anything else; a known one
	// with the same body gives the earlier answer and with another is fault idempotency_mismatch. A Run that
	// is named in after but isn't the tenant's is fault invalid_input with the field. A bound that is reached is no error: the outcome says which
	// one, and nothing was written, the key included.
	SubmitRuns(ctx context.Context, s Submission) (Outcome, error)
}

// ReadRecords finds Runs and what belongs to them. What isn't there is fault not_found.
type ReadRecords interface {
	Run(ctx context.Context, id string) (Run, error)
	RunSpec(ctx context.Context, id string) (Spec, error)
	// ListRuns gives the newest first, past the filter's After.
	ListRuns(ctx context.Context, f Filter) ([]Run, error)
	RunAttempts(ctx context.Context, run string) ([]Attempt, error)
	RunDetails(ctx context.Context, run string) (Details, error)
	// RunEvents lists what followed seq, in order.
	RunEvents(ctx context.Context, run string, seq int64, limit int) ([]Event, error)
	// RunLogs lists the lines past seq, in order, about limit of them.
	RunLogs(ctx context.Context, run string, seq int64, limit int) ([]api.LogLine, error)
}

// CancelRecords ends Runs by wish.
type CancelRecords interface {
	// CancelRun ends a queued Run at once and marks an active one, whose Attempt has to end first; for one that ended
	// or is marked already, nothing changes and e isn't written.
	CancelRun(ctx context.Context, c Cancellation, e audit.Entry) (Ended, error)
}

// Key is an Idempotency-Key within its tenant, principal and route.
type Key struct {
	Principal, Route, Name string
	Body                   string // hash of the request
}

// Submission is everything one submit writes.
type Submission struct {
	Key    *Key // nil: none given
	Tenant string
	Runs   []NewRecord
	Bounds []Bounds // one for each pool the Runs go to
	At     time.Time
}

// NewRecord is one Run of a submission.
type NewRecord struct {
	Run        Run
	Spec       Spec
	LanePolicy string // queue, replace, skip; empty without a concurrency key
	After      []Need
}

// Need is a Run or an array that has to end first.
type Need struct {
	Field string // where the request says so, for refusals
	On    string // run or array id, possibly of the same submission
	When  string // ok, any, fail
}

// Bounds is what a pool's policy lets a tenant have queued after this submission. 0: no bound.
type Bounds struct {
	Pool        string
	TenantDepth int
	Depth       int
	OldestAt    time.Time // refuse when the tenant has an eligible Run that waits since before this instant
}

// Outcome is what became of a submission.
type Outcome struct {
	Runs    []Run
	Repeat  bool     // these are the Runs of the earlier submit with the same key
	Refused string   // the bound that was reached: tenant_depth, depth, age
	Pool    string   // where
	Queued  int      // how many are queued there
	Touched []string // other Runs that changed: cancelled or marked by policy replace
}

// Filter selects Runs of a listing.
type Filter struct {
	Tenant  string // empty: of all tenants, for operators
	States  []lifecycle.Run
	Pool    string
	Package string // name, or name@version
	Array   string
	Labels  map[string]string
	After   string // id of the last one of the page before
	AfterAt time.Time
	Limit   int
}

// Details is what belongs to one Run beside its record.
type Details struct {
	Results  []api.Result
	Progress *api.Progress
	Labels   map[string]string
}

// Cancellation asks for the end of a Run.
type Cancellation struct {
	Run    string
	Reason lifecycle.Reason
	Detail string
	At     time.Time
}

// Pools tells of pools. One that isn't visible to the caller is fault not_found.
type Pools interface {
	ForSubmit(ctx context.Context, p identity.Principal, name string) (Pool, error)
	// MoneyLeft is what the tenant's budget allows in all, less what is spent; limited is false without a budget.
	MoneyLeft(ctx context.Context, tenant string) (micro int64, limited bool, err error)
}

// Pool is what a submit needs to know of one: its policy with every default filled in.
type Pool struct {
	Name   string
	Policy api.PoolPolicy
}

// Packages finds what a Run runs.
type Packages interface {
	// Resolve finds a version the caller may use and checks the inputs against it; a wrong one is named as
	// inputs.NAME. The values come back with the defaults filled in.
	Resolve(ctx context.Context, p identity.Principal, ref string, inputs map[string]api.Input) (Package, error)
}

// Package is a version of a package as a Run needs it.
type Package struct {
	Name       string // without the version
	Version    string
	Image      bool // it is the root, instead of the working folder
	Object     Object
	Command    []string
	Resources  api.Resources
	Inputs     map[string]api.Input
	Outputs    []api.Output
	Class      string
	Timeout    int64
	MaxTimeout int64
	Grace      int64
	Retry      *api.Retry
	Network    bool
	Secrets    []string
}

// Objects finds files of the store that a Run reads.
type Objects interface {
	// File gives the current content of repository/path; what the caller can't read is fault not_found.
	File(ctx context.Context, p identity.Principal, repository, path string) (Object, error)
}

// Secrets knows which secrets there are.
type Secrets interface {
	// Check refuses names that the tenant's Runs of the package may not have.
	Check(ctx context.Context, tenant, packageName string, names []string) error
}

// Places is the dispatcher's side: where a Run stands, from the same machine that decides.
type Places interface {
	// Place tells where a queued Run stands, by a snapshot at most a second old; unknown: Known is false.
	Place(r Run) api.Place
	// Preview tells where such a Run would stand, and what would block it now.
	Preview(r Run, s Spec) (api.Place, []api.Blocker)
	// Back is when a refused submit may come back.
	Back(pool, tenant string) time.Duration
	// Wake says that rows of these Runs changed: look now instead of at the next poll.
	Wake(pool string, runs ...string)
}
