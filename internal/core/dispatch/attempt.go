package dispatch

import (
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
)

// Started restarts the count of an Attempt's timeout: its process began only now.
func (m *Machine) Started(now clock.Mono, id string) bool {
	m.wake(now)
	h := m.find(id, active)
	if h == 0 {
		return false
	}
	m.runs[h].since = now
	return true
}

// Renew charges an Attempt that runs longer than it was charged for: elapsed is all it took so far.
func (m *Machine) Renew(now clock.Mono, id string, elapsed time.Duration) bool {
	m.wake(now)
	h := m.find(id, active)
	if h == 0 {
		return false
	}
	if r := &m.runs[h]; r.share.cost(elapsed) > r.charged {
		m.correct(h, elapsed)
	}
	return true
}

// correct charges an Attempt for a time instead of what it was charged so far.
func (m *Machine) correct(h uint32, took time.Duration) {
	r := &m.runs[h]
	t := &m.tenants[r.tenant]
	cost := r.share.cost(took)
	t.corrects(m.virtual, t.weight, cost-r.charged, cost)
	r.charged = cost
	m.retag(r.tenant)
}

// Finish ends an Attempt and its Run: the tenant is charged what it took instead of what was expected.
func (m *Machine) Finish(now clock.Mono, id string, actual time.Duration) bool {
	m.wake(now)
	h := m.find(id, active)
	if h == 0 {
		return false
	}
	m.end(h, actual)
	m.refresh(m.runs[h].tenant)
	m.release(h)
	return true
}

// Requeue ends an Attempt whose Run is tried again, not before an instant (a past one: at once). The Run keeps its place.
func (m *Machine) Requeue(now clock.Mono, id string, actual time.Duration, notBefore clock.Mono) bool {
	m.wake(now)
	h := m.find(id, active)
	if h == 0 {
		return false
	}
	m.end(h, actual)
	r := &m.runs[h]
	r.notBefore, r.promised = notBefore, false
	m.queue(now, h)
	m.refresh(r.tenant)
	return true
}

// end settles an Attempt and frees what it took.
func (m *Machine) end(h uint32, actual time.Duration) {
	m.correct(h, actual)
	m.unseat(h)
	m.use(h, -1)
	r := &m.runs[h]
	r.charged, r.share, r.seq = 0, 0, 0
}

// Tags are the virtual times, for rows.
func (m *Machine) Tags() Tags {
	all := Tags{Virtual: m.virtual, Seq: m.seq}
	for _, i := range m.sorted() {
		t := &m.tenants[i]
		all.Tenants = append(all.Tenants, TenantTag{Tenant: t.id, Seq: t.seq, Finish: t.finish, Floor: t.floor, Owed: t.owed, Ready: t.waiting})
	}
	return all
}

// SetTags takes flushed virtual times up. A pool is rebuilt in this order: tenants and runners, tags, Attempts by Seq,
// queued Runs; the next decisions are then those that the old machine would have made.
func (m *Machine) SetTags(all Tags) {
	m.virtual, m.seq = max(m.virtual, all.Virtual), max(m.seq, all.Seq)
	m.last = m.seq
	m.restored = true
	for _, s := range all.Tenants {
		i := m.tenant(s.Tenant)
		t := &m.tenants[i]
		t.seq, t.finish, t.floor, t.owed, t.kept = s.Seq, s.Finish, s.Floor, s.Owed, s.Ready
		t.begin()
		t.changes++
	}
}

// Resume takes an Attempt up that runs, as its row has it. A runner that is not known makes it one of no runner. A
// decision that the flushed tags don't know yet is charged now.
func (m *Machine) Resume(now clock.Mono, a Attempt) error {
	if a.Share < 0 || a.Share > WholePool || a.Charged < 0 {
		return fault.Invalid("share", "must be between 0 and %d, is %d", WholePool, a.Share)
	}
	a.Run.Eligible, a.Run.NotBefore, a.Run.QuotaUntil, a.Run.Blockers = true, 0, 0, 0
	h, err := m.enter(now, a.Run)
	if err != nil {
		return err
	}
	r := &m.runs[h]
	t := &m.tenants[r.tenant]
	r.state, r.since, r.share, r.charged, r.start, r.seq = active, a.Since, a.Share, a.Charged, a.Start, a.Seq
	if a.Seq > t.seq {
		t.finish = max(t.finish, a.Start) + advance(a.Charged, t.weight)
		t.owed = min(t.owed, max(0, m.virtual-t.finish))
		t.largest = max(t.largest, a.Charged)
		t.seq = a.Seq
		t.changes++
		m.virtual = max(m.virtual, a.Start)
	}
	m.seq = max(m.seq, a.Seq)
	m.last = m.seq
	m.seat(h, m.runnerOf[a.Runner])
	m.use(h, 1)
	m.refresh(r.tenant)
	m.retag(r.tenant)
	return nil
}
