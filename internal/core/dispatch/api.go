// Package dispatch is the order of Runs in one pool: a pure machine that takes what happened and an instant, and says
// which Run starts on which runner. Tenants share the pool by weight, start-time fair queueing over the time of the
// whole pool that each Run takes; it has no clock, goroutine, lock, I/O or randomness of its own. The caller
// serialises the calls and supplies the time, so the server, the forecast and the capacity plan run the same code.
package dispatch

import (
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

// Resource is one thing that runners have and Runs need.
type Resource uint8

// The resources. The order is part of the rows that hold vectors and never changes.
const (
	Slots    Resource = iota // places for an Attempt; nearly every Run needs one
	MilliCPU                 // thousandths of a core
	Memory                   // bytes
	Disk                     // bytes
	GPU                      // whole devices
	Resources
)

// Vector is an amount of each resource.
type Vector [Resources]int64

// Tag is virtual time, in nanoseconds: how much of the whole pool's time a tenant of weight 1 got.
type Tag int64

// Share is the dominant share of a Run: the largest part of the pool that it takes of any resource, in billionths.
type Share int64

// WholePool is the share of a Run that takes all of some resource.
const WholePool Share = 1e9

// Label is a property of a runner, or one that a Run asks of its runner.
type Label struct{ Name, Value string }

// Blocker is a set of reasons why a Run may not start that the caller sets and clears. Blockers park Runs, not tenants:
// whatever else the tenant has goes on.
type Blocker uint8

// The blockers.
const (
	Budget         Blocker = 1 << iota // its cost could not be held
	Dependency                         // it waits for other Runs
	ConcurrencyKey                     // another Run has its key
	ArrayLimit                         // as many of its array run as may
	Hold                               // somebody put it on hold
)

// Run is a Run that waits. Everything but the blockers and the two instants stays as it is for good.
type Run struct {
	ID     string
	Tenant string
	Need   Vector
	Labels []Label // every one of them must be the runner's, whatever the order

	Timeout  time.Duration // an Attempt is over by then: what reservations reckon with
	Expected time.Duration // what an Attempt is charged when it starts, and how long forecasts take it to run; at most Timeout
	Fast     time.Duration // one Attempt in ten is over by then; 0: half of Expected
	Slow     time.Duration // nine in ten are over by then; 0: twice Expected

	Priority int // -Policy.MaxPriority..MaxPriority; each step is worth Policy.PriorityStep of waiting

	// EligibleAt is when the Run could first have started, for a Run that is restored (Eligible). A new Run leaves both
	// alone: the machine notes the first instant without a blocker. It makes the Run's place among those of its tenant and
	// never changes; Position tells it, for the row. Rows that round it must be given to Submit rounded likewise.
	Eligible   bool
	EligibleAt clock.Mono

	Blockers   Blocker
	NotBefore  clock.Mono // not started earlier; in the past: no blocker
	QuotaUntil clock.Mono // an external limit has nothing for it until then; in the past: no blocker
}

// Tenant is who shares the pool.
type Tenant struct {
	ID     string
	Weight int    // 1..MaxWeight: the part of the pool it gets among those who wait
	Cap    Vector // most that its Attempts may take at once; 0 of a resource: no bound
}

// RunnerState says what a runner is good for.
type RunnerState uint8

// The states of a runner.
const (
	Active   RunnerState = iota // takes work
	Draining                    // finishes what it has
	Lost                        // away: what it has is the caller's to judge, nothing new goes there
)

// Runner is a machine of the pool.
type Runner struct {
	ID       string
	Capacity Vector
	Labels   []Label
	State    RunnerState
}

// Decision is a Run that starts. The caller commits it, or gives it back with Undo when the commit refuses it. Seq,
// Share, Charge and Start belong in the Attempt's row: Resume asks for them.
type Decision struct {
	Seq    uint64 // 1, 2, ...: later decisions have larger ones, across restarts if the rows are resumed
	Run    string
	Tenant string
	Runner string
	At     clock.Mono
	Share  Share         // dominant share of the pool as it is now
	Charge time.Duration // of the whole pool's time: share x expected
	Start  Tag           // the tenant's tag it started at

	before tags // what it changed, for Undo
}

// Attempt is an Attempt that runs, for Resume.
type Attempt struct {
	Run     Run
	Runner  string
	Seq     uint64
	Since   clock.Mono    // the decision, or the start of the process once Started was told of it
	Share   Share         // as decided
	Charged time.Duration // all that was charged so far: the decision's Charge and what renewals added
	Start   Tag
}

// TenantTag is what a row keeps of a tenant's place in the order.
type TenantTag struct {
	Tenant string
	Seq    uint64 // the last decision that is counted in it
	Finish Tag    // F: where its next Run starts
	Floor  Tag    // no refund takes F below it
	Owed   Tag    // refunds not used yet
	Ready  bool   // it had work that could start
}

// Tags are the virtual times of the pool, flushed now and then. Decisions younger than a flush are made up for by
// Resume; settlements younger than it are not, which costs no more than they were worth.
type Tags struct {
	Virtual Tag
	Seq     uint64
	Tenants []TenantTag // in the order of their ids
}

// Reason says in a word why a queued Run does not start.
type Reason string

// The reasons: words of the wire contract.
const (
	ReasonBudget         Reason = "budget"
	ReasonDependency     Reason = "dependency"
	ReasonConcurrencyKey Reason = "concurrency_key"
	ReasonArrayLimit     Reason = "array_limit"
	ReasonHold           Reason = "hold"
	ReasonQuota          Reason = "quota"      // with the instant it ends
	ReasonNotBefore      Reason = "not_before" // with the instant it ends
	ReasonNeverFits      Reason = "never_fits" // larger than every runner that matches, or than a cap
	ReasonPoolOffline    Reason = "pool_offline"
	ReasonTenantCap      Reason = "tenant_cap"
	ReasonPoolCap        Reason = "pool_cap"
	ReasonReserved       Reason = "reserved_for_head" // it would fit, but a larger Run that is first has the place reserved
	ReasonTurn           Reason = "waiting_turn"
)

// Why is one reason of a queued Run.
type Why struct {
	Reason Reason
	Until  clock.Mono // ReasonQuota, ReasonNotBefore; ReasonReserved: when the reservation begins at the latest
}

// Outlook is what a queued Run is told. Known is false when nobody can tell: it has a blocker without an end, nothing
// that matches is online, or nothing is known of how long anything takes.
type Outlook struct {
	Known  bool
	Exact  bool       // played forward Run by Run; otherwise fluid: as if work were a liquid
	Place  int        // Runs that start before it
	Start  clock.Mono // point
	P10    clock.Mono // one start in ten is earlier, as far as the last ones tell
	P50    clock.Mono
	P90    clock.Mono // nine in ten are earlier
	Reason Reason     // the first of Why
}

// Limits bound the work of a forecast.
type Limits struct {
	Exact   int           // starts that are played forward one by one; the rest is fluid. 0: DefaultExact
	Horizon time.Duration // later starts are fluid; 0: DefaultHorizon
}

// Defaults of Limits.
const (
	DefaultExact   = 4096
	DefaultHorizon = 7 * 24 * time.Hour
)

// Fairness is how far a tenant is from its share, while it waits without a pause. BoundFormula says what is compared.
type Fairness struct {
	Tenant  string
	Weight  int
	Waiting bool          // it waits now; otherwise the figures are of the last time that it did
	Served  time.Duration // W: time of the whole pool charged to it in this span
	Ideal   time.Duration // w x (V - V0): what the order gave to everybody, times its weight; V0 is its F when the span began
	Error   time.Duration // W/w - (V - V0)
	Worst   time.Duration // largest |Error| in this span
	Largest time.Duration // Lmax: the largest cost of one of its Runs
	Drift   time.Duration // C: the most that it was charged over its estimates between two starts, or was owed
	Bound   time.Duration // (Lmax + 2 C)/w
}

// BoundFormula is the bound of start-time fair queueing as Fairness measures it. With exact estimates C is 0.
const BoundFormula = "|W_i/w_i - W_j/w_j| <= (Lmax_i + 2 C_i)/w_i + (Lmax_j + 2 C_j)/w_j, and of each tenant |W_i/w_i - (V - V0_i)| <= (Lmax_i + 2 C_i)/w_i, " +
	"in dominant-share-seconds, over a span in which both wait without a pause and are not passed over for lack of room"

// TenantCounts counts the Runs of a tenant.
type TenantCounts struct {
	Queued int // of every kind
	Ready  int // without a blocker
	Active int
	Used   Vector
}

// Counts is a snapshot of the pool.
type Counts struct {
	TenantCounts
	Capacity Vector // of the runners that are active or draining
	Free     Vector // of the active ones
	Online   int    // active runners
	Runners  int
	Shapes   int // different needs among those who wait
	Virtual  Tag
}
