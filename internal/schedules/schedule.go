package schedules

import (
	"encoding/json"
	"hash/fnv"
	"regexp"
	"time"

	"github.com/roadstead/roadstead/internal/fault"
)

// Overlap says what a fire does while a Run of an earlier one is not at its end.
type Overlap string

// The policies of overlap. All but Allow are the concurrency key of the Run, so they are judged with the queue of
// Runs in one transaction and not here beforehand.
const (
	Skip    Overlap = "skip"    // no Run is made; the fire says so
	Queue   Overlap = "queue"   // its Run waits for the earlier one
	Replace Overlap = "replace" // the earlier one is cancelled
	Allow   Overlap = "allow"   // both run
)

// Missed says what becomes of fires that nobody claimed in time: the server was down, or its clock was set forward.
type Missed string

// The policies of catching up.
const (
	None Missed = "none" // they are left out; one up to the grace late still counts as in time
	Last Missed = "last" // the latest of them is made
	All  Missed = "all"  // the latest of them are made, up to a number
)

// Refused says what becomes of a fire whose Run was refused, for example because the tenant's queue is full.
type Refused string

// The policies for refusals.
const (
	Drop  Refused = "drop"  // it is given up; the fire keeps the reason
	Retry Refused = "retry" // it is tried again until the next fire is due
)

// CatchUp bounds what is caught up. Max counts for All; MaxAge, 7 days when zero, for Last and All.
type CatchUp struct {
	Policy Missed        `json:"policy"`
	Max    int           `json:"max,omitempty"`
	MaxAge time.Duration `json:"maxAge,omitempty"`
}

// Plan is what the owner of a schedule says.
type Plan struct {
	Rule     string          `json:"rule"`
	Zone     string          `json:"zone"`
	Spread   time.Duration   `json:"spread,omitempty"`
	Overlap  Overlap         `json:"overlap"`
	CatchUp  CatchUp         `json:"catchUp"`
	Refused  Refused         `json:"refused"`
	Template json.RawMessage `json:"template"` // what is submitted
}

// Shape is how much of which pool one Run of a template takes, as far as its submitter declares it.
type Shape struct {
	Pool     string        `json:"pool"`
	Slots    int64         `json:"slots"`
	Duration time.Duration `json:"duration"`
}

// Schedule is a plan with its next fire. Instant is by the rule; Due is Instant plus the schedule's place in the spread,
// and when it fires. Both are zero while it is paused and when the rule fires no more.
type Schedule struct {
	ID        string
	Tenant    string
	Name      string // unique in the tenant
	Owner     string // account id of who last changed the plan: its Runs are this account's
	Plan      Plan
	Shape     Shape
	Paused    bool
	Revision  int64
	Instant   time.Time
	Due       time.Time
	CreatedAt time.Time
	ChangedAt time.Time
}

// State is what became of a fire.
type State string

// The states of a fire.
const (
	Pending   State = "pending"   // claimed; its Run is to be submitted, or tried again
	Submitted State = "submitted" // there is a Run
	Skipped   State = "skipped"   // an earlier Run was not at its end
	Dropped   State = "dropped"   // refused; the reason is kept
	MissedOut State = "missed"    // not claimed in time, and not caught up
)

// Fire is one fire of a schedule. What it submits is what the schedule said when it was claimed, so that repeating it
// repeats the same.
type Fire struct {
	Schedule string
	Instant  time.Time // by the rule; with Schedule its identity
	Due      time.Time
	Order    Order
	State    State
	Run      string // id, once submitted
	Reason   string
	Tries    int
	TryAt    time.Time // pending: when whoever finds it submits it
	Until    time.Time // pending: no further try later than this after a refusal
	ClaimedAt,
	SettledAt time.Time
}

// Order is what a fire submits, and for whom.
type Order struct {
	Tenant   string          `json:"tenant"`
	Name     string          `json:"name"` // of the schedule
	Owner    string          `json:"owner"`
	Overlap  Overlap         `json:"overlap"`
	Refused  Refused         `json:"refused"`
	Template json.RawMessage `json:"template"`
}

