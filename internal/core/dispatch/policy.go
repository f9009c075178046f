package dispatch

import (
	"time"

	"github.com/roadstead/roadstead/internal/fault"
)

// MaxWeight is the largest weight of a tenant.
const MaxWeight = 10000

// Policy is everything an operator can set about the order of a pool. The zero value is not usable; start from Default.
type Policy struct {
	PriorityStep time.Duration // of waiting that one step of priority is worth inside a tenant
	MaxPriority  int           // priorities are -MaxPriority..MaxPriority: nothing is passed for ever
	Cap          Vector        // most that all Attempts may take at once; 0 of a resource: no bound
}

// Default is the policy of a pool that nobody set up.
func Default() Policy { return Policy{PriorityStep: time.Minute, MaxPriority: 100} }

// Validate names the first field that cannot work.
func (p Policy) Validate() error {
	if p.PriorityStep < 0 || p.PriorityStep > time.Hour {
		return fault.Invalid("priorityStep", "must be between 0 and 1 h, is %s", p.PriorityStep)
	}
	if p.MaxPriority < 0 || p.MaxPriority > 1000 {
		return fault.Invalid("maxPriority", "must be between 0 and 1000, is %d", p.MaxPriority)
	}
	for r, n := range p.Cap {
		if n < 0 {
			return fault.Invalid("cap", "must not be negative, resource %d is %d", r, n)
		}
	}
	return nil
}
