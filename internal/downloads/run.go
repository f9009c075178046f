package downloads

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/core/session"
)

// Run ticks until the context ends. A tick comes every half second, or after ten times the length of the last one if
// that is longer, so that the queue never takes more than a tenth of a core (D-7.2).
func (s *Service) Run(ctx context.Context) error {
	timer := time.NewTimer(session.TickEvery)
	defer timer.Stop()
	var journal sync.WaitGroup
	journal.Go(func() { s.keepJournal(ctx) })
	defer journal.Wait()
	mark := mark{state: s.state, value: s.marked}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		next, waiting := s.tick()
		mark.keep(ctx, waiting)
		timer.Reset(next)
	}
}

// pause is the time to the next tick: as the machine asks, or ten times the length of the last one (D-7.2).
func pause(asked, last time.Duration) time.Duration { return max(asked, 10*last) }

func (s *Service) tick() (next time.Duration, waiting bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := s.clock.Now()
	if wall := s.clock.Wall(); s.hours.turns(began, wall) {
		s.turnWindows(began, wall)
	}
	effects, next := s.machine.Tick(began)
	for _, f := range effects {
		s.act(f)
	}
	s.bookings.sweep(s.clock.Wall())
	close(s.ticked)
	s.ticked = make(chan struct{})
	s.lastTick = s.clock.Now().Sub(began)
	s.meters.tick.Observe(s.lastTick.Seconds())
	for _, c := range s.machine.Counts().Classes {
		waiting = waiting || c.Waiting > 0
	}
	return pause(next, s.lastTick), waiting
}

// nextTick is closed when the next tick is over: places are known then.
func (s *Service) nextTick() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ticked
}

// mark writes down when the queue stops or begins to be empty.
type mark struct {
	state  State
	value  bool // what the database has
	quiet  int  // ticks without anybody waiting
	warned bool
}

// keepQuiet is how many empty ticks pass before the mark is taken back: a queue at the edge of empty writes little.
const keepQuiet = 20

func (m *mark) keep(ctx context.Context, waiting bool) {
	if m.quiet++; waiting {
		m.quiet = 0
	}
	want := waiting || m.quiet < keepQuiet && m.value
	if want == m.value {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := m.state.SetQueueMark(ctx, want); err != nil {
		if !m.warned {
			slog.Warn("the database did not take the queue's mark; after a crash now, downloads would start before those that waited", "error", err)
		}
		m.warned = true
		return
	}
	m.value, m.warned = want, false
}

// Queue is the operator's view (D-11.2).
func (s *Service) Queue() api.Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, wall, c, p := s.clock.Now(), s.clock.Wall(), s.machine.Counts(), s.machine.Policy()
	q := api.Queue{
		Strategy: s.conf.Strategy(), Admission: s.conf.Admission(), Seats: p.Sessions, Reserve: p.Reserve, PerPrincipal: p.PerPrincipal, RateBytes: c.Rate,
		TickSeconds: s.lastTick.Seconds(), AsOf: wall.Truncate(time.Millisecond), Estimates: s.meters.coverage.estimates(),
	}
	waiting := 0
	for i, n := range c.Classes {
		waiting += n.Waiting
		q.SeatsInUse += n.Active
		row := api.QueueClass{
			Class: class.Class(i).String(), Weight: int(p.Weights[i]), Waiting: n.Waiting, Active: n.Active, Aside: n.Aside, Paused: n.Paused,
			Held: n.Held, WaitingBytes: n.WaitingBytes,
		}
		if n.Waiting > 0 {
			row.HeadWaitSeconds = now.Sub(n.Head).Seconds()
		}
		q.Classes = append(q.Classes, row)
	}
	if drained, known := s.machine.Drained(now); known && waiting > 0 {
		at := wall.Add(drained.Sub(now)).Truncate(time.Millisecond)
		q.DrainsAt = &at
	}
	s.compare(&q)
	return q
}

// compare tells how unlike the waiting sizes are, and which strategy serves them better (D-11.2).
func (s *Service) compare(q *api.Queue) {
	g, known := s.machine.Gini()
	if !known {
		return
	}
	g = math.Round(g*1000) / 1000
	q.SizeGini = &g
	if g >= giniAdvice && s.conf.Strategy() == api.StrategyOrdered {
		q.Advice = fmt.Sprintf("the waiting sizes differ much (Gini coefficient %.2f): smallest-first would make the mean wait shorter; from 0.5 on even sharing the link would", g)
	}
}

// giniAdvice is from where on the strategy smallest-first is worth saying.
const giniAdvice = 0.4

// betweenRanges is how long a client may take from one range to the next and still count as being sent to.
const betweenRanges = 2 * time.Second

// Sending counts the downloads under way, those between two ranges included: a stopping server waits for them (D-7.4).
func (s *Service) Sending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.Sending(s.clock.Now(), betweenRanges)
}