// Key is the fire's idempotency key: however often a fire is submitted, it makes one Run.
func (f Fire) Key() string { return f.Schedule + "/" + f.Instant.UTC().Format(time.RFC3339) }

// ConcurrencyKey is the key that the Runs of a schedule share; empty when they may overlap.
func (f Fire) ConcurrencyKey() string {
	if f.Order.Overlap == Allow {
		return ""
	}
	return "schedule/" + f.Schedule
}

// Bounds of a plan.
const (
	maxSpread   = 24 * time.Hour
	maxCatchUp  = 100
	maxAge      = 31 * 24 * time.Hour
	defaultAge  = 7 * 24 * time.Hour
	maxTemplate = 64 << 10
)

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// whole fills in what the plan leaves out, and refuses what it may not say.
func (p Plan) whole() (Plan, error) {
	if p.Overlap == "" {
		p.Overlap = Skip
	}
	if p.CatchUp.Policy == "" {
		p.CatchUp.Policy = None
	}
	if p.Refused == "" {
		p.Refused = Drop
	}
	if p.CatchUp.Policy != None && p.CatchUp.MaxAge == 0 {
		p.CatchUp.MaxAge = defaultAge
	}
	switch c := p.CatchUp; {
	case p.Overlap != Skip && p.Overlap != Queue && p.Overlap != Replace && p.Overlap != Allow:
		return p, fault.Invalid("overlap", "must be skip, queue, replace or allow")
	case c.Policy != None && c.Policy != Last && c.Policy != All:
		return p, fault.Invalid("catchUp.policy", "must be none, last or all")
	case c.Policy == All && (c.Max < 1 || c.Max > maxCatchUp):
		return p, fault.Invalid("catchUp.max", "must be between 1 and %d with the policy all", maxCatchUp)
	case c.Policy != All && c.Max != 0:
		return p, fault.Invalid("catchUp.max", "counts with the policy all only")
	case c.Policy == None && c.MaxAge != 0:
		return p, fault.Invalid("catchUp.maxAgeSeconds", "counts with the policies last and all only")
	case c.MaxAge < 0 || c.MaxAge > maxAge:
		return p, fault.Invalid("catchUp.maxAgeSeconds", "must be between 1 and %d", int(maxAge/time.Second))
	case p.Refused != Drop && p.Refused != Retry:
		return p, fault.Invalid("refused", "must be drop or retry")
	case p.Spread < 0 || p.Spread > maxSpread:
		return p, fault.Invalid("spreadSeconds", "must be between 0 and %d", int(maxSpread/time.Second))
	case len(p.Template) == 0 || len(p.Template) > maxTemplate:
		return p, fault.Invalid("template", "must be given, and not be longer than %d bytes", maxTemplate)
	}
	return p, nil
}

// sameTimes reports whether two plans fire at the same times.
func (p Plan) sameTimes(o Plan) bool {
	return p.Rule == o.Rule && p.Zone == o.Zone && p.Spread == o.Spread
}

// Place is the schedule's place in a spread: whole seconds, in [0, spread), the same for one tenant and name for ever, on
// every server. A schedule that is made anew under its name keeps its place.
func Place(tenant, name string, spread time.Duration) time.Duration {
	seconds := uint64(spread / time.Second)
	if seconds == 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(tenant + "\x00" + name)) // never fails
	x := h.Sum64()
	// Names that differ in their last letter only differ in few bits of the sum; this stirs them (the finalizer of
	// splitmix64).
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return time.Duration(x%seconds) * time.Second
}

// place is the schedule's own.
func (s Schedule) place() time.Duration { return Place(s.Tenant, s.Name, s.Plan.Spread) }

// from sets the next fire to the first that is due after now. What was due before is neither fired nor caught up.
func (s *Schedule) from(r Rule, now time.Time) {
	s.Instant, s.Due = time.Time{}, time.Time{}
	if s.Paused {
		return
	}
	if at := r.Next(now.Add(-s.place())); !at.IsZero() {
		s.Instant, s.Due = at, at.Add(s.place())
	}
}
