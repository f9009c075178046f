package dispatch

import "github.com/roadstead/roadstead/internal/clock"

// Snapshot is what every queued Run could be told at an instant. Nothing changes it, so many may read it.
type Snapshot struct {
	AsOf clock.Mono

	index    map[string]int32
	outlooks []Outlook
	starts   []string // in their order
}

// Of is the outlook of a Run; false when it was not queued then.
func (s *Snapshot) Of(run string) (Outlook, bool) {
	i, ok := s.index[run]
	if !ok {
		return Outlook{}, false
	}
	return s.outlooks[i], true
}

// Next are the Runs that start first, in their order, at most so many.
func (s *Snapshot) Next(most int) []string { return s.starts[:min(most, len(s.starts))] }

// Forecast plays the pool forward on a copy. It notes what each Run is told first, and learns from when they start.
func (m *Machine) Forecast(now clock.Mono, l Limits) *Snapshot {
	m.wake(now)
	p := play(now, m.copy(), l)
	s := &Snapshot{AsOf: now, index: make(map[string]int32, m.queued), outlooks: make([]Outlook, 0, m.queued)}
	s.starts = make([]string, 0, len(p.starts))
	p.each(func(place int, x planned) {
		o := p.outlook(place, x)
		o.Reason = m.reason(now, x.run, p.kept)
		m.runs[x.run].promise(o.Start, x.width, x.band)
		s.starts = append(s.starts, m.ids[x.run])
		s.add(m.ids[x.run], o)
	})
	for h := 1; h < len(m.runs); h++ {
		if m.runs[h].state == queued && !p.seen[h] {
			s.add(m.ids[h], Outlook{Reason: m.reason(now, uint32(h), p.kept)})
		}
	}
	return s
}

func (s *Snapshot) add(id string, o Outlook) {
	s.index[id] = int32(len(s.outlooks))
	s.outlooks = append(s.outlooks, o)
}

// Preview is the outlook of a Run that was not submitted, and why it would not start at once; nothing changes.
func (m *Machine) Preview(now clock.Mono, r Run, l Limits) (Outlook, []Why, error) {
	_, known := m.tenantOf[r.Tenant]
	h, err := m.enter(now, r)
	if err != nil {
		return Outlook{}, nil, err
	}
	c := m.copy()
	c.queue(now, h)
	why := c.why(now, h)
	p := play(now, c, l)
	o := Outlook{}
	p.each(func(place int, x planned) {
		if x.run == h {
			o = p.outlook(place, x)
		}
	})
	if len(why) > 0 {
		o.Reason = why[0].Reason
	}
	m.release(h)
	if !known {
		delete(m.tenantOf, r.Tenant)
		m.tenants = m.tenants[:len(m.tenants)-1]
	}
	return o, why, nil
}
