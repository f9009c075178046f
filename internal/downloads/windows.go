package downloads

import (
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/window"
)

// Window is when a class may start (D-5.2). The zero value is always open.
type Window struct {
	Hours   *window.Window
	Outside float64 // share of the bandwidth outside the hours; 0: starts only inside
}

// The future of windows that the machine is told: as far as estimates see.
const (
	windowHorizon = 8 * 24 * time.Hour
	windowChanges = 64
	windowLook    = time.Hour   // and again after that, so that the horizon moves on
	wallJump      = time.Second // a wall clock that goes so much another way than the monotonic one was set
)

// state is a window as the machine knows it, wall instants turned into monotonic ones (D-8.4).
func (w Window) state(at clock.Mono, wall time.Time) (open, outside bool, changes []clock.Mono) {
	for _, t := range w.Hours.Changes(wall, windowHorizon, windowChanges) {
		changes = append(changes, at.Add(t.Sub(wall)))
	}
	return w.Hours.Open(wall), w.Outside > 0, changes
}

// hours remembers when the machine was last told of the windows.
type hours struct {
	due  clock.Mono
	base time.Time // wall time of the monotonic zero, as it was then
}

// turns reports whether it is time to tell the machine anew: a window changes, the future has grown short, or the wall
// clock was set, which hours follow and waits do not (D-7.3).
func (h *hours) turns(now clock.Mono, wall time.Time) bool {
	off := wall.Add(-time.Duration(now)).Sub(h.base)
	return now >= h.due || off.Abs() >= wallJump
}

// turnWindows tells the machine which classes are open, and when that will change. The caller holds the lock.
func (s *Service) turnWindows(now clock.Mono, wall time.Time) {
	s.hours = hours{due: now.Add(windowLook), base: wall.Add(-time.Duration(now))}
	for _, c := range class.All() {
		w := s.conf.Windows[c]
		if w.Hours == nil {
			s.machine.SetWindow(now, c, true, false, nil)
			continue
		}
		open, outside, changes := w.state(now, wall)
		if len(changes) > 0 {
			s.hours.due = min(s.hours.due, changes[0])
		}
		s.machine.SetWindow(now, c, open, outside, changes)
	}
}
