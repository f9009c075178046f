package dispatch

import (
	"slices"
	"time"
)

// copy is a machine that stands where this one stands, to be played forward. It shares what playing doesn't change: the
// ids, the maps and what was learnt. So nothing is submitted to it, and its Runs end by depart.
func (m *Machine) copy() *Machine {
	for i := range m.shapes {
		if m.shapes[i].refs > 0 {
			m.matching(&m.shapes[i])
		}
	}
	for i := range m.kinds {
		if m.kinds[i].stale {
			m.plant(&m.kinds[i])
		}
	}
	c := *m
	c.forward, c.fresh, c.out, c.picks, c.asides, c.fits, c.ends = true, nil, nil, nil, nil, nil, nil
	c.holds = slices.Clone(m.holds)
	c.runs, c.timers, c.order = slices.Clone(m.runs), slices.Clone(m.timers), slices.Clone(m.order)
	c.freeLanes = slices.Clone(m.freeLanes)
	c.tenants, c.lanes, c.shapes = slices.Clone(m.tenants), slices.Clone(m.lanes), slices.Clone(m.shapes)
	c.runners, c.kinds = slices.Clone(m.runners), slices.Clone(m.kinds)
	var b block
	for i := range c.tenants {
		t := &c.tenants[i]
		t.lanes, t.overflow = b.clone(t.lanes), b.clone(t.overflow)
	}
	for i := range c.lanes {
		c.lanes[i].runs = b.clone(c.lanes[i].runs)
	}
	for i := range c.shapes {
		c.shapes[i].lanes = b.clone(c.shapes[i].lanes)
	}
	for i := range c.runners {
		c.runners[i].runs = b.clone(c.runners[i].runs)
	}
	for i := range c.kinds {
		c.kinds[i].tree = slices.Clone(c.kinds[i].tree)
	}
	return &c
}

// block copies many short slices into few long ones.
type block struct{ room []uint32 }

func (b *block) clone(s []uint32) []uint32 {
	if len(s) == 0 {
		return nil
	}
	if cap(b.room)-len(b.room) < len(s) {
		b.room = make([]uint32, 0, max(4096, len(s)))
	}
	from := len(b.room)
	b.room = append(b.room, s...)
	return b.room[from:len(b.room):len(b.room)]
}

// depart ends an Attempt and its Run in a copy.
func (m *Machine) depart(h uint32, took time.Duration) {
	m.end(h, took)
	m.runs[h].state = free
	m.refresh(m.runs[h].tenant)
}
