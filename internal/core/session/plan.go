package session

import (
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/fair"
	"github.com/roadstead/roadstead/internal/core/forecast"
)

// plan is the near future, made anew for the first who asks after a tick: the order played forward over the seats at the measured rate, one by
// one for the first places, by bytes beyond them (D-6.1).
type plan struct {
	known   bool  // the rate is known, so times are
	rate    int64 // the configured one, or else the measured peak
	at      clock.Mono
	entries []planned
	last    time.Duration // start of the last entry, from at
	mean    float64       // bytes of one waiting session beyond the entries
	turn    time.Duration // one seat turn: every seat through one mean session
	drained clock.Mono    // when nothing waits any more
	number  uint32
	seats   forecast.Seats
	ahead   anticipation
}

type planned struct {
	handle uint32
	start  time.Duration // from the plan's instant
}

// planWork bounds a plan: places times seats.
const planWork = 3072

// fill puts the sessions that have a seat into s.
func (m *Machine) fill(s *forecast.Seats) {
	s.Reset(m.plan.rate, 0)
	for _, h := range m.running {
		r := m.records.at(h)
		s.Take(r.principal, m.seats[r.seat-1].left(), h)
	}
}

// makePlan plays the order forward, once a tick.
func (m *Machine) makePlan(now clock.Mono) {
	if m.planned {
		return
	}
	m.planned = true
	p := &m.plan
	p.known, p.at, p.last = p.rate > 0, now, 0
	for _, e := range p.entries {
		if r := m.records.at(e.handle); r.plan != 0 {
			r.plan = 0
		}
	}
	p.entries = p.entries[:0]
	if !p.known {
		return
	}
	bytes := int64(0)
	for i := range m.counts {
		bytes += m.counts[i].WaitingBytes
	}
	f := forward{m: m, active: m.active, below: m.below, contenders: m.contenders, now: now}
	for c := range f.shut {
		f.shut[c] = m.windows[c].shut
	}
	p.number++
	m.fill(&p.seats)
	m.queue.Rewind(&m.cursor)
	most := min(m.queue.Len(), max(64, planWork/m.policy.Sessions))
	left, t := bytes, time.Duration(0)
	for len(p.entries) < most {
		turn, ok := f.next()
		if !ok {
			took, more := f.wait(&p.seats, t)
			if !more {
				break
			}
			t += took
			continue
		}
		r := m.records.at(turn.Item)
		p.entries = append(p.entries, planned{turn.Item, t})
		r.plan = uint16(len(p.entries))
		p.seats.Take(r.principal, r.left, turn.Item)
		left -= r.left
		p.last = t
	}
	p.finish(m, now, t, bytes, left)
	m.foresee(now)
}

// finish works out what lies beyond the entries.
func (p *plan) finish(m *Machine, now clock.Mono, t time.Duration, bytes, left int64) {
	n := m.queue.Len()
	p.mean, p.turn = 0, 0
	if n > 0 {
		p.turn = bytesTime(float64(m.policy.Sessions)*float64(bytes)/float64(n), p.rate)
	}
	if rest := n - len(p.entries); rest > 0 {
		p.mean = float64(left) / float64(rest)
		p.drained = now.Add(t + bytesTime(float64(left), p.rate))
		return
	}
	p.drained = now.Add(p.last)
}

// bytesTime is how long the link takes for a number of bytes.
func bytesTime(bytes float64, rate int64) time.Duration {
	return time.Duration(bytes / float64(rate) * float64(time.Second))
}

// forward is the machine's rules for seats over a cursor instead of the queue: what starts next when all who wait are
// there.
type forward struct {
	m          *Machine
	active     int
	below      int
	contenders [fair.Classes]int32
	now        clock.Mono
	shut       [fair.Classes]bool // windows, at this point of the plan
	turned     [fair.Classes]int  // changes of each window gone by
}

