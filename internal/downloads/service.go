package downloads

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/fault"
)

// Service is the download queue of one process. It is safe for concurrent use.
type Service struct {
	conf   Config
	clock  clock.Clock
	state  State
	signer Signer
	base   time.Time // wall time of the monotonic zero: arrivals keep their wall time whatever the wall does (D-8.2)
	marked bool      // the database says that downloads were waiting
	small  *small
	meters *meters

	mu       sync.Mutex // guards all below; held for microseconds, never over I/O
	machine  *session.Machine
	held     map[session.Key][]*hold // requests held open
	holding  int                     // of tools without an id
	atDoor   int                     // of called clients with one
	passes   int                     // open
	draining bool
	lastTick time.Duration
	hours    hours
	ticked   chan struct{} // closed at the next tick
	bookings bookings
	open     map[session.Key]map[*Pass]context.CancelCauseFunc // responses that a cancellation ends
	journal  *journal                                          // nil: none
	alone    chan struct{}                                     // closed when draining begins: every hold ends
}

// hold is one request held open; wake is closed when it should ask again.
type hold struct {
	wake chan struct{}
	most time.Duration
	door bool // a called client waits at the door for the seat about to come

	cancelled bool // the session was cancelled meanwhile; guarded by the service's lock
}

// New makes the queue. When downloads were waiting as the last process stopped, no seat is given for the first two
// seconds (D-2.12). A signer of nil works without tickets.
func New(ctx context.Context, conf Config, clk clock.Clock, state State, signer Signer) (*Service, error) {
	if err := conf.Validate(); err != nil {
		return nil, err
	}
	m, err := session.New(conf.Policy, conf.Seed)
	if err != nil {
		return nil, err
	}
	waiters, err := state.QueueMark(ctx)
	if err != nil {
		return nil, fmt.Errorf("read whether downloads were waiting: %w", err)
	}
	now := clk.Now()
	if waiters {
		m.Settle(now.Add(session.SettleFor))
	}
	s := &Service{
		conf: conf, clock: clk, state: state, signer: signer, base: clk.Wall().Add(-time.Duration(now)),
		marked: waiters, small: newSmall(conf.Small, clk), meters: newMeters(), machine: m,
		held: map[session.Key][]*hold{}, alone: make(chan struct{}), ticked: make(chan struct{}), bookings: newBookings(),
		open: map[session.Key]map[*Pass]context.CancelCauseFunc{},
	}
	s.turnWindows(now, clk.Wall())
	return s, nil
}

// Admit gives a response leave to send, or a *Waiting with the place in the queue, or another fault with a time to
// come back. A request without a download id blocks while it is held (D-2.4). The Pass must be closed.
func (s *Service) Admit(ctx context.Context, r Request) (*Pass, error) {
	applied, err := r.class()
	if err != nil {
		return nil, err
	}
	e := session.Event{
		Kind: session.Request, Key: r.Key(), Principal: digest(r.Principal.ID), Class: applied, Identified: r.DownloadID != "",
		Size: r.Size, From: r.From, To: r.To, Tail: r.Tail,
	}
	s.present(&e, r.Ticket)
	for { // settings that change meanwhile send a request from one admission to the other
		pass, h, err := s.ask(e, true)
		if h != nil {
			pass, err = s.wait(ctx, e, h)
		}
		if err == errElsewhere {
			pass, err = s.admitSmall(ctx, r, e)
		}
		if err != errElsewhere {
			return pass, err
		}
	}
}

// present lets a ticket speak for its session, if it is good (D-8.2).
func (s *Service) present(e *session.Event, ticket string) {
	if s.signer == nil || ticket == "" {
		return
	}
	if arrival, ok := s.signer.Verify(ticket, e.Key, s.clock.Wall()); ok {
		e.Ticketed, e.Arrival = true, clock.Mono(arrival.Sub(s.base))
	}
}

