package downloads

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/fault"
)

// Place is a session as the journal keeps it. Its times are wall times; those of Saved do not count.
type Place struct {
	session.Saved
	ArrivedAt time.Time
	EndsAt    time.Time // when it is forgotten; zero while it waits or has a seat
}

// BookingRow is a booking as the journal keeps it.
type BookingRow struct {
	Key    session.Key // of principal and download id
	Body   string
	EndsAt time.Time // when it is forgotten; zero while it holds
}

// Batch is what is written to the journal at once, or all that is in it.
type Batch struct {
	Alive    time.Time // when a living process wrote last; zero for a journal that was never written
	Places   []Place   // each key once
	Bookings []BookingRow
}

// Journal keeps places over a restart. All methods block on the database.
type Journal interface {
	// SaveJournal writes rows in one transaction, in place of earlier ones of their keys.
	SaveJournal(ctx context.Context, b Batch) error
	// LoadJournal is all that is kept.
	LoadJournal(ctx context.Context) (Batch, error)
	// SweepJournal forgets what ended before the instant.
	SweepJournal(ctx context.Context, before time.Time) error
	// ClearJournal forgets everything.
	ClearJournal(ctx context.Context) error
}

// The journal's pace. The document promises that a place written down survives; what came within the last second may
// have to come by its ticket.
const (
	journalEvery = time.Second      // between two transactions at least
	journalMost  = 4096             // rows of a transaction
	journalAlive = 20 * time.Second // between two signs of life of a queue in which nothing changes
	journalSweep = time.Minute
	journalWait  = 5 * time.Second  // for the database
	journalLate  = 10 * time.Second // behind for so long is worth saying
	journalKeeps = session.KeepGone // a journal that nobody wrote for longer is of no use: tickets are void by then too
)

// journal writes the changes of the queue. Only its own goroutine uses it, but for the last three, which the service's
// lock guards.
type journal struct {
	store   Journal
	unsaved Batch // taken from the machine, not written yet
	buf     []session.Saved
	written clock.Mono // last transaction
	swept   clock.Mono
	warned  bool

	pending int        // rows of unsaved
	failing bool       // the database did not take them
	since   clock.Mono // the journal was up to date last
}

// JournalState says how far the journal is behind.
type JournalState struct {
	Used    bool
	Unsaved int           // changes not written yet
	Behind  time.Duration // age of the oldest of them, about
	Failing bool          // the database did not take the last batch
}

// Late reports whether a crash now would lose more than the last seconds.
func (j JournalState) Late() bool { return j.Behind >= journalLate }

// Resume takes up the places that the journal kept, and writes to it from then on. Call it before Run and before the
// first request. Sessions that waited in the last 15 minutes of life wait again at their arrival; nobody gets a seat
// for the first two seconds, so that those who were first start first (D-2.12).
func (s *Service) Resume(ctx context.Context, store Journal) error {
	kept, err := store.LoadJournal(ctx)
	if err != nil {
		return fmt.Errorf("read the places of downloads: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, wall := s.clock.Now(), s.clock.Wall()
	j := &journal{store: store, written: now, swept: now, since: now}
	s.journal = j
	if !kept.Alive.IsZero() && wall.Sub(kept.Alive) > journalKeeps {
		s.machine.Track()
		return store.ClearJournal(ctx)
	}
	var saved []session.Saved
	waiters := false
	for _, p := range kept.Places {
		if !p.EndsAt.IsZero() && !p.EndsAt.After(wall) {
			continue
		}
		p.Arrival, p.Until = s.mono(p.ArrivedAt), now.Add(p.EndsAt.Sub(wall))
		waiters = waiters || p.State != session.SavedGone
		saved = append(saved, p.Saved)
	}
	for _, left := range s.machine.Restore(now, saved) {
		j.unsaved.Places = append(j.unsaved.Places, Place{
			Saved: session.Saved{Key: left.Key, Principal: left.Principal, State: session.SavedGone}, ArrivedAt: wall, EndsAt: wall,
		})
	}
	s.machine.Track()
	if waiters {
		s.machine.Settle(now.Add(session.SettleFor))
	}
	s.restoreBookings(kept.Bookings)
	return nil
}

// mono is a wall time as the machine counts it.
func (s *Service) mono(t time.Time) clock.Mono { return clock.Mono(t.Sub(s.base)) }

// wall is an instant of the machine as it is stored.
func (s *Service) wall(m clock.Mono) time.Time { return s.base.Add(time.Duration(m)) }

// keepJournal writes until the context ends, and what is left then.
func (s *Service) keepJournal(ctx context.Context) {
	if s.journal == nil {
		return
	}
	timer := time.NewTimer(journalEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), journalWait)
			defer cancel()
			for s.saveJournal(last) {
			}
			return
		case <-timer.C:
		}
		s.saveJournal(ctx)
		timer.Reset(journalEvery)
	}
}

