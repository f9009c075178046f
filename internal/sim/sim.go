// Package sim runs a fleet of downloads against the real download machine on a virtual clock: days of fleet time in
// seconds, and the same result every time for the same seed (D-13.1).
package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
)

// Machine is the queue under study; *session.Machine is one. The methods mean what they mean there.
type Machine interface {
	Apply(now clock.Mono, e session.Event) []session.Effect
	Tick(now clock.Mono) (effects []session.Effect, next time.Duration)
	Estimate(now clock.Mono, k session.Key) (session.Estimate, bool)
	Answer(now clock.Mono, k session.Key) (session.Estimate, bool)
	Counts() session.Counts
	Yielding(k session.Key) bool
}

// settleLimit is how long the machine is watched after the last client: longer than any record is kept.
const settleLimit = 2 * session.KeepGone

// checkEvery is how many steps pass between looks at the context and reports of progress.
const checkEvery = 4096

// Progress tells how far a run is: the virtual time, and clients that are through out of all.
type Progress func(at time.Duration, through, clients int)

// Simulation is one run of one fleet. It is used once.
type Simulation struct {
	cfg     Config
	policy  session.Policy
	machine Machine
	fleet   []*client
	byKey   map[session.Key]*client
	link    *link
	agenda  agenda
	jitter  jitter
	journal *journal
	watch   Progress

	now     clock.Mono
	ticking bool
	open    int // clients that are neither done nor gone
	waiting int // clients in the queue
	reads   []*client
	holds   int // requests of stock tools that the server keeps open
	doors   int // requests of called clients that it keeps open
	tally   tally
	broken  error
}

// tally is what is counted along the way.
type tally struct {
	steps, polls, noShows int
	waited                time.Duration // time with anyone waiting
	carried               float64       // bytes the link carried meanwhile
}

// New prepares a run of a fleet against a machine made with cfg.Policy. watch may be nil.
func New(cfg Config, machine Machine, watch Progress) (*Simulation, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if watch == nil {
		watch = func(time.Duration, int, int) {}
	}
	s := &Simulation{
		cfg: cfg, policy: cfg.Policy(), machine: machine, fleet: newFleet(cfg), watch: watch,
		byKey: make(map[session.Key]*client, cfg.Clients), journal: newJournal(), jitter: newJitter(cfg.Seed),
		link: newLink(cfg.Link, cfg.peak(), cfg.Clients), open: cfg.Clients,
	}
	for _, c := range s.fleet {
		s.byKey[c.key] = c
		s.agenda.plan(entry{at: c.arrives.Add(cfg.Latency / 2), what: request, client: c})
	}
	return s, nil
}

// Run makes a machine for the fleet, runs it to the end and reports. Under the shared strategy there is no machine:
// everybody reads at once.
func Run(ctx context.Context, cfg Config, watch Progress) (Report, error) {
	if err := cfg.Validate(); err != nil {
		return Report{}, err
	}
	if cfg.Strategy == Shared {
		return runShared(cfg), nil
	}
	m, err := session.New(cfg.Policy(), cfg.Seed)
	if err != nil {
		return Report{}, fmt.Errorf("make the download machine: %w", err)
	}
	s, err := New(cfg, m, watch)
	if err != nil {
		return Report{}, err
	}
	return s.Run(ctx)
}

// Run plays the fleet to its end. An error means that the run was cancelled or that the machine broke a rule that
// holds for every fleet; clients that did not finish are in the report instead.
func (s *Simulation) Run(ctx context.Context) (Report, error) {
	horizon := s.horizon()
	for s.broken == nil {
		at, ok := s.next()
		if !ok || at > horizon {
			break
		}
		if s.open == 0 {
			horizon = min(horizon, s.lastFinish().Add(settleLimit))
		}
		s.advance(at)
		for f := s.link.through(); f != nil; f = s.link.through() {
			s.through(f.client)
		}
		for e, ok := s.agenda.due(at); ok && s.broken == nil; e, ok = s.agenda.due(at) {
			s.meet(e)
		}
		if s.tally.steps++; s.tally.steps%checkEvery == 0 {
			if err := ctx.Err(); err != nil {
				return Report{}, fmt.Errorf("simulate %s: %w", s.cfg.Line(), err)
			}
			s.watch(time.Duration(s.now), s.cfg.Clients-s.open, s.cfg.Clients)
		}
	}
	if s.broken != nil {
		return Report{}, fmt.Errorf("simulate %s: %s into the run: %w", s.cfg.Line(), time.Duration(s.now), s.broken)
	}
	return s.report(), nil
}

