package session

import (
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/forecast"
)

// width is the unit of a start's uncertainty: one seat turn, or a fifth of the wait if that is more.
func (p *plan) width(wait time.Duration) time.Duration { return max(p.turn, wait/5, time.Millisecond) }

// around sets the interval and the quantiles around the point of an estimate, as wide as the last starts say (D-6.3).
func (m *Machine) around(now clock.Mono, e *Estimate, width time.Duration) {
	s := m.learnt[e.Class].Spread()
	at := func(widths float64) clock.Mono { return max(now, e.Start.Add(scaled(width, widths))) }
	e.Earliest, e.P10, e.P50, e.P90, e.Latest = at(s.Early), at(s.P10), at(s.P50), at(s.P90), at(s.Late)
}

func scaled(width time.Duration, widths float64) time.Duration {
	return time.Duration(float64(width) * widths)
}

// keep notes what a client is told first, to be scored.
func (m *Machine) keep(r *record, e Estimate, width time.Duration) {
	thousandths := func(at clock.Mono) int16 {
		return int16(min(max(1000*float64(at.Sub(e.Start))/float64(width), -1<<15), 1<<15-1))
	}
	r.promise = promise{
		point: max(milliseconds(e.Start.Sub(r.arrival())), 1), width: max(milliseconds(width), 1),
		early: milliseconds(e.Start.Sub(e.Earliest)), late: milliseconds(e.Latest.Sub(e.Start)),
		p10: thousandths(e.P10), p90: thousandths(e.P90),
	}
}

// score tells of a start beside what was promised, and learns from it.
func (m *Machine) score(e *Effect, r *record) {
	if r.promise.point == 0 {
		return
	}
	width := time.Duration(r.promise.width) * time.Millisecond
	e.Promised = true
	e.Point = r.arrival().Add(time.Duration(r.promise.point) * time.Millisecond)
	at := func(thousandths int16) clock.Mono { return e.Point.Add(scaled(width, float64(thousandths)/1000)) }
	e.P10, e.P90 = at(r.promise.p10), at(r.promise.p90)
	e.Earliest = e.Point.Add(-time.Duration(r.promise.early) * time.Millisecond)
	e.Latest = e.Point.Add(time.Duration(r.promise.late) * time.Millisecond)
	m.learnt[r.class].Learn(float64(e.At.Sub(e.Point)) / float64(width))
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
