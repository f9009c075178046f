package api

import (
	"encoding/json"
	"time"
)

// CatchUp says what becomes of fires that came while the server was down or its clock was set forward.
type CatchUp struct {
	Policy        string `json:"policy" enum:"none,last,all" doc:"none: they are left out, save one that is at most 5 minutes late; last: the latest is made; all: the latest max are made."`
	Max           int    `json:"max,omitempty" minimum:"0" maximum:"100" doc:"With all: how many."`
	MaxAgeSeconds int64  `json:"maxAgeSeconds,omitempty" minimum:"0" maximum:"2678400" doc:"With last and all: none that is older; 7 days when absent."`
}

// SchedulePlan is what the owner of a schedule says.
type SchedulePlan struct {
	Rule          string          `json:"rule" maxLength:"256" doc:"Five fields: minute, hour, day of month, month, day of week; or @hourly, @daily, @weekly, @monthly, @yearly. A rule for all hours (*, */n) goes by elapsed time through changes of the clock. Any other goes by the clock on the wall: a time shown twice counts once, a time never shown at the end of the gap, a day that does not exist not at all."`
	Zone          string          `json:"zone" maxLength:"64" doc:"Time zone of the rule, such as Europe/Berlin."`
	SpreadSeconds int64           `json:"spreadSeconds,omitempty" minimum:"0" maximum:"86400" doc:"Fires are moved by up to this much, each schedule always by the same, so that many of one minute are no burst."`
	Overlap       string          `json:"overlap,omitempty" enum:"skip,queue,replace,allow" doc:"While a Run of an earlier fire is not at its end: make none (skip, the default), wait for it, cancel it, or run beside it."`
	CatchUp       *CatchUp        `json:"catchUp,omitempty" doc:"none when absent."`
	Refused       string          `json:"refused,omitempty" enum:"drop,retry" doc:"When the Run is refused, for example because the queue is full: give the fire up and keep the reason (drop, the default), or try again until the next fire."`
	Template      json.RawMessage `json:"template" doc:"What is submitted: the body of POST /api/v1/runs."`
}

// ScheduleChange is the body of PUT /api/v1/schedules/{name}.
type ScheduleChange struct {
	Plan             SchedulePlan `json:"plan" doc:"The whole plan; nothing fires on the change."`
	ExpectedRevision int64        `json:"expectedRevision" minimum:"0" doc:"The revision this change was made from, 0 to make a new schedule; another one is answered revision_mismatch."`
}

// Schedule is a plan with its next fire.
type Schedule struct {
	ID        string       `json:"id"`
	Tenant    string       `json:"tenant"`
	Name      string       `json:"name"`
	Owner     string       `json:"owner" doc:"Account id of who last changed the plan: the Runs are this account's, by the rights it has when they are made."`
	Pool      string       `json:"pool"`
	Plan      SchedulePlan `json:"plan"`
	Paused    bool         `json:"paused,omitempty"`
	Revision  int64        `json:"revision"`
	NextAt    *time.Time   `json:"nextAt,omitempty" doc:"When it fires next, spread included; absent while paused."`
	CreatedAt time.Time    `json:"createdAt"`
	ChangedAt time.Time    `json:"changedAt"`
}

// ScheduleFire is what became of one fire.
type ScheduleFire struct {
	Instant time.Time  `json:"instant" doc:"By the rule; with the schedule's id the identity of the fire."`
	DueAt   time.Time  `json:"dueAt" doc:"With the spread."`
	State   string     `json:"state" enum:"pending,submitted,skipped,dropped,missed"`
	Run     string     `json:"run,omitempty" doc:"The Run it made; it makes one at most."`
	Reason  string     `json:"reason,omitempty" doc:"Why there is no Run, or none yet."`
	Tries   int        `json:"tries,omitempty"`
	RetryAt *time.Time `json:"retryAt,omitempty" doc:"While pending."`
	EndedAt *time.Time `json:"endedAt,omitempty"`
}

// SchedulePreview is the body of POST /api/v1/schedules/{name}/preview.
type SchedulePreview struct {
	Plan SchedulePlan `json:"plan" doc:"As it would be stored; nothing is."`
	Week bool         `json:"week,omitempty" doc:"Over 7 days in steps of an hour instead of 24 hours in steps of 5 minutes."`
}

// LoadCurve is how many slots of a pool the schedules on it ask for at once, as their templates declare slots and duration.
// Nothing waits in it: it is what is asked for, and no forecast of what runs.
type LoadCurve struct {
	Pool        string         `json:"pool"`
	From        time.Time      `json:"from"`
	StepSeconds int64          `json:"stepSeconds"`
	Buckets     []LoadBucket   `json:"buckets" nullable:"false"`
	Peaks       []LoadPeak     `json:"peaks" nullable:"false" doc:"The highest minutes, an hour or more apart, highest first."`
	Spreads     []SpreadEffect `json:"spreads" nullable:"false" doc:"The highest minute if other spreads were declared."`
	NotCounted  int            `json:"notCounted,omitempty" doc:"Schedules on the pool beyond what a preview counts."`
}

// LoadBucket is one step of a curve.
type LoadBucket struct {
	At        time.Time `json:"at"`
	MeanSlots float64   `json:"meanSlots"`
	MaxSlots  int64     `json:"maxSlots" doc:"In its highest minute."`
}

// LoadPeak is a minute that asks for many slots.
type LoadPeak struct {
	At     time.Time  `json:"at"`
	Slots  int64      `json:"slots"`
	Own    []PeakPart `json:"own" nullable:"false" doc:"The tenant's own schedules in it, most slots first, ten at most."`
	Others int64      `json:"others" doc:"Slots that other tenants ask for."`
}

// PeakPart is what one schedule asks for in a peak.
type PeakPart struct {
	Name  string `json:"name"`
	Slots int64  `json:"slots"`
}

// SpreadEffect is the highest minute of a curve under another spread.
type SpreadEffect struct {
	SpreadSeconds int64 `json:"spreadSeconds"`
	Alone         int64 `json:"alone" doc:"Slots, if this schedule alone declared it."`
	Together      int64 `json:"together" doc:"Slots, if all of the tenant's schedules in the highest peak did."`
}
