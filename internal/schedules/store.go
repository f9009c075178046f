package schedules

import (
	"context"
	"encoding/json"
	"time"

	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/identity"
)

// Store keeps schedules and their fires. All methods block on the database; each is one transaction.
type Store interface {
	Records
	Fires
}

// Records keeps schedules.
type Records interface {
	// Schedule finds one by its tenant and name, or not_found.
	Schedule(ctx context.Context, tenant, name string) (Schedule, error)
	// ListSchedules lists a tenant's by name, past after.
	ListSchedules(ctx context.Context, tenant, after string, limit int) ([]Schedule, error)
	// SchedulesOnPool lists those of all tenants that are not paused, by id, past after.
	SchedulesOnPool(ctx context.Context, pool, after string, limit int) ([]Schedule, error)
	// ActiveSchedules lists those of all pools that are not paused, by id, past after.
	ActiveSchedules(ctx context.Context, after string, limit int) ([]Schedule, error)
	// PutSchedule makes a schedule (expected 0; already_exists if the name is taken, capacity_exceeded if the tenant has
	// most of them) or replaces it at the expected revision, else revision_mismatch. One that is paused gives up its
	// pending fires.
	PutSchedule(ctx context.Context, s Schedule, expected int64, most int, e audit.Entry) error
	// DeleteSchedule removes it and its fires, at the expected revision, else revision_mismatch.
	DeleteSchedule(ctx context.Context, s Schedule, e audit.Entry) error
}

// Fires keeps what became of each fire.
type Fires interface {
	// DueSchedules lists active schedules that are due at the instant, the longest overdue first.
	DueSchedules(ctx context.Context, now time.Time, limit int) ([]Schedule, error)
	// ClaimFires moves schedules to their next fire, each if it still is at the revision and the instant that the claim
	// names, and writes the fires of those it moved. It returns the fires that were not there before: they are this
	// caller's to submit.
	ClaimFires(ctx context.Context, claims []Claim) ([]Fire, error)
	// PendingFires lists pending fires whose time to try has come, or lies so far ahead, past beyond, that another clock
	// must have set it.
	PendingFires(ctx context.Context, now, beyond time.Time, limit int) ([]Fire, error)
	// TakeFire moves the next try of a pending fire, if it still is where f says: of two who try one is told true.
	TakeFire(ctx context.Context, f Fire, tryAt time.Time) (bool, error)
	// SettleFire writes what a fire came to, or why it is tried again. A Run that was made is written even if the fire was
	// given up meanwhile; nothing else changes a settled fire.
	SettleFire(ctx context.Context, f Fire) error
	// ListFires lists a schedule's fires, latest instant first, below before unless that is zero.
	ListFires(ctx context.Context, schedule string, before time.Time, limit int) ([]Fire, error)
	// PruneFires removes settled fires whose instant and end both lie before the given one, up to limit, and says how many.
	PruneFires(ctx context.Context, before time.Time, limit int) (int64, error)
}

// Claim moves a schedule from one fire to the next.
type Claim struct {
	Schedule string
	Revision int64
	From     time.Time // the instant it is at
	Instant  time.Time // the next one; zero when there is none
	Due      time.Time
	Fires    []Fire
}

// Templates checks what schedules submit; the service of Runs is one. It blocks on the database.
type Templates interface {
	// CheckTemplate refuses what the owner could not submit now, naming the field inside the template, and says what one
	// Run of it takes.
	CheckTemplate(ctx context.Context, owner identity.Principal, template json.RawMessage) (Shape, error)
}

// Submitter makes Runs of fires; the service of Runs is one. It blocks on the database.
type Submitter interface {
	// SubmitScheduled submits f.Order.Template for the account f.Order.Owner of the tenant f.Order.Tenant, by the rights it
	// has now and through the same admission as any submit. f.Key() is the idempotency key: the same fire again
	// gives the Run it has, whatever else holds by then. f.ConcurrencyKey(), unless empty, is the Run's, with
	// f.Order.Overlap as its policy; where that policy skips, the fault is conflict with the reason ReasonOverlap. Faults
	// invalid_input, unauthorized, forbidden, not_found, conflict, rate_limited, too_large and capacity_exceeded say that
	// there is no Run; after any other error the same fire is submitted again.
	SubmitScheduled(ctx context.Context, f Fire) (run string, err error)
}

// ReasonOverlap is the reason of the conflict that skips a fire.
const ReasonOverlap = "overlap"
