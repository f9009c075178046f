package attempts

import (
	"context"
	"io"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/runs"
)

// Records is what must not be forgotten of Attempts. Each method is one transaction. Holder names who calls: where the
// Attempt isn't this runner's at this fence, or has ended, the method is refused with Lost and changes nothing.
type Records interface {
	LeaseRecords
	JobRecords
	GrantRecords
}

// Holder is an Attempt as its runner knows it.
type Holder struct {
	Runner  string
	Attempt string
	Fence   int64
}

// Beat is a runner's sign of life.
type Beat struct {
	Runner       string
	Acknowledged int64
	Holds        []api.HeldLease
	Capacity     *api.Resources
	At           time.Time
	LeaseUntil   time.Time
}

// Held is what the server has of a runner's.
type Held struct {
	Live   []Lease // every living Attempt that is this runner's
	Lost   []string
	Latest int64 // sequence of the newest assignment
}

// Lease is a living Attempt of a runner.
type Lease struct {
	Attempt runs.Attempt
	Cancel  bool // its Run's end was asked for
}

// LeaseRecords keeps who has what.
type LeaseRecords interface {
	// Beat renews the leases that the runner holds and stores what it acknowledged.
	Beat(ctx context.Context, b Beat) (Held, error)
	// Held looks at the same without changing anything.
	Held(ctx context.Context, runner string, holds []api.HeldLease) (Held, error)
}

// JobRecords keeps the course of an Attempt.
type JobRecords interface {
	// StartAttempt turns assigned into starting; again is no error.
	StartAttempt(ctx context.Context, h Holder, at time.Time) (runs.Attempt, runs.Run, runs.Spec, error)
	// LaunchAttempt turns starting into running; again is no error.
	LaunchAttempt(ctx context.Context, h Holder, at time.Time) (runs.Attempt, error)
	// LiveAttempt finds an Attempt that is the holder's.
	LiveAttempt(ctx context.Context, h Holder) (runs.Attempt, runs.Spec, error)
	// AppendLogs stores lines that follow those stored; lines stored before are passed over.
	AppendLogs(ctx context.Context, h Holder, first int64, lines []api.JobLine, progress *api.Progress) (runs.Attempt, error)
	// ReportAttempt stores how the payload ended and turns the Attempt to finalizing. The same report again gives the
	// Attempt as it is; another one is fault conflict with the reason report_differs.
	ReportAttempt(ctx context.Context, h Holder, report string, at time.Time) (a runs.Attempt, repeated bool, err error)
	// EndAttempt ends it.
	EndAttempt(ctx context.Context, e runs.Ending) (runs.Ended, error)
	// Unfinished lists Attempts that are finalizing, the oldest first, with their specifications.
	Unfinished(ctx context.Context, after string, limit int) ([]Unfinished, error)
}

// Unfinished is a reported Attempt whose end is still to be decided.
type Unfinished struct {
	Attempt runs.Attempt
	Spec    runs.Spec
}

// Grant is leave for one Attempt to upload one object.
type Grant struct {
	ID        string
	Attempt   string
	Run       string
	Tenant    string
	Kind      string // result, checkpoint
	Name      string
	Digest    string
	Size      int64
	Hash      string // of its secret
	ExpiresAt time.Time
	DoneAt    time.Time // zero: not uploaded
}

// GrantRecords keeps grants.
type GrantRecords interface {
	// NewGrant stores a grant; one of the same Attempt, kind, name and digest gets the new secret and life instead, and
	// keeps that it is done.
	NewGrant(ctx context.Context, h Holder, g Grant) (Grant, error)
	// UseGrant finds a grant that may be used now: neither expired, nor is its Attempt another's or ended; otherwise Lost or not_found.
	UseGrant(ctx context.Context, hash string, now time.Time) (Grant, error)
	// FinishGrant notes that the object is there, if the grant still may be used.
	FinishGrant(ctx context.Context, id string, at time.Time) error
	// AttemptGrants lists those of an Attempt that are done.
	AttemptGrants(ctx context.Context, attempt string) ([]Grant, error)
	// LastCheckpoint is the newest finished one of the Run's Attempts before this number.
	LastCheckpoint(ctx context.Context, run string, before int) (Grant, bool, error)
	// Results gives the results of a Run, or those of all elements of an array by their index.
	Results(ctx context.Context, id string) ([]ElementResult, error)
}

// ElementResult is a result with the index of the array's element that it is of; -1 for a Run's own.
type ElementResult struct {
	Index  int
	Result api.Result
}

// Objects keeps bytes by their digest. Results are found through their Run, which only its tenant sees.
type Objects interface {
	// Put stores an object; nothing stays when size or digest differ. It is on the disk when Put returns.
	Put(ctx context.Context, digest string, size int64, body io.Reader) error
	// Has reports whether the object is there, whole.
	Has(ctx context.Context, digest string, size int64) (bool, error)
}

// Secrets gives values to Attempts and hides them in what comes back.
type Secrets interface {
	// Give fetches the values and audits that they were given.
	Give(ctx context.Context, a runs.Attempt, spec runs.Spec) (map[string][]byte, error)
	// Mask hides the values of the Run's secrets in the lines, in place.
	Mask(ctx context.Context, a runs.Attempt, spec runs.Spec, lines []api.JobLine) error
}

// Usable says whether what a Run was given at its submit may still be used.
type Usable interface {
	// Check is a refusal when it may not; an error that isn't one is a reason to wait.
	Check(ctx context.Context, tenant string, spec runs.Spec) error
}

// News tells everybody in this process who waits for it that Runs of a pool changed.
type News interface {
	Changed(pool string, runs ...string)
}