// next is the instant of whatever comes first, on the agenda or on the link.
func (s *Simulation) next() (clock.Mono, bool) {
	at, ok := s.agenda.next()
	if through, flowing := s.link.next(); flowing && (!ok || through < at) {
		return through, true
	}
	return at, ok
}

// advance moves the clock and the bytes.
func (s *Simulation) advance(to clock.Mono) {
	span := to.Sub(s.now)
	moved := s.link.advance(to)
	if s.waiting > 0 {
		s.tally.waited += span
		s.tally.carried += moved
	}
	s.now = to
}

// meet handles what is due.
func (s *Simulation) meet(e entry) {
	switch e.what {
	case tick:
		s.tick()
	case request:
		s.request(e.client)
	case release:
		if e.client.held && e.client.holding == e.hold {
			s.release(e.client)
		}
	case cut:
		s.apply(session.Event{Kind: session.Finish, Key: e.client.key})
	case second:
		s.tellAll()
		s.second()
	}
}

// second plans the telling at the end of the running second. The server tells of bytes as sockets take them; told
// once a tick only, a second's measure would hold bytes of the tick before it, and rates would seem higher than the
// link's.
func (s *Simulation) second() {
	if s.ticking {
		end := (s.now + 1).Add(time.Second) / clock.Mono(time.Second) * clock.Mono(time.Second)
		s.agenda.plan(entry{at: end - 1, what: second})
	}
}

// tick tells the machine what flowed since the last one and lets it decide. Ticks go on while the machine keeps
// records of any kind.
func (s *Simulation) tick() {
	s.tellAll()
	effects, next := s.machine.Tick(s.now)
	s.take(effects)
	s.boundaries()
	if s.machine.Counts().Sessions == 0 {
		s.ticking = false
		return
	}
	if next <= 0 {
		next = session.TickEvery
	}
	s.agenda.plan(entry{at: s.now.Add(next), what: tick})
}

// tellAll reports the bytes of every flow.
func (s *Simulation) tellAll() {
	for _, c := range s.reads {
		s.tell(c)
	}
}

// tell reports the bytes of a client's flow that the machine does not know of yet.
func (s *Simulation) tell(c *client) {
	if n := c.flow.delivered() - c.told; n > 0 {
		c.told += n
		s.apply(session.Event{Kind: session.Progress, Key: c.key, Bytes: n})
	}
}

// apply hands the machine an event and takes in what it decided. The slice is valid until the next call.
func (s *Simulation) apply(e session.Event) []session.Effect {
	effects := s.machine.Apply(s.now, e)
	s.take(effects)
	return effects
}

// take journals decisions, follows those that concern clients the machine was not asked about, and checks the seats.
func (s *Simulation) take(effects []session.Effect) {
	for _, e := range effects {
		s.journal.effect(s.now, e)
		switch e.Kind {
		case session.NoShow:
			s.tally.noShows++
		case session.Seated:
			s.agenda.plan(entry{at: s.now, what: request, client: s.byKey[e.Key]})
		case session.Paused:
			if c := s.byKey[e.Key]; c.fate == leavesFile && c.state == gone {
				s.agenda.plan(entry{at: s.now, what: cut, client: c})
			}
		}
	}
	counts, active := s.machine.Counts(), 0
	for _, c := range counts.Classes {
		active += c.Active
	}
	if active > s.policy.Sessions {
		s.fail("%d sessions are active on %d seats", active, s.policy.Sessions)
	}
	if low := active - counts.Classes[class.Interactive].Active; low > s.policy.Sessions-s.policy.Reserve {
		s.fail("%d sessions below interactive are active on %d seats with a reserve of %d", low, s.policy.Sessions, s.policy.Reserve)
	}
}

// fail notes the first rule that was broken; the run ends there.
func (s *Simulation) fail(format string, args ...any) {
	if s.broken == nil {
		s.broken = fmt.Errorf(format, args...)
	}
}

// horizon is when a run is given up: far beyond what the link and the clients' polls need.
func (s *Simulation) horizon() clock.Mono {
	var bytes float64
	for _, c := range s.fleet {
		bytes += float64(c.size)
	}
	rate := float64(s.cfg.Link)
	if peak := s.cfg.peak(); peak > 0 {
		rate = min(rate, peak*float64(s.cfg.Seats))
	}
	polls := time.Duration(s.cfg.Clients) * 10 * time.Second
	return clock.Mono(4 * bytes / rate * 1e9).Add(s.cfg.Spread + polls + time.Hour)
}

// lastFinish is when the last client that finished did.
func (s *Simulation) lastFinish() (last clock.Mono) {
	for _, c := range s.fleet {
		last = max(last, c.finished)
	}
	return last
}
