package forecast

import (
	"math"
	"time"
)

// Fluid plays kinds of sessions forward as liquids that share a link by weight, where those who have not come yet can't
// be played one by one: how much of each kind is served when. The zero value knows of nothing.
type Fluid struct {
	corners [4*Kinds + 4]corner // of the curves; the first lies at zero
	n       int
}

type corner struct {
	at     float64 // seconds
	served [Kinds]float64
}

// Liquid is one kind: bytes that wait, bytes per second that flow in, and its weight against the others.
type Liquid struct{ Waiting, Inflow, Weight float64 }

// Play works the curves out for a link of rate bytes per second, on which the inflow ends after lasts.
func (f *Fluid) Play(rate float64, kinds [Kinds]Liquid, lasts time.Duration) {
	f.corners[0], f.n = corner{}, 1
	end := lasts.Seconds()
	for f.n < len(f.corners) {
		c := f.corners[f.n-1]
		share, inflow := split(rate, &kinds, c.at < end)
		step := math.Inf(1)
		if inflow {
			step = end - c.at
		}
		for k, l := range kinds {
			if drains := share[k] - l.Inflow; l.Waiting > 0 && drains > 0 {
				step = min(step, l.Waiting/drains)
			}
		}
		if math.IsInf(step, 1) {
			return
		}
		c.at += step
		for k := range kinds {
			l := &kinds[k]
			c.served[k] += share[k] * step
			if l.Waiting += (l.Inflow - share[k]) * step; l.Waiting < 1 { // less than a byte is rounding
				l.Waiting = 0
			}
		}
		f.corners[f.n] = c
		f.n++
	}
}

// split shares the rate out by weight; a kind of which nothing waits takes no more than flows in. Inflow is taken away
// for good when it has ended.
func split(rate float64, kinds *[Kinds]Liquid, flows bool) (share [Kinds]float64, inflow bool) {
	var open [Kinds]bool
	for k := range kinds {
		l := &kinds[k]
		if !flows {
			l.Inflow = 0
		}
		inflow = inflow || l.Inflow > 0
		open[k] = l.Waiting > 0 || l.Inflow > 0
	}
	for again := true; again; {
		again = false
		weights := 0.0
		for k, l := range kinds {
			if open[k] {
				weights += l.Weight
			}
		}
		for k, l := range kinds {
			if !open[k] {
				continue
			}
			share[k] = rate * l.Weight / weights
			if l.Waiting <= 0 && l.Inflow <= share[k] {
				share[k], open[k], again = l.Inflow, false, true
				rate -= l.Inflow
				break // the others have more now
			}
		}
	}
	return share, inflow
}

// Served is how many bytes of a kind are served by t.
func (f *Fluid) Served(kind int, t time.Duration) float64 {
	s := t.Seconds()
	for i := 1; i < f.n; i++ {
		if a, b := &f.corners[i-1], &f.corners[i]; s < b.at {
			return a.served[kind] + (b.served[kind]-a.served[kind])*(s-a.at)/(b.at-a.at)
		}
	}
	return f.corners[max(f.n-1, 0)].served[kind]
}

// When is the instant by which so many bytes of a kind are served, the end of the curve if they never are.
func (f *Fluid) When(kind int, served float64) time.Duration {
	for i := 1; i < f.n; i++ {
		if a, b := &f.corners[i-1], &f.corners[i]; served <= b.served[kind] {
			if b.served[kind] <= a.served[kind] {
				return seconds(a.at)
			}
			return seconds(a.at + (b.at-a.at)*(served-a.served[kind])/(b.served[kind]-a.served[kind]))
		}
	}
	return seconds(f.corners[max(f.n-1, 0)].at)
}
