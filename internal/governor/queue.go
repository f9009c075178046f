package governor

import "github.com/roadstead/roadstead/internal/clock"

// queue decides whose bytes go next: token buckets say when, start-time fair queueing says who, first between
// principals, then between the sessions of one; the flows of a session go in turn. It is pure: no clock, no lock,
// time comes as an argument, and equal calls give equal answers.
type queue struct {
	total      bucket
	each       int64 // ceiling of one principal in bytes per second; 0 when there is none
	level            // of principals
	principals map[string]*principal
	sweepAt    int
	ready      line[*principal] // want bytes and are under their ceiling, by start tag
	parked     line[*principal] // want bytes and wait for their own bucket, by the instant it opens
	starved    bool             // the total bucket was all that held the ready ones back
	granted    []*Flow          // scratch of grant
}

type principal struct {
	place
	tags
	bucket
	level    // of its sessions
	name     string
	parked   bool // stands in the line of the parked
	late     bool // its own bucket, not it, was late: it was parked before its present turn
	flows    int  // open ones, over all sessions
	sessions map[[16]byte]*session
	wanting  line[*session]
}

type session struct {
	place
	tags
	of    *principal
	id    [16]byte
	flows int     // open ones
	asks  []*Flow // waiting, in the order they came
}

// level is the virtual time, in bytes, of one set of competitors.
type level struct {
	at    int64 // start tag of the last one served
	floor int64 // where newcomers begin: the furthest end of those who left, so that leaving forgives nothing
}

// tags place one competitor in its level. One that begins to want starts at the level's virtual time, or at the end
// of what it was served before when that is later: no arrears for having been idle, no gain from having been greedy.
type tags struct{ start, finish int64 }

func (t *tags) begin(l *level) { t.start = max(l.at, t.finish) }

func (t *tags) serve(l *level, n int64) {
	l.at = t.start
	t.finish = t.start + n
	t.start = t.finish
}

func (t *tags) quit(l *level) { l.floor = max(l.floor, t.finish) }

// join opens a flow of a session. The zero session is nobody else's: each such flow stands for itself.
func (q *queue) join(now clock.Mono, name string, id [16]byte) *session {
	p := q.principals[name]
	if p == nil {
		q.sweep(now)
		p = &principal{name: name, sessions: map[[16]byte]*session{}}
		p.rate, p.finish = q.each, q.floor
		q.principals[name] = p
	}
	p.flows++
	s := p.sessions[id]
	if s == nil {
		s = &session{of: p, id: id}
		s.finish = p.floor
		if id != ([16]byte{}) {
			p.sessions[id] = s
		}
	}
	s.flows++
	return s
}

// leave closes a flow that is not waiting. A principal in debt to its own ceiling is remembered until it is paid, or
// it would shed the ceiling by hanging up.
func (q *queue) leave(now clock.Mono, s *session) {
	p := s.of
	if s.flows--; s.flows == 0 {
		s.quit(&p.level)
		delete(p.sessions, s.id)
	}
	if p.flows--; p.flows == 0 && p.open(now) {
		q.forget(p)
	}
}

func (q *queue) forget(p *principal) {
	p.quit(&q.level)
	delete(q.principals, p.name)
}

// sweep forgets the absent who have paid, each time the number of principals has doubled.
func (q *queue) sweep(now clock.Mono) {
	if len(q.principals) < q.sweepAt {
		return
	}
	for _, p := range q.principals {
		if p.flows == 0 && p.open(now) {
			q.forget(p)
		}
	}
	q.sweepAt = max(64, 2*len(q.principals))
}

// ask puts a flow in line for f.want bytes.
func (q *queue) ask(f *Flow) {
	s := f.session
	s.asks = append(s.asks, f)
	if len(s.asks) > 1 {
		return
	}
	p := s.of
	s.begin(&p.level)
	p.wanting.push(s, s.start)
	if p.wanting.Len() == 1 {
		p.begin(&q.level)
		q.ready.push(p, p.start)
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
	p := s.of
	if len(s.asks) > 0 {
		return
	}
	if p.wanting.remove(s); p.wanting.Len() > 0 {
		return
	}
	if p.parked {
		q.parked.remove(p)
		p.parked = false
	} else {
		q.ready.remove(p)
	}
}

// grant takes the flows that may send now out of the line. The slice is valid until the next call.
func (q *queue) grant(now clock.Mono) []*Flow {
	q.granted = q.granted[:0]
	for q.parked.Len() > 0 && q.parked.first().open(now) {
		p := q.parked.pop()
		p.parked, p.late = false, true
		p.begin(&q.level)
		q.ready.push(p, p.start)
	}
	late := q.starved
	q.starved = false
	for q.ready.Len() > 0 {
		if !q.total.open(now) {
			q.starved = true
			break
		}
		p := q.ready.pop()
		if !p.open(now) {
			q.park(p)
			continue
		}
		f := q.serve(p)
		q.total.take(now, f.want, late)
		p.take(now, f.want, p.late)
		p.late = false
		q.granted = append(q.granted, f)
		if p.wanting.Len() > 0 {
			q.ready.push(p, p.start)
		}
	}
	return q.granted
}

func (q *queue) park(p *principal) {
	p.parked = true
	q.parked.push(p, int64(p.free))
}

// serve gives p's turn to one of its flows.
func (q *queue) serve(p *principal) *Flow {
	s := p.wanting.pop()
	f := s.asks[0]
	s.asks = append(s.asks[:0], s.asks[1:]...)
	p.tags.serve(&q.level, f.want)
	s.serve(&p.level, f.want)
	if len(s.asks) > 0 {
		p.wanting.push(s, s.start)
	}
	return f
}

// due is when grant will have something to give; not ok when nobody waits.
func (q *queue) due() (at clock.Mono, ok bool) {
	if q.ready.Len() > 0 {
		return q.total.free, true
	}
	if q.parked.Len() > 0 {
		return q.parked.first().free, true
	}
	return 0, false
}

// limit changes both ceilings.
func (q *queue) limit(now clock.Mono, total, each int64) {
	q.total.change(now, total)
	q.each = each
	for _, p := range q.principals {
		p.change(now, each)
	}
	q.parked.rekey(func(p *principal) int64 { return int64(p.free) })
}
