package forecast

import "slices"

// Calibration learns where starts really fall around the points they were announced at, in units of the width that was
// announced with each: it keeps the last ones and reads the quantiles off them, so that the stated part of the next
// starts lies below each quantile, whatever the load is like. The zero value has seen nothing.
type Calibration struct {
	last   [remembered]float64 // ring
	sorted []float64           // the same, in order
	at     int
}

const (
	remembered = 256
	enough     = 20 // fewer say less than the theory

	// censored makes up for what the last starts don't show: those that are late have not started yet.
	censored = 0.02
)

// Spread is how far around a point a start lies, in widths.
type Spread struct{ Early, P10, P50, P90, Late float64 }

// theory is what to expect of equal files: a point made with the best rate of the link is early rather than late.
var theory = Spread{Early: -0.40, P10: -0.05, P50: 0, P90: 0.05, Late: 0.55}

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

// Spread is what was learnt. The interval is never narrower than the theory's: it widens when starts miss it, and comes
// back when they no longer do.
func (c *Calibration) Spread() Spread {
	if len(c.sorted) < enough {
		return theory
	}
	return Spread{
		Early: min(c.quantile(0.03), theory.Early), P10: c.quantile(0.10 - censored), P50: c.quantile(0.50),
		P90: c.quantile(0.90 + censored), Late: max(c.quantile(0.97), theory.Late),
	}
}

// quantile is the value below which the next one falls with the given chance, if it is of the same kind as the last.
func (c *Calibration) quantile(p float64) float64 {
	n := len(c.sorted)
	at := p*float64(n+1) - 1
	i := min(max(int(at), 0), n-1)
	j := min(i+1, n-1)
	part := min(max(at-float64(i), 0), 1)
	return c.sorted[i] + part*(c.sorted[j]-c.sorted[i])
}

// Copy is a calibration of its own that knows the same.
func (c *Calibration) Copy() Calibration {
	d := *c
	d.sorted = slices.Clone(c.sorted)
	return d
}
