package sim

import (
	"math/rand/v2"
	"time"

	"github.com/roadstead/roadstead/internal/core/session"
)

// How the server treats a request without a download id (D-2.4): for how long it is held, and how many at once.
const (
	holdFor  = 20 * time.Second
	holdsMax = 64
)

// Bounds of a client's wait: what it adds at random, and the least and most it waits whatever it is told (D-1.4).
const (
	maxJitter    = 5 * time.Second
	shortestWait = 250 * time.Millisecond
	longestWait  = time.Hour
)

// jitter draws the random part of client waits.
type jitter struct{ r *rand.Rand }

func newJitter(seed uint64) jitter { return jitter{rand.New(rand.NewPCG(seed, 6))} }

// add gives how long the SDK stays away when it is told a time, which it gets in milliseconds.
func (j jitter) add(told time.Duration) time.Duration {
	told = min(max(told, shortestWait), longestWait)
	return told + time.Duration(j.r.Int64N(int64(min(told/10, maxJitter))+1))
}

// wholeSeconds is how long a stock tool stays away: what Retry-After says.
func wholeSeconds(told time.Duration) time.Duration {
	return max(time.Second, (told + time.Second - 1).Truncate(time.Second))
}

// request is a client's request at the server: new, a poll, or the return of one that fell silent.
func (s *Simulation) request(c *client) {
	if c.held {
		s.unhold(c)
	}
	if !s.ticking {
		s.ticking = true
		s.agenda.plan(entry{at: s.now.Add(session.TickEvery), what: tick})
		s.second()
	}
	s.tally.polls++
	if c.state == coming {
		c.entered = s.now
	}
	answers := 0
	var answer session.Effect
	for _, e := range s.apply(c.ask()) {
		if e.Key == c.key && e.Kind <= session.Refuse {
			answer = e
			answers++
		}
	}
	if answers != 1 {
		s.fail("a request got %d answers instead of one", answers)
		return
	}
	switch answer.Kind {
	case session.Serve:
		s.serve(c)
	case session.Wait:
		s.enqueue(c)
	case session.Surplus, session.Refuse:
		s.comeBack(c, answer.RetryAfter)
	}
}

// serve lets a client's bytes flow.
func (s *Simulation) serve(c *client) {
	s.leaveQueue(c)
	if !c.begun {
		c.begun, c.started = true, s.now
	}
	c.state, c.told = reading, 0
	c.flow = s.link.add(c, c.principal, c.length())
	s.reads = append(s.reads, c)
}

// enqueue follows an answer to wait: a request without an id is held while there is room, a called client waits at
// the door, any other is answered.
func (s *Simulation) enqueue(c *client) {
	if c.state != waiting {
		c.state = waiting
		s.waiting++
	}
	if c.stock && s.holds < holdsMax {
		s.holds++
		c.held = true
		c.holding++
		s.agenda.plan(entry{at: s.now.Add(holdFor), what: release, client: c, hold: c.holding})
		s.apply(session.Event{Kind: session.Hold, Key: c.key})
		return
	}
	if e, ok := s.machine.Estimate(s.now, c.key); ok && e.Called && !c.stock && s.doors < 2*s.policy.Sessions {
		s.doors++
		c.held, c.atDoor = true, true
		c.holding++
		s.agenda.plan(entry{at: s.now.Add(session.Door), what: release, client: c, hold: c.holding})
		s.apply(session.Event{Kind: session.Hold, Key: c.key})
		return
	}
	s.answer(c)
}

// answer tells a waiting client its place and when to ask again.
func (s *Simulation) answer(c *client) {
	e, ok := s.machine.Answer(s.now, c.key)
	if !ok {
		s.fail("a session that was told to wait has no estimate")
		return
	}
	s.journal.estimate(s.now, e)
	if e.Known && !c.promised {
		c.promised, c.promise = true, e
	}
	c.ticketed, c.arrival = true, e.Arrival
	if c.fate == leavesQueue {
		if c.asks--; c.asks <= 0 {
			s.leaveQueue(c)
			s.end(c, gone)
			if c.cancels {
				s.apply(session.Event{Kind: session.Cancel, Key: c.key})
			}
			return
		}
	}
	s.comeBack(c, e.Check.Sub(s.now))
}

// comeBack plans the client's next request. The answer and the request take a round trip together.
func (s *Simulation) comeBack(c *client, wait time.Duration) {
	if c.stock {
		wait = wholeSeconds(wait)
	} else {
		wait = s.jitter.add(wait)
	}
	s.agenda.plan(entry{at: s.now.Add(wait + s.cfg.Latency), what: request, client: c})
}

// unhold ends the hold of a request.
func (s *Simulation) unhold(c *client) {
	if c.atDoor {
		s.doors--
	} else {
		s.holds--
	}
	c.held, c.atDoor = false, false
	s.apply(session.Event{Kind: session.Unhold, Key: c.key})
}

// release answers a request that was held long enough.
func (s *Simulation) release(c *client) {
	s.unhold(c)
	s.answer(c)
}

// leaveQueue counts a client out of the queue.
func (s *Simulation) leaveQueue(c *client) {
	if c.state == waiting {
		s.waiting--
	}
}

// boundaries lets the flows of clients that are asked for their seats end on the next range boundary (D-4.5). Between
// boundaries that nobody asks for, ranges follow each other as one flow: that changes nothing and is faster.
func (s *Simulation) boundaries() {
	for _, c := range s.reads {
		if c.asked || c.stock || !s.machine.Yielding(c.key) {
			continue
		}
		at := (c.from + c.flow.delivered() + rangeBytes) / rangeBytes * rangeBytes
		if length := at - c.from; length < c.flow.length {
			s.link.shorten(c.flow, length)
			c.asked = true
		}
	}
}

// through handles a flow that sent all it should: the end of the file, or the point where the client's fate strikes.
func (s *Simulation) through(c *client) {
	s.tell(c)
	at := c.from + c.flow.length
	s.stopReading(c)
	if at == c.size {
		c.finished = s.now.Add(s.cfg.Latency / 2)
		s.end(c, done)
		s.apply(session.Event{Kind: session.Finish, Key: c.key, From: c.from, To: c.size})
		return
	}
	if c.asked {
		from := c.from
		c.from, c.state, c.asked = at, silent, false
		s.apply(session.Event{Kind: session.Finish, Key: c.key, From: from, To: at})
		s.agenda.plan(entry{at: s.now.Add(s.cfg.Latency), what: request, client: c})
		return
	}
	if c.fate == leavesFile {
		s.end(c, gone) // the response stays open until the server sees the silence
		return
	}
	// Only whole ranges were delivered; the rest is asked for again.
	from := c.from
	c.from += (at - c.from) / rangeBytes * rangeBytes
	c.state, c.fate = silent, finishes
	s.apply(session.Event{Kind: session.Finish, Key: c.key, From: from, To: c.from})
	s.agenda.plan(entry{at: s.now.Add(c.silence), what: request, client: c})
}

// stopReading takes a client off the list of those whose bytes are told each tick.
func (s *Simulation) stopReading(c *client) {
	for i, r := range s.reads {
		if r == c {
			s.reads = append(s.reads[:i], s.reads[i+1:]...)
			return
		}
	}
}

// end closes a client's story.
func (s *Simulation) end(c *client, as state) {
	c.state = as
	s.open--
}
