// Package forecast turns bytes ahead into time: the rate of the link as measured, and seats played forward at the
// rate the governor would split among them (D-6.1).
package forecast

import (
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

const (
	meterSpan  = 60 // seconds a peak lives
	meterParts = 4  // slots of a second
	meterSlots = (meterSpan+1)*meterParts + 1
)

// Meter measures a link: the most bytes it carried in one second of the last minute. A mean would fall whenever the
// link idles, and estimates made with it would keep clients away and the link idle. Seconds begin at every quarter:
// were they those of the clock, the only one known of a link that has just begun to carry would be the part of a
// second since it began.
type Meter struct {
	slot  int64 // the one being filled
	bytes [meterSlots]int64
}

// Add counts bytes carried up to now.
func (m *Meter) Add(now clock.Mono, n int64) {
	m.roll(now)
	m.bytes[index(m.slot)] += n
}

// Peak is the best whole second that ended in the last minute, in bytes per second; 0 when there is none.
func (m *Meter) Peak(now clock.Mono) int64 {
	m.roll(now)
	best, second, first := int64(0), int64(0), 0
	var last [meterParts]int64 // the slots of the present second
	at := int(index(m.slot))
	for range meterSlots - 1 {
		if at++; at == meterSlots { // the oldest comes after the one being filled
			at = 0
		}
		second += m.bytes[at] - last[first]
		last[first] = m.bytes[at]
		first = (first + 1) % meterParts
		best = max(best, second)
	}
	return best
}

// Last is the last whole second, in bytes per second.
func (m *Meter) Last(now clock.Mono) (second int64) {
	m.roll(now)
	for d := int64(1); d <= meterParts; d++ {
		second += m.bytes[index(m.slot-d)]
	}
	return second
}

func (m *Meter) roll(now clock.Mono) {
	s := int64(now) / int64(time.Second/meterParts)
	for d := min(s-m.slot, meterSlots); d > 0; d-- {
		m.bytes[index(s-d+1)] = 0
	}
	m.slot = max(m.slot, s)
}

func index(slot int64) int64 { return (slot%meterSlots + meterSlots) % meterSlots }