// saveJournal writes one batch; more says that another could be written at once.
func (s *Service) saveJournal(ctx context.Context) (more bool) {
	j := s.journal
	now, wall := s.takeChanges()
	n := len(j.unsaved.Places) + len(j.unsaved.Bookings)
	if n == 0 && now.Sub(j.written) < journalAlive {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, journalWait)
	defer cancel()
	j.unsaved.Alive = wall
	err := j.store.SaveJournal(ctx, j.unsaved)
	s.judgeJournal(now, err)
	if err != nil {
		return false
	}
	j.written = now
	j.unsaved.Places, j.unsaved.Bookings = j.unsaved.Places[:0], j.unsaved.Bookings[:0]
	if now.Sub(j.swept) >= journalSweep {
		j.swept = now
		if err := j.store.SweepJournal(ctx, wall); err != nil {
			slog.Warn("the journal of downloads was not swept; it is tried again in a minute", "error", err)
		}
	}
	return n > 0
}

// takeChanges moves what changed into the batch, as much as it has room for.
func (s *Service) takeChanges() (now clock.Mono, wall time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.journal
	now, wall = s.clock.Now(), s.clock.Wall()
	if len(j.unsaved.Places)+len(j.unsaved.Bookings) == 0 { // what was not taken goes first, and no key is twice in a batch
		j.buf = s.machine.Changes(journalMost, j.buf[:0])
		for _, c := range j.buf {
			p := Place{Saved: c, ArrivedAt: s.wall(c.Arrival)}
			if c.State >= session.SavedPaused {
				p.EndsAt = s.wall(c.Until)
			}
			j.unsaved.Places = append(j.unsaved.Places, p)
		}
		j.unsaved.Bookings = s.takeBookings(j.unsaved.Bookings)
	}
	j.pending = len(j.unsaved.Places) + len(j.unsaved.Bookings)
	if s.left() == 0 && !j.failing {
		j.since = now
	}
	return now, wall
}

// left is how many changes the machine has not handed over yet. The caller holds the lock.
func (s *Service) left() int { return s.machine.Unsaved() + len(s.bookings.changed) }

// judgeJournal notes how a transaction went. Downloads go on without the database; only a restart would miss it.
func (s *Service) judgeJournal(now clock.Mono, err error) {
	if errors.Is(err, context.Canceled) {
		return // the service ends; the batch is written once more
	}
	j := s.journal
	s.mu.Lock()
	defer s.mu.Unlock()
	j.failing = err != nil
	if err == nil {
		j.pending, j.warned = 0, false
		return
	}
	if !j.warned {
		j.warned = true
		slog.Warn("the database does not take the places of downloads; after a crash now, clients without a ticket would queue anew",
			"unsaved", s.left()+j.pending, "code", fault.From(err).Code, "error", err)
	}
}

// Journal says how far the journal is behind.
func (s *Service) Journal() JournalState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.journal == nil {
		return JournalState{}
	}
	j := s.journal
	state := JournalState{Used: true, Unsaved: s.left() + j.pending, Failing: j.failing}
	if state.Failing || state.Unsaved > 0 {
		state.Behind = s.clock.Now().Sub(j.since)
	}
	return state
}
