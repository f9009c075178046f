// Package forecast turns bytes ahead into time: the rate of the link as measured, and seats played forward at the
// rate the governor would split among them (D-6.1).
package forecast

import (
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

const meterSeconds = 60

// Meter measures a link: the most bytes it carried in one second of the last minute. A mean would fall whenever the
// link idles, and estimates made with it would keep clients away and the link idle.
type Meter struct {
	second int64 // the second being filled
	bytes  [meterSeconds + 1]int64
}

// Add counts bytes carried up to now.
func (m *Meter) Add(now clock.Mono, n int64) {
	m.roll(now)
	m.bytes[slot(m.second)] += n
}

// Peak is the best whole second of the last minute, in bytes per second; 0 when there is none.
func (m *Meter) Peak(now clock.Mono) int64 {
	m.roll(now)
	best := int64(0)
	for i, n := range m.bytes {
		if int64(i) != slot(m.second) {
			best = max(best, n)
		}
	}
	return best
}

func (m *Meter) roll(now clock.Mono) {
	s := int64(now) / int64(time.Second)
	for d := min(s-m.second, meterSeconds+1); d > 0; d-- {
		m.bytes[slot(s-d+1)] = 0
	}
	m.second = max(m.second, s)
}

func slot(second int64) int64 {
	const n = meterSeconds + 1
	return (second%n + n) % n
}
