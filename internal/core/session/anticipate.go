package session

import (
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/forecast"
)

// anticipation is what the plan can't know of those who wait, taken from what was seen: sessions of other classes that
// are still to come and will go first, and the part of the link that silent seats waste. It moves what clients are told;
// who is called, and when they are to ask again, goes by the plan, so that a link that idled is not kept idle.
type anticipation struct {
	waits   bool                        // somebody does
	since   clock.Mono                  // when that began
	started [class.Count]forecast.Total // ever
	inflow  forecast.Inflow
	use     forecast.Use
	part    float64        // of the link that is used
	frozen  forecast.Fluid // the classes if nobody came
	coming  forecast.Fluid // if they come as they came
}

// blind reports whether a wait is so long beside the age of the queue that no start of its like was seen: a crowd came.
func (a *anticipation) blind(now clock.Mono, wait time.Duration) bool {
	return wait > 2*now.Sub(a.since)
}

// likely is how much of what may still come is expected to: streams end.
const likely = 2.0 / 3

// foresee looks at what came and what was carried, once for each plan.
func (m *Machine) foresee(now clock.Mono) {
	a := &m.plan.ahead
	if waits := m.queue.Len() > 0; waits != a.waits {
		a.waits, a.since = waits, now
	}
	all, wanted := a.started, false
	for c := range all {
		n := &m.counts[c]
		all[c].Sessions += int64(n.Waiting)
		all[c].Bytes += n.WaitingBytes
		wanted = wanted || n.Waiting > 0 && m.admits(class.Class(c))
	}
	a.inflow.See(now, all)
	a.use.See(now, m.meter.Total(), m.plan.rate, wanted)
	a.part = a.use.Part(m.plan.rate)
	var kinds [forecast.Kinds]forecast.Liquid
	for c := range kinds {
		if !m.admits(class.Class(c)) {
			continue
		}
		rate, mean := a.inflow.Rate(c)
		if n := &m.counts[c]; n.Waiting > 0 {
			mean = float64(n.WaitingBytes) / float64(n.Waiting)
			kinds[c].Waiting = float64(n.WaitingBytes)
		}
		kinds[c].Inflow, kinds[c].Weight = rate, float64(m.policy.Weights[c])*max(mean, 1)
	}
	a.coming.Play(float64(m.plan.rate), kinds, a.inflow.Lasts())
	a.frozen.Play(float64(m.plan.rate), kinds, 0)
}

// overtaken is how much later a session of a class that would start in so long starts if they come as they came.
func (a *anticipation) overtaken(c uint8, start time.Duration) time.Duration {
	served := a.frozen.Served(int(c), start)
	if served <= 0 {
		return 0
	}
	return max(0, a.coming.When(int(c), served)-a.frozen.When(int(c), served))
}

// expect is how long a session of a class waits that would start in so long, and how much of that, at most, is for
// those who may still come.
func (a *anticipation) expect(c uint8, start time.Duration) (wait, late time.Duration) {
	late = a.overtaken(c, start)
	return time.Duration(float64(start)/a.part + likely*float64(late)), late
}
