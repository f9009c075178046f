// Package forecast turns bytes ahead into time: the rate of the link as measured, and seats played forward at the
// rate the governor would split among them (D-6.1).
package forecast

import (
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

const (
	meterParts = 4                 // slots in a second
	meterSlots = 60*meterParts + 1 // a minute, and the one being filled
	meterLong  = 4 * meterParts    // what a rate is read from
	meterLeast = meterParts        // less says nothing
)

// Meter measures a link: the best it carried in the last minute, over four seconds on end or as long as it has carried
// at all. A mean of the whole minute would fall whenever the link idles, and estimates made with it would keep clients
// away and the link idle. A single second says too much: sockets and a busy machine report bytes in lumps, up to a
// second's worth late, and the best of many seconds is the one with a lump in it.
type Meter struct {
	slot  int64 // the one being filled
	bytes [meterSlots]int64
	total int64
}

// Add counts bytes carried up to now.
func (m *Meter) Add(now clock.Mono, n int64) {
	m.roll(now)
	m.bytes[index(m.slot)] += n
	m.total += n
}

// Total is all that was ever carried, in bytes.
func (m *Meter) Total() int64 { return m.total }

// Peak is the best rate of the last minute in bytes per second; 0 while the link has not carried for a second.
func (m *Meter) Peak(now clock.Mono) int64 {
	m.roll(now)
	best, run, silent := int64(0), int64(0), int64(0) // run and silent are lengths: of carrying so far, of silence after it
	for d := int64(meterSlots - 1); d >= 0; d-- {
		if d > 0 && m.bytes[index(m.slot-d)] > 0 {
			run, silent = run+silent+1, 0
			continue
		}
		if run > 0 {
			silent++
		}
		if run > 0 && (silent >= meterLeast || d == 0) { // a second of silence ends it, and so does the present
			best = max(best, m.bestOf(m.slot-d-silent, run))
			run, silent = 0, 0
		}
	}
	return best
}

// bestOf is the best rate within the n slots up to last in which the link carried. The first of them is left out where
// enough are left: it began somewhere inside, and holds what the sockets swallowed.
func (m *Meter) bestOf(last, n int64) (best int64) {
	if n > meterLeast {
		n--
	}
	if n < meterLeast {
		return 0
	}
	long, sum := min(n, meterLong), int64(0)
	for i := last - n + 1; i <= last; i++ {
		sum += m.bytes[index(i)]
		if i-(last-n) > long {
			sum -= m.bytes[index(i-long)]
		}
		if i-(last-n) >= long {
			best = max(best, sum)
		}
	}
	return best * meterParts / long
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