// wait keeps a request open until its session gets a seat, the hold is over, or the client is gone.
func (s *Service) wait(ctx context.Context, e session.Event, h *hold) (*Pass, error) {
	over := time.NewTimer(h.most)
	defer over.Stop()
	for {
		last := false
		select {
		case <-h.wake:
		case <-over.C:
			last = true
		case <-s.alone:
			last = true
		case <-ctx.Done():
			s.letGo(e.Key, h)
			return nil, ctx.Err()
		}
		s.letGo(e.Key, h)
		var pass *Pass
		if h.cancelled { // nobody else changes a hold that was let go
			return nil, errCancelled
		}
		var err error
		if pass, h, err = s.ask(e, !last); h == nil {
			return pass, err
		}
	}
}

// ask puts a request to the machine. When it must wait and may be held, a hold is opened instead of an answer.
func (s *Service) ask(e session.Event, mayHold bool) (*Pass, *hold, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.tooEarly(&e); err != nil {
		return nil, nil, err
	}
	if s.perRequest(e) {
		return nil, nil, errElsewhere
	}
	now := s.clock.Now()
	if s.draining && !s.machine.Active(e.Key) {
		return nil, nil, s.turnAway(now, e)
	}
	answer := s.apply(now, e)
	switch answer.Kind {
	case session.Serve:
		est, _ := s.machine.Estimate(now, e.Key)
		p := &Pass{service: s, key: e.Key, class: answer.Class, ticket: s.ticket(e.Key, est.Arrival, s.clock.Wall()), from: e.From, lane: s.lane(e.Key, answer.Class)}
		s.passes++
		return p, nil, nil
	case session.Refuse:
		s.meters.refused.WithLabelValues(answer.Bound).Inc()
		return nil, nil, fault.Later(fault.Busy, api.ReasonSessions, answer.RetryAfter, "the download queue is full; come back later")
	}
	if mayHold {
		if h := s.mayHold(now, e, answer); h != nil {
			s.held[e.Key] = append(s.held[e.Key], h)
			s.apply(now, session.Event{Kind: session.Hold, Key: e.Key})
			return nil, h, nil
		}
	}
	if answer.Kind == session.Surplus {
		return nil, nil, fault.Later(fault.Busy, api.ReasonRanges, answer.RetryAfter,
			"this download has %d responses open already; its place is kept", s.conf.Policy.RangesPerSession)
	}
	return nil, nil, s.waiting(now, e.Key)
}

// apply gives the machine an event, acts on what it decides about others, and returns what it says of the event's key.
func (s *Service) apply(now clock.Mono, e session.Event) (answer session.Effect) {
	for _, f := range s.machine.Apply(now, e) {
		s.act(f)
		if f.Key == e.Key && f.Kind <= session.Refuse {
			answer = f
		}
	}
	return answer
}

func (s *Service) act(f session.Effect) {
	s.meters.effect(f)
	if s.bookings.bySession[f.Key] != nil {
		s.bookings.effect(f, s.clock.Wall())
	}
	if f.Kind == session.Seated || f.Kind == session.Paused || f.Kind == session.Finished {
		s.wake(f.Key)
	}
}

func (s *Service) wake(k session.Key) {
	for _, h := range s.held[k] {
		select {
		case <-h.wake:
		default:
			close(h.wake)
		}
	}
}

// mayHold opens a hold for a request that must wait, if one may be: for a tool without an id (D-2.4), and for a client
// that was called and only waits for a seat about to come. It stands at the door then, and no seat waits for a poll.
func (s *Service) mayHold(now clock.Mono, e session.Event, answer session.Effect) *hold {
	h := &hold{wake: make(chan struct{}), most: s.conf.Hold, door: e.Identified}
	if !h.door {
		if s.draining || s.holding >= s.conf.HoldLimit {
			return nil
		}
		s.holding++
		return h
	}
	if answer.Kind != session.Wait || s.draining || s.atDoor >= doorMost(s.machine.Policy()) {
		return nil
	}
	if est, waits := s.machine.Estimate(now, e.Key); !waits || !est.Called {
		return nil
	}
	s.atDoor++
	h.most = session.Door
	return h
}

