// Package forerun plays the queue as it stands forward through the download machine on a virtual clock, so that an
// operator sees what other settings would do to those who wait before setting them (D-9).
//
// Every client is taken to be there when it is called and to read as fast as the link lets it; nothing else comes.
package forerun

import (
	"context"
	"fmt"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
)

// Queue is the queue as it stands.
type Queue struct {
	Now     clock.Mono
	Seated  []session.Saved // with a seat
	Waiting []session.Saved
	More    int   // wait beyond those
	Rate    int64 // bytes per second of the link; 0 when not known
}

// Rules are what the queue is played under.
type Rules struct {
	Policy  session.Policy
	Shared  bool // everybody at once, the link split evenly (D-3.3)
	Windows [class.Count]Window
}

// Window tells the state of a class's hours at an instant, as session.Machine.SetWindow takes it. Nil: always open.
type Window func(at clock.Mono) (open, outside bool, changes []clock.Mono)

// Fate is what becomes of one waiting session.
type Fate struct {
	Started, Finished bool
	Start, Finish     clock.Mono
}

// Result is a run.
type Result struct {
	Fates   []Fate     // by the index of Queue.Waiting
	Drained clock.Mono // the last start
	Done    clock.Mono // the last byte
	Whole   bool       // everybody was played to the end
}

// Play runs the queue to its end, or until the context ends: then the result is not whole. The same queue under the same
// rules gives the same result.
func Play(ctx context.Context, q Queue, rules Rules) (Result, error) {
	if q.Rate <= 0 {
		return Result{}, fmt.Errorf("play the queue forward: the rate of the link is not known")
	}
	if rules.Shared {
		return playShared(q), nil
	}
	p, err := newPlay(q, rules)
	if err != nil {
		return Result{}, fmt.Errorf("play the queue forward: %w", err)
	}
	if err := p.run(ctx); err != nil {
		return Result{}, fmt.Errorf("play the queue forward: %w", err)
	}
	return p.result(), nil
}

// client is one session in the run.
type client struct {
	session.Saved
	fate  *Fate // nil for those who had a seat before the run
	pos   int64
	left  float64 // bytes
	seats int     // index into the run's readers, plus one; 0 without a seat
}

// play is one run under seats.
type play struct {
	m       *session.Machine
	now     clock.Mono
	rate    float64
	windows [class.Count]Window
	turns   clock.Mono // when a window changes next; 0: none does
	clients map[session.Key]*client
	fates   []Fate
	readers []*client // who has a seat, in the order they took it
	by      map[session.Key]int
	open    int // clients that are not through
	waiting int
	ticks   int           // still to come at the machine's own pace
	stride  time.Duration // between two ticks afterwards
	seats   int
	freed   bool // a seat came free since the last tick
	broken  error
}

// far is later than any run.
const far = clock.Mono(1 << 61)

// agedATick is how many sessions the machine lets age per tick at least: those who had aged do so again first.
const agedATick = 2000

// Bounds of the stride: a minute decides about seats that may be taken back (D-4.5), so ticks come twice as often.
const (
	ticksInAll = 4000
	maxStride  = 30 * time.Second
)

func newPlay(q Queue, rules Rules) (*play, error) {
	n := len(q.Seated) + len(q.Waiting)
	p := &play{
		now: q.Now, rate: float64(q.Rate), windows: rules.Windows, clients: make(map[session.Key]*client, n),
		fates: make([]Fate, len(q.Waiting)), by: map[session.Key]int{}, open: n,
		ticks: 2 + len(q.Waiting)/agedATick,
	}
	policy := rules.Policy
	policy.AutoMin, policy.AutoMax, policy.MinRate = 0, 0, 0 // nobody is slow here, and the seats stay
	policy.MaxSessions, policy.MaxPerPrincipal, policy.LinkRate = n+1, n+1, q.Rate
	p.seats = policy.Sessions
	if err := p.seat(q, policy); err != nil {
		return nil, err
	}
	if err := p.m.Configure(p.now, policy); err != nil {
		return nil, err
	}
	p.turnWindows()
	p.waiting = len(q.Waiting)
	bytes := 0.0
	for i, s := range q.Waiting {
		c := p.add(s, &p.fates[i])
		bytes += c.left
	}
	if left := p.m.Restore(p.now, append([]session.Saved(nil), q.Waiting...)); len(left) > 0 {
		return nil, fmt.Errorf("%d of %d sessions do not fit", len(left), n)
	}
	p.m.Vouch(p.now, far)
	for _, s := range q.Waiting {
		p.apply(session.Event{Kind: session.Hold, Key: s.Key})
	}
	p.stride = min(max(time.Duration(bytes/p.rate*float64(time.Second))/ticksInAll, session.TickEvery), maxStride)
	return p, p.broken
}

// seat makes a machine in which those who have a seat have one again, whatever the policy: active sessions are never
// interrupted by settings (D-3), so there may be more of them than seats.
func (p *play) seat(q Queue, policy session.Policy) (err error) {
	roomy := policy
	roomy.Sessions = max(len(q.Seated), 1)
	roomy.Reserve, roomy.PerPrincipal, roomy.Preempt = 0, roomy.Sessions, false
	if p.m, err = session.New(roomy, 1); err != nil {
		return err
	}
	for _, s := range q.Seated {
		c := p.add(s, nil)
		p.m.Restore(p.now, []session.Saved{s})
		p.apply(p.request(c, c.pos))
		p.apply(session.Event{Kind: session.Finish, Key: c.Key, From: c.pos, To: c.pos})
	}
	return p.broken
}

func (p *play) add(s session.Saved, fate *Fate) *client {
	c := &client{Saved: s, fate: fate, left: float64(max(s.Left, 1)), pos: max(s.Size-s.Left, 0)}
	if s.Begun && s.Start >= 0 {
		c.pos = s.Start
		for _, sp := range s.Spans {
			if sp.From <= c.pos {
				c.pos = max(c.pos, sp.To)
			}
		}
	}
	p.clients[s.Key] = c
	return c
}

func (p *play) request(c *client, to int64) session.Event {
	return session.Event{
		Kind: session.Request, Key: c.Key, Principal: c.Principal, Class: c.Class, Identified: c.Identified, Size: c.Size, From: c.pos, To: to,
	}
}

func (p *play) result() Result {
	r := Result{Fates: p.fates, Drained: p.now, Done: p.now, Whole: p.open == 0}
	if r.Whole {
		r.Drained = 0
		for _, f := range p.fates {
			r.Drained = max(r.Drained, f.Start)
		}
	}
	return r
}
