package dispatch

import "time"

// Fairness is how far each tenant is from its share, in the order of their ids.
func (m *Machine) Fairness() []Fairness {
	all := make([]Fairness, 0, len(m.tenants)-1)
	for _, i := range m.sorted() {
		t := &m.tenants[i]
		w := time.Duration(t.weight)
		f := Fairness{
			Tenant: t.id, Weight: t.weight, Waiting: t.waiting, Served: t.served, Worst: time.Duration(t.worst),
			Largest: t.largest, Drift: t.drift, Bound: (t.largest + 2*t.drift + w - 1) / w,
		}
		if t.waiting {
			f.Ideal = time.Duration(m.virtual-t.from) * w
			f.Error = time.Duration(t.finish - m.virtual)
			f.Worst = max(f.Worst, f.Error, -f.Error)
		}
		all = append(all, f)
	}
	return all
}

// Counts is a snapshot of the pool.
func (m *Machine) Counts() Counts {
	c := Counts{
		TenantCounts: TenantCounts{Queued: m.queued, Ready: m.ready, Active: m.active, Used: m.used},
		Capacity:     m.capacity, Online: m.online, Runners: m.known, Shapes: len(m.order), Virtual: m.virtual,
	}
	for i := range m.runners {
		if x := &m.runners[i]; x.id != "" && x.state == Active {
			c.Free.add(&x.free, 1)
		}
	}
	return c
}

// TenantCounts counts the Runs of one tenant.
func (m *Machine) TenantCounts(tenant string) TenantCounts {
	i, known := m.tenantOf[tenant]
	if !known {
		return TenantCounts{}
	}
	t := &m.tenants[i]
	return TenantCounts{Queued: t.queued, Ready: t.ready, Active: t.active, Used: t.used}
}
