package dispatcher

import (
	"context"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/core/dispatch"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/runs"
)

// Records is what the dispatcher reads and commits. Each method is one transaction.
type Records interface {
	OwnerRecords
	RowRecords
	EndRecords
}

// Owner is a pool's owner at an epoch. What names it is refused with fault conflict, reason deposed, once another
// process has taken the pool over.
type Owner struct {
	Pool  string
	ID    string
	Epoch int64
}

// PoolState is a pool and who owns it.
type PoolState struct {
	Name     string
	Policy   api.PoolPolicy // every default filled in
	Draining bool
	Revision int64
	Owner    string
	Epoch    int64
	Beats    int64 // renewals of the owner
}

// OwnerRecords says who decides.
type OwnerRecords interface {
	PoolStates(ctx context.Context) ([]PoolState, error)
	// TakePool makes the caller the owner, if the owner still is the one at the epoch, and counts the epoch up.
	TakePool(ctx context.Context, pool, owner string, epoch int64) (Owner, error)
	// KeepPool renews the ownership and stores the virtual times.
	KeepPool(ctx context.Context, o Owner, clock string) error
	// PoolClock is what KeepPool stored last; empty for none.
	PoolClock(ctx context.Context, pool string) (string, error)
	// Assign commits decisions: each wins or says why not.
	Assign(ctx context.Context, o Owner, all []Assignment) ([]Assigned, error)
}

// Assignment is a decision to be committed.
type Assignment struct {
	Run        string
	Tenant     string
	Fence      int64 // of the Run before
	Attempt    string
	Runner     string
	Resources  api.Resources
	HoldMicro  int64
	Lane       string
	At         time.Time
	LeaseUntil time.Time
	Decision   string // what the machine needs to resume the Attempt
}

// Loss says why a decision was not committed.
type Loss string

// The losses.
const (
	LossChanged Loss = "changed" // the Run isn't as it was
	LossBudget  Loss = "budget"  // the tenant's budget has less left than is to be held
	LossLane    Loss = "lane"    // another Run of the concurrency key is active
	LossRunner  Loss = "runner"  // the runner was revoked
)

// Assigned is what became of an Assignment.
type Assigned struct {
	Won  bool
	Loss Loss
}

// RunRow is a Run with what the machine needs of its specification: resources, placement, times, money, gates, the program of
// a command, and the instant it was asked not to start before. Nothing else of it need be there, nor of the Run who made it,
// its class, its index, and how it ended.
type RunRow struct {
	Run  runs.Run
	Spec runs.Spec
}

// Mark says that a Run came to a queue, and which version of it is there.
type Mark struct {
	Run      string
	Version  int64
	Inserted int64 // Unix ms
}

// LiveRow is an Attempt that has not ended, with its Run.
type LiveRow struct {
	Attempt  runs.Attempt
	Row      RunRow
	Decision string
}

// Beat is how often a lease was renewed.
type Beat struct {
	Attempt string
	State   lifecycle.Attempt
	Beats   int64
}

// RunnerRow is a runner of a pool.
type RunnerRow struct {
	ID       string
	Capacity api.Resources
	Labels   map[string]string
	Draining bool
	Revoked  bool
	Beats    int64
	SeenAt   time.Time
}

// ShareRow is a tenant's part of a pool.
type ShareRow struct {
	Tenant   string
	Weight   int64
	MaxSlots int64
}

// Duration is how long an Attempt took, for learning.
type Duration struct {
	Kind string // package, or the pool's commands
	Took time.Duration
}

// RowRecords reads what the machine works on.
type RowRecords interface {
	// QueuedRows lists the pool's queued Runs, by id past after.
	QueuedRows(ctx context.Context, pool, after string, limit int) ([]RunRow, error)
	// NewRows lists what came to the pool's queue and is in it, by instant and id, past those given.
	NewRows(ctx context.Context, pool string, since time.Time, after string, limit int) ([]Mark, error)
	RunRows(ctx context.Context, ids []string) ([]RunRow, error)
	LiveRows(ctx context.Context, pool string) ([]LiveRow, error)
	Beats(ctx context.Context, pool string) ([]Beat, error)
	RunnerRows(ctx context.Context, pool string) ([]RunnerRow, error)
	ShareRows(ctx context.Context, pool string) ([]ShareRow, error)
}

// EndRecords ends what waited too long or was lost.
type EndRecords interface {
	EndAttempt(ctx context.Context, e runs.Ending) (runs.Ended, error)
	EndQueuedRun(ctx context.Context, id string, version int64, state lifecycle.Run, reason lifecycle.Reason, detail string, at time.Time) (runs.Ended, error)
	// BudgetLeft is what may still be held; limited is false without a budget.
	BudgetLeft(ctx context.Context, tenant string) (micro int64, limited bool, err error)
	// RecentDurations lists the last ended Attempts of the pool, the newest first.
	RecentDurations(ctx context.Context, pool string, limit int) ([]Duration, error)
}

// Runners is told which runners have news.
type Runners interface {
	Wake(runners ...string)
}

// vector is a resource vector of the machine.
func vector(r api.Resources) dispatch.Vector {
	var v dispatch.Vector
	v[dispatch.Slots], v[dispatch.MilliCPU], v[dispatch.Memory], v[dispatch.Disk] = r.Slots, r.MilliCPU, r.MemoryBytes, r.DiskBytes
	return v
}

// labels are sorted, so that the machine sees the same whatever a map says.
func labels(m map[string]string) []dispatch.Label {
	var all []dispatch.Label
	for _, name := range sortedKeys(m) {
		all = append(all, dispatch.Label{Name: name, Value: m[name]})
	}
	return all
}
