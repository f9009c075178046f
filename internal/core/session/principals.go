package session

import (
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/core/fair"
)

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
	if q.Early(i) {
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
		case force || !q.Early(i):
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

// holds changes the seats a principal has and keeps count of the contenders: lanes whose principal is under its share.
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

// item is how a waiting session stands in the order.
func (m *Machine) item(h uint32, r *record) fair.Item {
	it := fair.Item{Class: r.rank, Principal: r.principal, Order: r.order, Bytes: r.left, Handle: h}
	if r.has(aged) {
		if m.policy.Strategy == SmallestFirst {
			it.Bytes = 0
		} else {
			it.Principal = fair.Aged
		}
	}
	return it
}

// lane counts a lane that just came or is about to go among the contenders. The lane of the aged is no one
// principal's; it is looked at when asked.
func (m *Machine) lane(it fair.Item, d int32) {
	if it.Principal == fair.Aged {
		m.agedWait += int(d)
	}
	if it.Principal != fair.Aged && m.queue.LaneLen(it.Class, it.Principal) == 0 && m.under(it.Principal) {
		m.contenders[it.Class] += d
	}
}

// enter puts a session into the order; back returns the turn it used before (D-3.1).
func (m *Machine) enter(h uint32, r *record, back bool) {
	it := m.item(h, r)
	m.lane(it, 1)
	m.queue.Push(it, back)
}

// push makes a session wait.
func (m *Machine) push(h uint32, r *record, back bool) {
	r.rank = uint8(r.class)
	r.clear(aged)
	m.enter(h, r, back)
	n := &m.counts[r.class]
	n.Waiting++
	n.WaitingBytes += r.left
	n.Held += int(r.held)
}

// pull takes a session out of the order, because it starts or because it leaves.
func (m *Machine) pull(h uint32, r *record, starts bool) {
	it := m.item(h, r)
	if starts {
		open, held := m.open(m.under(r.principal))
		m.queue.Serve(it, open, held)
	} else {
		m.queue.Remove(it)
	}
	m.lane(it, -1)
	n := &m.counts[r.class]
	n.Waiting--
	n.WaitingBytes -= r.left
	n.Held -= int(r.held)
	r.clear(marked | beyond | fresh | aged)
	r.plan = 0
}

// contends counts what in a class a principal under its share waits for: lanes, and the lane of the aged.
func (m *Machine) contends(c uint8) (n int) {
	if m.admits(class.Class(c)) {
		n = int(m.contenders[c])
	}
	if m.agedWait == 0 {
		return n
	}
	if h, ok := m.queue.LaneHead(c, fair.Aged); ok {
		if r := m.records.at(h); m.under(r.principal) && m.admits(r.class) {
			n++
		}
	}
	return n
}

// present reports whether somebody waits in a class whose window lets them start.
func (m *Machine) present(c uint8) bool {
	if m.admits(class.Class(c)) {
		return m.queue.ClassLen(c) > 0
	}
	h, ok := m.queue.LaneHead(c, fair.Aged)
	return ok && m.admits(m.records.at(h).class)
}

// open is the set of classes that could start a session now: a seat is free for them, and somebody waits who may take
// it; contenders only, when one of them is the one that starts. held are those that lack nothing but the seat.
func (m *Machine) open(contender bool) (open, held fair.Mask) {
	for c := range uint8(fair.Classes) {
		someone := m.present(c)
		if contender {
			someone = m.contends(c) > 0
		}
		switch {
		case someone && m.seatFor(c):
			open |= 1 << c
		case someone:
			held |= 1 << c
		}
	}
	return open, held
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
