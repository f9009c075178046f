package session

import "github.com/roadstead/roadstead/internal/core/fair"

// principal counts the seats and records of one principal.
type principal struct {
	key     Key
	active  int32
	records int32 // waiting, active and paused sessions
	known   int32 // records of every kind, tombstones included
	seen    uint32
	planned int32 // seats it holds in the plan being made, valid when seen is the plan's number
}

// principals gives principals small dense numbers.
type principals struct {
	all   []principal
	free  []uint32
	index map[Key]uint32
	leave []uint32 // have no record left, but a turn ahead of its round; forgotten when their class has passed it
}

// leaveMost bounds how many principals without a record are remembered for their turn.
const leaveMost = 65536

func (p *principals) number(k Key) uint32 {
	if i, ok := p.index[k]; ok {
		return i
	}
	var i uint32
	if n := len(p.free); n > 0 {
		i = p.free[n-1]
		p.free = p.free[:n-1]
	} else {
		p.all = append(p.all, principal{})
		i = uint32(len(p.all) - 1)
	}
	p.all[i] = principal{key: k}
	p.index[k] = i
	return i
}

// vacate notes that a principal lost a record.
func (p *principals) vacate(i uint32, q *fair.Queue) {
	p.all[i].known--
	if p.all[i].known > 0 {
		return
	}
	if q.Ahead(i) {
		p.leave = append(p.leave, i)
		if len(p.leave) > leaveMost {
			p.sweep(q, true)
		}
		return
	}
	p.forget(i, q)
}

func (p *principals) forget(i uint32, q *fair.Queue) {
	q.Forget(i)
	delete(p.index, p.all[i].key)
	p.all[i] = principal{}
	p.free = append(p.free, i)
}

// sweep looks at the principal that left longest ago; force forgets it whatever its turn.
func (p *principals) sweep(q *fair.Queue, force bool) {
	for range min(len(p.leave), 32) {
		i := p.leave[0]
		p.leave = p.leave[1:]
		switch {
		case p.all[i].known > 0 || p.all[i].key == (Key{}):
			continue // came back meanwhile
		case force || !q.Ahead(i):
			p.forget(i, q)
			force = false
		default:
			p.leave = append(p.leave, i)
		}
	}
}

// under reports whether a principal holds fewer seats than its share (D-4.4).
func (m *Machine) under(i uint32) bool {
	return int(m.principals.all[i].active) < m.policy.PerPrincipal
}

// hold changes the seats a principal holds and keeps count of the contenders: lanes whose principal is under its share.
func (m *Machine) holds(i uint32, d int32) {
	was := m.under(i)
	m.principals.all[i].active += d
	if now := m.under(i); was != now {
		for c := range uint8(fair.Classes) {
			if m.queue.LaneLen(c, i) == 0 {
				continue
			}
			if now {
				m.contenders[c]++
			} else {
				m.contenders[c]--
			}
		}
	}
}

// push puts a session into the order; back returns the turn it used before (D-3.1).
func (m *Machine) push(h uint32, r *record, back bool) {
	c := uint8(r.class)
	if m.queue.LaneLen(c, r.principal) == 0 && m.under(r.principal) {
		m.contenders[c]++
	}
	m.queue.Push(c, r.principal, r.order, h, back)
	n := &m.counts[c]
	n.Waiting++
	n.WaitingBytes += r.left
	n.Held += int(r.held)
}

// pull takes a session out of the order, because it starts or because it leaves.
func (m *Machine) pull(r *record, starts bool) {
	c := uint8(r.class)
	if starts {
		m.queue.Serve(c, r.principal, r.order, m.open(m.under(r.principal)))
	} else {
		m.queue.Remove(c, r.principal, r.order)
	}
	if m.queue.LaneLen(c, r.principal) == 0 && m.under(r.principal) {
		m.contenders[c]--
	}
	n := &m.counts[c]
	n.Waiting--
	n.WaitingBytes -= r.left
	n.Held -= int(r.held)
	r.clear(marked | beyond | fresh)
	r.plan = 0
}

// open is the set of classes that could start a session now: a seat is free for them, and somebody waits who may take
// it; contenders only, when one of them is the one that starts.
func (m *Machine) open(contender bool) (open fair.Mask) {
	for c := range uint8(fair.Classes) {
		someone := m.queue.ClassLen(c) > 0
		if contender {
			someone = m.contenders[c] > 0
		}
		if someone && m.seatFor(c) {
			open |= 1 << c
		}
	}
	return open
}

// seatFor reports whether a seat is free that the class may take: classes below interactive leave the reserve (D-4.2).
func (m *Machine) seatFor(c uint8) bool { return m.freeSeats(c) > 0 }

func (m *Machine) freeSeats(c uint8) int {
	free := m.policy.Sessions - m.active
	if c != 0 {
		free = min(free, m.policy.Sessions-m.policy.Reserve-m.below)
	}
	return max(free, 0)
}
