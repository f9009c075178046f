// Package clock keeps the two kinds of time apart: Mono for everything that waits or orders, wall time for what is
// shown or crosses a restart (D-7.3, D-8.4). Only shells convert between them.
package clock

import "time"

// Mono is an instant of the monotonic clock, in nanoseconds since a fixed instant of this process. It may be
// negative: an arrival from before a restart lies before the process began.
type Mono int64

// Add gives the instant d later.
func (m Mono) Add(d time.Duration) Mono { return m + Mono(d) }

// Sub gives the time from o to m.
func (m Mono) Sub(o Mono) time.Duration { return time.Duration(m - o) }

// Clock supplies both kinds of time.
type Clock interface {
	Now() Mono
	Wall() time.Time
}

// System is the machine's clock.
type System struct{ start time.Time }

// NewSystem starts the monotonic count now.
func NewSystem() System { return System{start: time.Now()} }

// Now is the monotonic time since the process made this clock.
func (s System) Now() Mono { return Mono(time.Since(s.start)) }

// Wall is the machine's wall time in UTC.
func (s System) Wall() time.Time { return time.Now().UTC().Round(0) }
