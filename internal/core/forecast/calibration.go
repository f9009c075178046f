package forecast

import "slices"

// Calibration learns where starts really fall around the points they were announced at, in units of the width that was
// announced with each: it keeps the last ones and reads the quantiles off them. What is read is also held to account:
// when too many starts come after the p90 they were told, it is read further out until one in ten does, whatever the
// load is like and however it changes, and p10 alike. The zero value has seen nothing.
type Calibration struct {
	last   [remembered]float64 // ring
	sorted []float64           // the same, in order
	at     int
	low    float64 // how far below its own level p10 is read
	high   float64 // how far above its own level p90 is read
}

const (
	remembered = 256
	enough     = 40 // fewer say less than the theory

	outside = 0.10  // of the starts, before p10 and after p90 each
	pace    = 0.005 // how far a miss moves its level; ten starts that don't miss move it back
	beyond  = 0.30  // the furthest a level moves outwards,
	within  = 0.40  // and inwards
	reach   = 4.0   // how steeply levels beyond the last start go on, in spreads
)

// Spread is how far around a point a start lies, in widths.
type Spread struct{ Early, P10, P50, P90, Late float64 }

// theory is what to expect of equal files: a point made with the best rate of the link is early rather than late. What
// is not learnt yet is told with room: the quantiles lie nearly at the ends of the interval. The unsure part of the
// width, from 0 to 1, is that of sessions that may still come and go first; in a crowd, of which the first are told their
// starts while most are on their way, that are several times as many as came.
func theory(unsure float64, crowd bool) Spread {
	more := 0.3
	if crowd {
		more = 3
	}
	early, late := -0.3*unsure, more*unsure
	return Spread{Early: -0.40 + early, P10: -0.35 + early, P50: 0, P90: 0.45 + late, Late: 0.55 + late}
}

// Learn takes one start that was off its point by so many widths.
func (c *Calibration) Learn(off float64) {
	if len(c.sorted) == remembered {
		old, _ := slices.BinarySearch(c.sorted, c.last[c.at])
		c.sorted = slices.Delete(c.sorted, old, old+1)
	}
	c.last[c.at] = off
	c.at = (c.at + 1) % remembered
	i, _ := slices.BinarySearch(c.sorted, off)
	c.sorted = slices.Insert(c.sorted, i, off)
}

// Before tells whether a start came before the p10 it was told.
func (c *Calibration) Before(missed bool) { c.low = moved(c.low, missed) }

// After tells whether a start came after the p90 it was told, or did not come by then: who waits past it has missed it
// already, and counts before those do who start late at last.
func (c *Calibration) After(missed bool) { c.high = moved(c.high, missed) }

func moved(level float64, missed bool) float64 {
	level -= pace * outside
	if missed {
		level += pace
	}
	return min(max(level, -within), beyond)
}

// Spread is what was learnt. The interval is never narrower than the theory's: it widens when starts miss it, and comes
// back when they no longer do. Nor are the quantiles of a blind one, that is about a queue of which no start was seen yet.
func (c *Calibration) Spread(unsure float64, blind bool) Spread {
	s := theory(unsure, blind)
	if len(c.sorted) < enough {
		return s
	}
	p10, p90 := c.quantile(outside-c.low), c.quantile(1-outside+c.high)
	if blind {
		p10, p90 = min(p10, s.P10), max(p90, s.P90)
	}
	return Spread{
		Early: min(s.Early, c.quantile(0.03), p10), P10: p10, P50: c.quantile(0.50), P90: p90,
		Late: max(s.Late, c.quantile(0.97), p90),
	}
}

// quantile is the value below which the next one falls with the given chance, if it is of the same kind as the last.
// Levels beyond 0 and 1 go on outwards.
func (c *Calibration) quantile(p float64) float64 {
	n := len(c.sorted)
	at := p*float64(n+1) - 1
	first, middle, last := c.sorted[0], c.sorted[n/2], c.sorted[n-1]
	switch {
	case at < 0:
		return first + reach*at/float64(n)*(middle-first)
	case at >= float64(n-1):
		return last + reach*(at-float64(n-1))/float64(n)*(last-middle)
	}
	i := int(at)
	return c.sorted[i] + (at-float64(i))*(c.sorted[i+1]-c.sorted[i])
}

// Copy is a calibration of its own that knows the same.
func (c *Calibration) Copy() Calibration {
	d := *c
	d.sorted = slices.Clone(c.sorted)
	return d
}
