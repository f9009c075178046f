package dispatch

import (
	"math"
	"slices"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

// calibration learns where starts really fall around the points they were told, in units of the width of each: it keeps
// the last ones and reads the quantiles off them. The zero value has seen nothing.
type calibration struct {
	last   []float64 // ring
	sorted []float64 // the same, in order
	at     int
}

const (
	remembered = 512
	enough     = 20    // fewer say less than the theory
	censored   = 0.025 // what the last starts don't show: those that are late have not started yet
	bands      = 8     // calibrations, by how far ahead a start lies: near ones err by a turn of a slot, far ones by what arrives
)

// spread is how far around its point a start lies, in widths.
type spread struct{ p10, p50, p90 float64 }

// theory is what to expect of a queue that nothing else joins.
var theory = spread{-0.8, 0, 0.8}

// learn takes one start that was off its point by so many widths.
func (c *calibration) learn(off float64) {
	if len(c.last) < remembered {
		c.last = append(c.last, off)
	} else {
		old, _ := slices.BinarySearch(c.sorted, c.last[c.at])
		c.sorted = slices.Delete(c.sorted, old, old+1)
		c.last[c.at] = off
		c.at = (c.at + 1) % remembered
	}
	i, _ := slices.BinarySearch(c.sorted, off)
	c.sorted = slices.Insert(c.sorted, i, off)
}

// spread is what was learnt.
func (c *calibration) spread() spread {
	if len(c.sorted) < enough {
		return theory
	}
	return spread{c.quantile(0.10 - censored), c.quantile(0.50), c.quantile(0.90 + censored)}
}

// quantile is the value below which the next one falls with the given chance, if it is of the same kind as the last.
func (c *calibration) quantile(p float64) float64 {
	at := p*float64(len(c.sorted)+1) - 1
	i := min(max(int(at), 0), len(c.sorted)-1)
	j := min(i+1, len(c.sorted)-1)
	return c.sorted[i] + min(max(at-float64(i), 0), 1)*(c.sorted[j]-c.sorted[i])
}

// width is the unit in which a start is off: the sum of many Attempts that each take longer or shorter than expected
// spreads with the root of their number, and what arrives meanwhile with the time.
func width(wait, mean time.Duration, slots int) time.Duration {
	turn := mean / time.Duration(max(slots, 1))
	return time.Duration(math.Sqrt(float64(turn)*float64(wait+turn))) + wait/20 + time.Millisecond
}

// band is which calibration a start so far ahead belongs to.
func band(wait, mean time.Duration, slots int) uint8 {
	turn := max(mean/time.Duration(max(slots, 1)), time.Millisecond)
	b := 0
	for n := wait / turn; n > 0 && b < bands-1; n /= 4 {
		b++
	}
	return uint8(b)
}

// promise notes what a Run is told first, so that its start can be learnt from.
func (r *record) promise(start clock.Mono, width time.Duration, band uint8) {
	if !r.promised {
		r.promised, r.told, r.width, r.band = true, start, width, band
	}
}

// learn compares the starts of the last Decide, less those that were undone, with what their Runs had been told.
func (m *Machine) learn() {
	for _, h := range m.fresh {
		if r := &m.runs[h]; r.state == active && r.promised {
			m.learnt[r.band].learn(float64(r.began.Sub(r.told)) / float64(r.width))
			r.promised = false
		}
	}
	m.fresh = m.fresh[:0]
}
