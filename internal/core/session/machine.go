package session

import (
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

// Machine is the queue and its seats. Calls must be serialised by the caller.
type Machine struct{}

// New makes an empty machine. The seed feeds the spread of check times and nothing else.
func New(p Policy, seed uint64) (*Machine, error) { panic("in the making") }

// Settle keeps every seat free until the instant, so that the clients of a restarted server come back and start in
// arrival order (D-2.12).
func (m *Machine) Settle(until clock.Mono) { panic("in the making") }

// Apply takes one event. The returned slice is valid until the next call.
func (m *Machine) Apply(now clock.Mono, e Event) []Effect { panic("in the making") }

// Tick does what is due and offers free seats; next is how long to wait at least. The slice is valid until the next call.
func (m *Machine) Tick(now clock.Mono) (effects []Effect, next time.Duration) { panic("in the making") }

// Estimate tells a waiting session its place, its start and when to ask again.
func (m *Machine) Estimate(now clock.Mono, k Key) (Estimate, bool) { panic("in the making") }

// Counts is a snapshot of the machine, in O(classes).
func (m *Machine) Counts() Counts { panic("in the making") }
