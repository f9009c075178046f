package downloads

import (
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/forerun"
)

// Snapshot is the queue as it stands, with at most so many of those who wait. It holds the queue up for as long as
// copying them takes: some 5 ms for 20,000.
func (s *Service) Snapshot(most int) forerun.Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := forerun.Queue{Now: s.clock.Now(), Rate: s.machine.Counts().Rate}
	q.Seated, q.Waiting, q.More = s.machine.Snapshot(most)
	return q
}

// Rules are the settings as a forward run from an instant needs them; wall is the wall time of that instant.
func (s Settings) Rules(now clock.Mono, wall time.Time) forerun.Rules {
	r := forerun.Rules{Policy: s.Policy, Shared: s.Shared}
	for _, c := range class.All() {
		if w := s.Windows[c]; w.Hours != nil {
			r.Windows[c] = func(at clock.Mono) (open, outside bool, changes []clock.Mono) {
				return w.state(at, wall.Add(at.Sub(now)))
			}
		}
	}
	return r
}
