package session

import (
	"math"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/forecast"
)

// promise is the first start announced with a place, to be scored when the session starts (D-6.3): a point, and what was
// told around it in thousandths of a width.
type promise struct {
	point  uint32 // ms after arrival; 0 when none was announced
	width  uint32 // ms
	early  int16
	p10    int16
	p90    int16
	late   int16
	missed bool // its p90 went by, and that was learnt
	blind  bool // its quantiles are not what was learnt
}

// thousandths are widths in the unit of promises; what is told is rounded to it, so that it is what is scored.
func thousandths(widths float64) int16 {
	return int16(min(max(math.Round(1000*widths), math.MinInt16), math.MaxInt16))
}

func scaled(width time.Duration, thousandths int16) time.Duration {
	return time.Duration(float64(width) * float64(thousandths) / 1000)
}

// foretell sets the point of an estimate and the quantiles and the interval around it, as wide as the last starts say
// (D-6.3), for a session that would start at the soonest instant, of which nothing passes on the link before its window
// opens.
func (m *Machine) foretell(now clock.Mono, e *Estimate, rank uint8, opens, soonest clock.Mono) (width time.Duration) {
	wait, late := m.plan.ahead.expect(rank, soonest.Sub(opens))
	e.Start = opens.Add(wait)
	width = max(m.plan.turn, e.Start.Sub(now)/5, late, time.Millisecond)
	s := m.learnt[e.Class].Spread(float64(late)/float64(width), m.plan.ahead.blind(now, e.Start.Sub(now)))
	at := func(widths float64) clock.Mono { return max(now, e.Start.Add(scaled(width, thousandths(widths)))) }
	e.Earliest, e.P10, e.P50, e.P90, e.Latest = at(s.Early), at(s.P10), at(s.P50), at(s.P90), at(s.Late)
	return width
}

// keep notes what a client is told first, to be scored.
func (m *Machine) keep(now clock.Mono, r *record, e *Estimate, width time.Duration) {
	at := func(t clock.Mono) int16 { return thousandths(float64(t.Sub(e.Start)) / float64(width)) }
	r.promise = promise{
		point: max(milliseconds(e.Start.Sub(r.arrival())), 1), width: max(milliseconds(width), 1),
		early: at(e.Earliest), p10: at(e.P10), p90: at(e.P90), late: at(e.Latest),
		blind: m.plan.ahead.blind(now, e.Start.Sub(now)),
	}
}

func (r *record) point() clock.Mono {
	return r.arrival().Add(time.Duration(r.promise.point) * time.Millisecond)
}

// told is the instant so far from the point.
func (r *record) told(thousandths int16) clock.Mono {
	return r.point().Add(scaled(time.Duration(r.promise.width)*time.Millisecond, thousandths))
}

// overdue learns from a session that still waits past the p90 it was told: when it starts is known too late.
func (m *Machine) overdue(now clock.Mono, r *record) {
	if p := &r.promise; !p.blind && !p.missed && now > r.told(p.p90) {
		p.missed = true
		m.learnt[r.class].After(true)
	}
}

// score tells of a start beside what was promised, and learns from it. A wait is scored once; who waits anew after a
// pause is promised anew.
func (m *Machine) score(e *Effect, r *record) {
	m.plan.ahead.started[r.class].Sessions++
	m.plan.ahead.started[r.class].Bytes += r.left
	p := r.promise
	if p.point == 0 {
		return
	}
	e.Promised, e.Point = true, r.point()
	e.Earliest, e.P10, e.P90, e.Latest = r.told(p.early), r.told(p.p10), r.told(p.p90), r.told(p.late)
	c := &m.learnt[r.class]
	c.Learn(float64(e.At.Sub(e.Point)) / float64(time.Duration(p.width)*time.Millisecond))
	if !p.blind {
		c.Before(e.At < e.P10)
	}
	if !p.blind && !p.missed {
		c.After(e.At > e.P90)
	}
	r.promise = promise{}
}

func milliseconds(d time.Duration) uint32 { return uint32(min(max(d.Milliseconds(), 0), 1<<32-1)) }

// Learnt is what the machine knows of its own errors; Teach gives it to another, after a restart.
func (m *Machine) Learnt() (c [class.Count]forecast.Calibration) {
	for i := range c {
		c[i] = m.learnt[i].Copy()
	}
	return c
}

// Teach takes what another machine learnt.
func (m *Machine) Teach(c [class.Count]forecast.Calibration) {
	for i := range c {
		m.learnt[i] = c[i].Copy()
	}
}
