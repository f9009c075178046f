package dispatch

import (
	"github.com/roadstead/roadstead/internal/clock"
)

// look is how many needs that don't fit one call of Decide passes over before it gives up.
const look = 512

// Decide starts at most so many Runs, the fairest first. The slice is valid until the next call of Decide.
func (m *Machine) Decide(now clock.Mono, most int) []Decision {
	m.learn()
	m.wake(now)
	m.settle()
	m.out, m.picks = m.out[:0], m.picks[:0]
	m.asides, m.holds = m.asides[:0], m.holds[:0]
	reserved := 0 // of the asides, how many were looked at for a reservation
	for len(m.out) < most && len(m.order) > 0 && len(m.asides) < look && !m.full() {
		s := m.order[0]
		sh := &m.shapes[s]
		if !sh.vector.within(&m.policy.Cap, &m.used) {
			break // everybody waits until the first is under the pool's cap, or smaller ones would keep it out for ever
		}
		x := m.room(now, sh)
		if x != 0 && reserved < len(m.asides) {
			for ; reserved < len(m.asides); reserved++ {
				m.reserve(now, m.asides[reserved])
			}
			x = m.room(now, sh)
		}
		if x == 0 {
			m.setAside(s)
			continue
		}
		m.start(now, m.lanes[sh.lanes[0]].runs[0], x)
	}
	for _, s := range m.asides {
		m.shapes[s].aside = false
		m.fixShape(s)
	}
	return m.out
}

// setAside passes over the shape at the top: it doesn't fit, and will not in this call.
func (m *Machine) setAside(s uint32) {
	m.order = drop(byHead{m}, m.order, 0)
	m.shapes[s].aside = true
	m.asides = append(m.asides, s)
}

// settle ends a rebuild: who waits now and did not when the tags were flushed has come since, without arrears.
func (m *Machine) settle() {
	for i := 1; m.restored && i < len(m.tenants); i++ {
		if t := &m.tenants[i]; t.waiting && !t.kept {
			t.comes(m.virtual)
			m.retag(uint32(i))
		}
		m.tenants[i].kept = false
	}
	m.restored = false
}

// start makes a queued Run an Attempt.
func (m *Machine) start(now clock.Mono, h, x uint32) {
	r := &m.runs[h]
	t := &m.tenants[r.tenant]
	v := &m.shapes[r.shape].vector
	share := v.share(&m.capacity)
	d := Decision{
		Run: m.ids[h], Tenant: t.id, Runner: m.runners[x].id, At: now, Share: share, Charge: share.cost(r.expected),
		before: tags{account: t.account, virtual: m.virtual, last: m.last},
	}
	m.seq++
	d.Seq = m.seq
	m.last = m.seq
	m.unqueue(h)
	d.Start = t.starts(m.virtual, t.weight, d.Charge)
	t.seq = m.seq
	m.virtual = max(m.virtual, d.Start)
	d.before.after = t.changes
	r.state, r.since, r.began, r.share, r.charged, r.start, r.seq = active, now, now, share, d.Charge, d.Start, d.Seq
	m.seat(h, x)
	m.use(h, 1)
	m.refresh(r.tenant)
	m.retag(r.tenant)
	m.out, m.picks = append(m.out, d), append(m.picks, h)
	if r.promised && !m.forward {
		m.fresh = append(m.fresh, h)
	}
}

// use counts an Attempt in or out.
func (m *Machine) use(h uint32, sign int64) {
	r := &m.runs[h]
	t, v := &m.tenants[r.tenant], &m.shapes[r.shape].vector
	t.used.add(v, sign)
	m.used.add(v, sign)
	t.active += int(sign)
	m.active += int(sign)
}

// Undo takes a decision back that could not be committed: the Run is queued where it was, and V and F are what they were.
// Several are undone in the reverse order of their decisions. False when the Attempt is not that decision's any more.
func (m *Machine) Undo(now clock.Mono, d Decision) bool {
	m.wake(now)
	h := m.find(d.Run, active)
	if h == 0 || m.runs[h].seq != d.Seq {
		return false
	}
	r := &m.runs[h]
	t := &m.tenants[r.tenant]
	m.unseat(h)
	m.use(h, -1)
	if m.last == d.Seq {
		m.virtual, m.last = d.before.virtual, d.before.last
	}
	exact := t.changes == d.before.after
	cost := r.charged
	r.state, r.charged, r.share, r.seq = queued, 0, 0, 0
	r.where = parked
	t.queued++
	m.queued++
	m.reconsider(now, h)
	if exact {
		t.account = d.before.account // also what coming back into the order just did to it
	} else {
		t.returns(t.weight, cost)
	}
	m.retag(r.tenant)
	return true
}