// wait lets time go by until a seat comes free or a window changes, whichever is first.
func (f *forward) wait(seats *forecast.Seats, t time.Duration) (took time.Duration, more bool) {
	ends, busy := seats.Until()
	c, opens, changes := f.nextChange(t)
	switch {
	case changes && (!busy || opens < ends):
		seats.Play(opens)
		f.shut[c] = !f.shut[c]
		f.turned[c]++
		return opens, true
	case busy:
		tag, took, _ := seats.Next()
		r := f.m.records.at(tag)
		f.seat(uint8(r.class), r.principal, -1)
		return took, true
	}
	return 0, false
}

// nextChange is the next window to change after t, and in how long.
func (f *forward) nextChange(t time.Duration) (c int, in time.Duration, ok bool) {
	for k := range f.turned {
		if changes := f.m.windows[k].changes; f.turned[k] < len(changes) {
			if d := max(0, changes[f.turned[k]].Sub(f.now)-t); !ok || d < in {
				c, in, ok = k, d, true
			}
		}
	}
	return c, in, ok
}

func (f *forward) admits(c class.Class) bool { return !f.shut[c] || f.m.windows[c].outside }

func (f *forward) free(c int) bool {
	free := f.m.policy.Sessions - f.active
	if c != 0 {
		free = min(free, f.m.policy.Sessions-f.m.policy.Reserve-f.below)
	}
	return free > 0
}

// holds is the number of seats a principal has at this point of the plan.
func (f *forward) holds(i uint32) int32 {
	p := &f.m.principals.all[i]
	if p.seen != f.m.plan.number {
		p.seen, p.planned = f.m.plan.number, p.active
	}
	return p.planned
}

func (f *forward) under(i uint32) bool { return int(f.holds(i)) < f.m.policy.PerPrincipal }

// contends reports whether a principal under its share waits in a class.
func (f *forward) contends(c uint8) bool {
	if f.contenders[c] > 0 && f.admits(class.Class(c)) {
		return true
	}
	if f.m.agedWait == 0 {
		return false
	}
	h, ok := f.m.cursor.LaneHead(c, fair.Aged)
	return ok && f.mayAged(h, true)
}

func (f *forward) mayAged(h uint32, contender bool) bool {
	r := f.m.records.at(h)
	return f.admits(r.class) && (!contender || f.under(r.principal))
}

// next is the next start at this point, contenders first (D-4.4).
func (f *forward) next() (fair.Turn, bool) {
	var open, rival, held fair.Mask
	for c := range fair.Classes {
		switch rivals := f.contends(uint8(c)); {
		case !f.free(c):
			if rivals {
				held |= 1 << c
			}
		case rivals:
			rival |= 1 << c
			fallthrough
		default:
			open |= 1 << c
		}
	}
	if open == 0 {
		return fair.Turn{}, false
	}
	contender := rival != 0
	if contender {
		open = rival
	}
	t, ok := f.m.cursor.Next(open, held, func(c uint8, p, item uint32) bool {
		if p == fair.Aged {
			return f.mayAged(item, contender)
		}
		return f.admits(class.Class(c)) && (!contender || f.under(p))
	})
	if ok {
		r := f.m.records.at(t.Item)
		if t.Principal != fair.Aged && f.m.cursor.Left(t.Class, t.Principal) == 0 && f.under(t.Principal) {
			f.contenders[t.Class]--
		}
		f.seat(uint8(r.class), r.principal, 1)
	}
	return t, ok
}

func (f *forward) seat(c uint8, i uint32, d int) {
	f.active += d
	if c != 0 {
		f.below += d
	}
	was := f.under(i)
	f.m.principals.all[i].planned += int32(d)
	if now := f.under(i); was != now {
		for k := range uint8(fair.Classes) {
			if f.m.cursor.Left(k, i) == 0 {
				continue
			}
			if now {
				f.contenders[k]++
			} else {
				f.contenders[k]--
			}
		}
	}
}
