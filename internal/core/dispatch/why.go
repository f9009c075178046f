package dispatch

import "github.com/roadstead/roadstead/internal/clock"

// Why says why a queued Run does not start, the most telling reason first; nil when it is not queued. What it says of
// reservations is as of the last Decide.
func (m *Machine) Why(now clock.Mono, id string) []Why {
	h := m.find(id, queued)
	if h == 0 {
		return nil
	}
	return m.why(now, h)
}

func (m *Machine) why(now clock.Mono, h uint32) (all []Why) {
	r := &m.runs[h]
	t, sh := &m.tenants[r.tenant], &m.shapes[r.shape]
	say := func(when bool, w Reason, until clock.Mono) {
		if when {
			all = append(all, Why{w, until})
		}
	}
	say(!sh.alive || !sh.vector.within(&t.cap, &Vector{}), ReasonNeverFits, 0)
	say(r.blockers&Hold != 0, ReasonHold, 0)
	say(r.blockers&Dependency != 0, ReasonDependency, 0)
	say(r.blockers&Budget != 0, ReasonBudget, 0)
	say(r.blockers&ConcurrencyKey != 0, ReasonConcurrencyKey, 0)
	say(r.blockers&ArrayLimit != 0, ReasonArrayLimit, 0)
	say(r.quota > now, ReasonQuota, r.quota)
	say(r.notBefore > now, ReasonNotBefore, r.notBefore)
	say(!m.reachable(sh), ReasonPoolOffline, 0)
	if len(all) > 0 {
		return all
	}
	first := m.head(t)
	switch {
	case first != 0 && !m.shapes[m.runs[first].shape].vector.within(&t.cap, &t.used):
		say(true, ReasonTenantCap, 0)
	case !sh.vector.within(&m.policy.Cap, &m.used):
		say(true, ReasonPoolCap, 0)
	default:
		until, kept := m.keptOut(now, sh)
		say(kept, ReasonReserved, until)
		say(!kept, ReasonTurn, 0)
	}
	return all
}

// reachable reports whether a runner that matches is online.
func (m *Machine) reachable(sh *shape) bool {
	if !sh.alive {
		return true // it says so itself
	}
	for _, k := range m.matching(sh) {
		if m.kinds[k].online > 0 {
			return true
		}
	}
	return false
}

// keptOut reports whether a shape would fit now, were it not for a reservation; and until when that one is at most.
func (m *Machine) keptOut(now clock.Mono, sh *shape) (until clock.Mono, kept bool) {
	if len(m.holds) == 0 || m.room(now, sh) != 0 {
		return 0, false
	}
	holds := m.holds
	defer func() { m.holds = holds }()
	m.holds = nil
	x := m.room(now, sh)
	for i := range holds {
		if holds[i].runner == x {
			return holds[i].at, true
		}
	}
	return 0, x != 0
}

// reason is the first of why, for many Runs at one instant: what is the same for a shape is asked once.
func (m *Machine) reason(now clock.Mono, h uint32, kept []int8) Reason {
	r := &m.runs[h]
	sh := &m.shapes[r.shape]
	if r.where == parked || r.where == unfit || !m.reachable(sh) {
		return m.why(now, h)[0].Reason
	}
	switch {
	case !m.tenants[r.tenant].waiting:
		return ReasonTenantCap
	case !sh.vector.within(&m.policy.Cap, &m.used):
		return ReasonPoolCap
	}
	if kept[r.shape] == 0 {
		kept[r.shape] = -1
		if _, out := m.keptOut(now, sh); out {
			kept[r.shape] = 1
		}
	}
	if kept[r.shape] > 0 {
		return ReasonReserved
	}
	return ReasonTurn
}