// doorMost bounds the requests at the door: as many as are called at once while seats turn over.
func doorMost(p session.Policy) int { return max(2*p.Sessions, 16) }

// letGo ends a hold; its session stays where it is.
func (s *Service) letGo(k session.Key, h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, o := range s.held[k] {
		if o == h {
			s.held[k] = append(s.held[k][:i], s.held[k][i+1:]...)
			if h.door {
				s.atDoor--
			} else {
				s.holding--
			}
			s.apply(s.clock.Now(), session.Event{Kind: session.Unhold, Key: k})
			break
		}
	}
	if len(s.held[k]) == 0 {
		delete(s.held, k)
	}
}

// waiting is the answer to a session in the queue.
func (s *Service) waiting(now clock.Mono, k session.Key) *Waiting {
	est, _ := s.machine.Answer(now, k)
	wall := s.clock.Wall()
	at := func(m clock.Mono) time.Time { return wall.Add(m.Sub(now)).Truncate(time.Millisecond) }
	check := est.Check.Sub(now)
	w := &Waiting{
		Fault: fault.Later(fault.Busy, api.ReasonQueued, check, "waiting for a seat; the place is kept"),
		Wait: api.Wait{
			Known: est.Known, Position: est.Position, CheckAt: at(est.Check), CheckInMillis: check.Milliseconds(), Class: est.Class.String(),
		},
		Ticket: s.ticket(k, est.Arrival, wall),
	}
	if est.Known {
		starts := [...]time.Time{at(est.Start), at(est.Earliest), at(est.Latest)}
		w.Wait.StartsAt, w.Wait.StartsEarliest, w.Wait.StartsLatest = &starts[0], &starts[1], &starts[2]
	}
	return w
}

// turnAway answers a request while the service stops: a session that waits keeps its place by its ticket (D-7.4).
func (s *Service) turnAway(now clock.Mono, e session.Event) error {
	busy := fault.Later(fault.Busy, api.ReasonDraining, drainRetry, "the server is stopping; come back in a few seconds")
	est, waits := s.machine.Estimate(now, e.Key)
	arrival := est.Arrival
	if !waits {
		if arrival = now; e.Ticketed {
			arrival = e.Arrival
		}
	}
	wall := s.clock.Wall()
	return &Waiting{
		Fault: busy, Ticket: s.ticket(e.Key, arrival, wall),
		Wait: api.Wait{CheckAt: wall.Add(drainRetry).Truncate(time.Millisecond), CheckInMillis: drainRetry.Milliseconds(), Class: e.Class.String()},
	}
}

// drainRetry is when clients turned away by a stopping server come back.
const drainRetry = 5 * time.Second

// ticket vouches at wall, the time now, for a place (D-8.1).
func (s *Service) ticket(k session.Key, arrival clock.Mono, wall time.Time) string {
	if s.signer == nil {
		return ""
	}
	return s.signer.Sign(k, s.base.Add(time.Duration(arrival)), wall)
}

// Drain ends every hold and turns away all that have no seat; active sessions go on (D-7.4).
func (s *Service) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.draining {
		s.draining = true
		close(s.alone)
	}
	s.small.drain()
}

// admitSmall admits one request by itself. A session that waited for a seat under earlier settings is over with that.
func (s *Service) admitSmall(ctx context.Context, r Request, e session.Event) (*Pass, error) {
	if err := s.small.enter(ctx, r.Principal.ID, e); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.machine.Active(e.Key) {
		s.apply(s.clock.Now(), session.Event{Kind: session.Cancel, Key: e.Key})
	}
	s.passes++
	return &Pass{service: s, class: e.Class, principal: r.Principal.ID, small: true}, nil
}
