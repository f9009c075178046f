package governor

import (
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
)

// queue decides whose bytes go next: token buckets say when, start-time fair queueing says who, first between
// principals, then between the sessions of one; the flows of a session go in turn. Sessions aside get what nobody else
// wants. It is pure: no clock, no lock, time comes as an argument, and equal calls give equal answers.
type queue struct {
	total   bucket
	each    int64 // ceiling of one principal in bytes per second; 0 when there is none
	road    lane
	aside   lane
	owed    clock.Mono // from then on the lane aside goes first for one slice, so that nothing in it ever fails
	gates   [class.Count]gate
	names   map[string]*account
	sweepAt int
	parked  line[*principal] // want bytes and wait for their own bucket, by the instant it opens
	starved bool             // the total bucket was all that held the ready ones back
	granted []*Flow          // scratch of grant
}

func newQueue() *queue { return &queue{names: map[string]*account{}, sweepAt: 64} }

// trickle is what the lane aside gets in all when the road leaves nothing, in bytes per second.
const trickle = 16 << 10

// join opens a flow of a session. The zero session is nobody else's: each such flow stands for itself.
func (q *queue) join(now clock.Mono, name string, id [16]byte) *session {
	a := q.names[name]
	if a == nil {
		q.sweep(now)
		a = &account{name: name, sessions: map[[16]byte]*session{}}
		a.rate = q.each
		a.road = a.enter(&q.road)
		q.names[name] = a
	}
	a.flows++
	s := a.sessions[id]
	if s == nil {
		s = &session{of: a.road, id: id}
		s.finish = a.road.floor
		if id != ([16]byte{}) {
			a.sessions[id] = s
		}
	}
	s.flows++
	return s
}

// enter gives an account a place in a lane.
func (a *account) enter(l *lane) *principal {
	p := &principal{account: a, lane: l}
	p.finish = l.floor
	return p
}

// leave closes a flow that is not waiting. A principal in debt to its own ceiling is remembered until it is paid, or
// it would shed the ceiling by hanging up.
func (q *queue) leave(now clock.Mono, s *session) {
	a := s.of.account
	if s.flows--; s.flows == 0 {
		s.quit(&s.of.level)
		delete(a.sessions, s.id)
	}
	if a.flows--; a.flows == 0 && a.open(now) {
		q.forget(a)
	}
}

func (q *queue) forget(a *account) {
	a.road.quit(&q.road.level)
	if a.aside != nil {
		a.aside.quit(&q.aside.level)
	}
	for c, t := range a.outside {
		if t != nil {
			t.quit(&q.gates[c].level)
		}
	}
	delete(q.names, a.name)
}

// sweep forgets the absent who have paid, each time the number of principals has doubled.
func (q *queue) sweep(now clock.Mono) {
	if len(q.names) < q.sweepAt {
		return
	}
	for _, a := range q.names {
		if a.flows == 0 && a.open(now) {
			q.forget(a)
		}
	}
	q.sweepAt = max(64, 2*len(q.names))
}

// ask puts a flow in line for f.want bytes.
func (q *queue) ask(f *Flow) {
	s := f.session
	s.asks = append(s.asks, f)
	if len(s.asks) == 1 {
		q.wait(s)
	}
}

// wait puts a session that began to want in its line: at its gate first, when it has one.
func (q *queue) wait(s *session) {
	if !s.lane.Outside {
		q.compete(s)
		return
	}
	a, c := s.of.account, s.lane.Class
	if a.outside[c] == nil {
		a.outside[c] = &tags{finish: q.gates[c].floor}
	}
	q.gates[c].stand(s, a.outside[c])
}

// compete puts a session among those of its principal that want bytes.
func (q *queue) compete(s *session) {
	p := s.of
	s.begin(&p.level)
	p.wanting.push(s, s.start)
	if p.wanting.Len() == 1 {
		p.begin(&p.lane.level)
		p.lane.ready.push(p, p.start)
	}
}

// drop takes a flow that gave up out of the line.
func (q *queue) drop(f *Flow) {
	s := f.session
	for i, a := range s.asks {
		if a == f {
			s.asks = append(s.asks[:i], s.asks[i+1:]...)
			break
		}
	}
	if len(s.asks) == 0 {
		q.unwait(s)
	}
}

