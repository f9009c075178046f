package dispatch

import (
	"github.com/roadstead/roadstead/internal/clock"
)

// Snapshot is what every queued Run could be told at an instant. Nothing changes it, so many may read it.
type Snapshot struct {
	AsOf clock.Mono
}

// Of is the outlook of a Run; false when it was not queued then.
func (s *Snapshot) Of(run string) (Outlook, bool) { return Outlook{}, false }

// Next are the Runs that start first, in their order, at most so many.
func (s *Snapshot) Next(most int) []string { return nil }

// Forecast plays the pool forward on a copy. It notes what each Run is told first, and learns from when they start.
func (m *Machine) Forecast(now clock.Mono, l Limits) *Snapshot { return &Snapshot{AsOf: now} }

// Preview is the outlook of a Run that was not submitted, and why it would not start at once; nothing changes.
func (m *Machine) Preview(now clock.Mono, r Run, l Limits) (Outlook, []Why, error) {
	return Outlook{}, nil, nil
}
