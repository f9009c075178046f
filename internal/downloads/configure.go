package downloads

import (
	"errors"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/fault"
)

// Settings are what an operator changes while the queue runs (D-9.1).
type Settings struct {
	Policy          session.Policy
	Shared          bool  // no queue: every object is admitted per request, the link split evenly (D-3.3)
	SessionMinBytes int64 // larger objects are sessions; others take the per-request queue (D-2.5)
	Windows         [class.Count]Window
}

// Validate names the first field that cannot work.
func (s Settings) Validate() error {
	if err := s.Policy.Validate(); err != nil {
		return err
	}
	if s.SessionMinBytes < 0 || s.SessionMinBytes > 1<<40 {
		return fault.Invalid("sessionMinBytes", "must be between 0 and %d, is %d", int64(1)<<40, s.SessionMinBytes)
	}
	for c, w := range s.Windows {
		if !(w.Outside >= 0 && w.Outside <= 1) {
			return fault.Invalid("windows."+class.Class(c).String()+".outsideShare", "must be between 0 and 1, is %g", w.Outside)
		}
	}
	return nil
}

// Strategy is the wire name of the strategy (D-3).
func (s Settings) Strategy() string {
	switch {
	case s.Shared:
		return api.StrategyShared
	case s.Policy.Strategy == session.SmallestFirst:
		return api.StrategySmallestFirst
	}
	return api.StrategyOrdered
}

// Admission is how large objects are admitted, in wire words.
func (s Settings) Admission() string {
	if s.Shared {
		return api.AdmissionPerRequest
	}
	return api.AdmissionSessions
}

// Idle is the pause that frees a seat, as it is set now (D-2.8).
func (s *Service) Idle() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conf.Policy.Idle
}

// Configure changes the settings of the running queue (D-9.3). Active sessions keep their seats; whoever is held open
// asks again under the new settings, and leaves for per-request admission if those send it there (D-2.4).
func (s *Service) Configure(next Settings) error {
	if err := next.Validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if err := s.machine.Configure(now, next.Policy); err != nil {
		return err
	}
	s.conf.Settings = next
	s.turnWindows(now, s.clock.Wall())
	for k := range s.held {
		s.wake(k)
	}
	s.small.reroute(s.perRequest)
	return nil
}

// errElsewhere sends a request to the other admission: the settings say now that it belongs there.
var errElsewhere = errors.New("admitted elsewhere now")

// perRequest reports whether a request is admitted by itself. A session that has a seat goes on as one, whatever the
// settings became meanwhile (D-3). The caller holds the lock.
func (s *Service) perRequest(e session.Event) bool {
	return (s.conf.Shared || e.Size <= s.conf.SessionMinBytes) && !s.machine.Active(e.Key)
}