// unwait takes a session out of whatever line it stands in.
func (q *queue) unwait(s *session) {
	if s.gate != nil {
		s.gate.leave(s)
		return
	}
	p := s.of
	if p.wanting.remove(s); p.wanting.Len() > 0 {
		return
	}
	if p.parked {
		q.parked.remove(p)
		p.parked = false
	} else {
		p.lane.ready.remove(p)
	}
}

// steer moves a session, waiting or not, to another lane. It begins there like a newcomer.
func (q *queue) steer(s *session, to Lane) {
	if s.lane == to {
		return
	}
	if len(s.asks) > 0 {
		q.unwait(s)
		defer q.wait(s)
	}
	if a := s.of.account; s.lane.Aside != to.Aside {
		s.quit(&s.of.level)
		s.of = a.road
		if to.Aside {
			if a.aside == nil {
				a.aside = a.enter(&q.aside)
			}
			s.of = a.aside
		}
		s.finish = s.of.floor
	}
	s.lane = to
}

// grant takes the flows that may send now out of the line. The slice is valid until the next call.
func (q *queue) grant(now clock.Mono) []*Flow {
	q.granted = q.granted[:0]
	for q.parked.Len() > 0 && q.parked.first().open(now) {
		p := q.parked.pop()
		p.parked, p.late = false, true
		p.begin(&p.lane.level)
		p.lane.ready.push(p, p.start)
	}
	for i := range q.gates {
		q.admit(now, &q.gates[i])
	}
	late := q.starved
	q.starved = false
	for l := q.next(now); l != nil; l = q.next(now) {
		if !q.total.open(now) {
			q.starved = true
			break
		}
		p := l.ready.pop()
		if !p.open(now) {
			p.parked = true
			q.parked.push(p, int64(p.free))
			continue
		}
		f := q.serve(now, p)
		q.total.take(now, f.want, late)
		p.take(now, f.want, p.late)
		p.late = false
		if l == &q.aside {
			q.owed = now.Add(time.Duration(f.want) * time.Second / trickle)
		}
		q.granted = append(q.granted, f)
	}
	return q.granted
}

// next is the lane whose turn it is; nil when nobody is ready.
func (q *queue) next(now clock.Mono) *lane {
	if q.aside.ready.Len() > 0 && (q.road.ready.Len() == 0 || q.owed <= now) {
		return &q.aside
	}
	if q.road.ready.Len() > 0 {
		return &q.road
	}
	return nil
}

// admit lets through a gate whom its bucket allows.
func (q *queue) admit(now clock.Mono, g *gate) {
	for s := g.next(now); s != nil; s = g.next(now) {
		q.compete(s)
	}
	g.starved = g.Len() > 0
}

// serve gives p's turn to one of its flows.
func (q *queue) serve(now clock.Mono, p *principal) *Flow {
	s := p.wanting.pop()
	f := s.asks[0]
	s.asks = append(s.asks[:0], s.asks[1:]...)
	p.tags.serve(&p.lane.level, f.want)
	s.serve(&p.level, f.want)
	if p.wanting.Len() > 0 {
		p.lane.ready.push(p, p.start)
	}
	if len(s.asks) > 0 {
		q.wait(s)
		if s.gate != nil {
			q.admit(now, s.gate)
		}
	}
	return f
}

// due is when grant will have something to give; not ok when nobody waits.
func (q *queue) due() (at clock.Mono, ok bool) {
	if q.road.ready.Len()+q.aside.ready.Len() > 0 {
		return q.total.free, true
	}
	if q.parked.Len() > 0 {
		at, ok = q.parked.first().free, true
	}
	for i := range q.gates {
		if g := &q.gates[i]; g.Len() > 0 && (!ok || g.free < at) {
			at, ok = g.free, true
		}
	}
	return at, ok
}

// limit changes all ceilings.
func (q *queue) limit(now clock.Mono, c Config) {
	q.total.change(now, c.Total)
	q.each = c.PerPrincipal
	for _, a := range q.names {
		a.change(now, c.PerPrincipal)
	}
	q.parked.rekey(func(p *principal) int64 { return int64(p.free) })
	for i := range q.gates {
		q.gates[i].change(now, c.outside(class.Class(i)))
	}
}
