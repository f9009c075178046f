package dispatch

import (
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

// Machine is the queue of one pool, its tenants and its runners. Calls must be serialised by the caller.
type Machine struct {
	policy Policy
}

// tags are a tenant's and the pool's virtual times before a decision.
type tags struct{ finish, virtual Tag }

// New makes an empty pool.
func New(p Policy) (*Machine, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return &Machine{policy: p}, nil
}

// SetPolicy changes the policy. Runs that have their place keep it.
func (m *Machine) SetPolicy(now clock.Mono, p Policy) error { return p.Validate() }

// SetTenant makes a tenant known, or changes its weight and cap. A tenant that was never set has weight 1 and no cap.
func (m *Machine) SetTenant(now clock.Mono, t Tenant) error { return nil }

// SetRunner adds a runner or changes it; what it runs goes on. Runs that never fitted are looked at again.
func (m *Machine) SetRunner(now clock.Mono, r Runner) error { return nil }

// DropRunner forgets a runner and says which Runs it had, in the order of their ids. They stay active, on no runner,
// until the caller ends each with Finish or Requeue.
func (m *Machine) DropRunner(now clock.Mono, id string) (runs []string) { return nil }

// Check says what is wrong with a Run that somebody wants to submit: InvalidInput with the field.
func (m *Machine) Check(r Run) error { return nil }

// Fits reports whether a Run could ever start here as the runners and caps are now; false also while none is known.
func (m *Machine) Fits(r Run) bool { return false }

// Submit takes a Run into the queue, new or restored. InvalidInput names a field, AlreadyExists a Run that is known.
// A Run that never fits is taken: Why says so, and it is looked at again when runners or caps change.
func (m *Machine) Submit(now clock.Mono, r Run) error { return nil }

// Block sets blockers of a queued Run; false when no such Run is queued.
func (m *Machine) Block(now clock.Mono, id string, b Blocker) bool { return false }

// Unblock clears blockers of a queued Run; false when no such Run is queued.
func (m *Machine) Unblock(now clock.Mono, id string, b Blocker) bool { return false }

// SetNotBefore keeps a queued Run until an instant, instead of the one it had; in the past: no longer.
func (m *Machine) SetNotBefore(now clock.Mono, id string, until clock.Mono) bool { return false }

// SetQuota keeps a queued Run until an external limit has something for it again, instead of the instant it had.
func (m *Machine) SetQuota(now clock.Mono, id string, until clock.Mono) bool { return false }

// Decide starts at most so many Runs, the fairest first. The slice is valid until the next call of Decide.
func (m *Machine) Decide(now clock.Mono, most int) []Decision { return nil }

// Undo takes a decision back that could not be committed: the Run is queued where it was, and V and F are what they were.
// Several are undone in the reverse order of their decisions. False when the Attempt is not that decision's any more.
func (m *Machine) Undo(now clock.Mono, d Decision) bool { return false }

// Started restarts the count of an Attempt's timeout: its process began only now.
func (m *Machine) Started(now clock.Mono, id string) bool { return false }

// Renew charges an Attempt that runs longer than it was charged for: elapsed is all it took so far.
func (m *Machine) Renew(now clock.Mono, id string, elapsed time.Duration) bool { return false }

// Finish ends an Attempt and its Run: the tenant is charged what it took instead of what was expected.
func (m *Machine) Finish(now clock.Mono, id string, actual time.Duration) bool { return false }

// Requeue ends an Attempt whose Run is tried again, not before an instant (a past one: at once). The Run keeps its place.
func (m *Machine) Requeue(now clock.Mono, id string, actual time.Duration, notBefore clock.Mono) bool {
	return false
}

// Cancel takes a queued Run out; false when none is queued. An active Run ends by Finish, when its process is gone.
func (m *Machine) Cancel(now clock.Mono, id string) bool { return false }

// Next is when the next Run loses its last timed blocker: Decide has something new to look at then.
func (m *Machine) Next() (at clock.Mono, ok bool) { return 0, false }

// Position is when a queued or active Run could first have started, for its row; false while it never could.
func (m *Machine) Position(id string) (eligibleAt clock.Mono, ok bool) { return 0, false }

// Why says why a queued Run does not start, the most telling reason first; nil when it is not queued.
func (m *Machine) Why(now clock.Mono, id string) []Why { return nil }

// Counts is a snapshot of the pool.
func (m *Machine) Counts() Counts { return Counts{} }

// TenantCounts counts the Runs of one tenant.
func (m *Machine) TenantCounts(tenant string) TenantCounts { return TenantCounts{} }

// Fairness is how far each tenant is from its share, in the order of their ids.
func (m *Machine) Fairness() []Fairness { return nil }

// Tags are the virtual times, for rows.
func (m *Machine) Tags() Tags { return Tags{} }

// SetTags takes flushed virtual times up, before any Run is submitted or resumed.
func (m *Machine) SetTags(t Tags) {}

// Resume takes an Attempt up that runs, as its row has it. A runner that is not known makes it one of no runner.
func (m *Machine) Resume(now clock.Mono, a Attempt) error { return nil }
