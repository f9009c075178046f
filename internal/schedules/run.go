package schedules

import (
	"context"
	"fmt"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

const (
	jump       = 2 * time.Second // the wall clock moved this much against the monotonic one: it was set
	pruneEvery = time.Hour
	prunedMost = 1000 // fires removed at once
)

// Run fires schedules until the context ends. A database that fails is asked again with the next tick. When the wall clock
// is set, what lies ahead is read anew by the next tick (R26).
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(s.cfg.Tick)
	defer tick.Stop()
	var seen watch
	pruned := s.clock.Now()
	for {
		if now, wall := s.clock.Now(), s.now(); seen.moved(now, wall) {
			if err := s.Realign(ctx); err != nil {
				s.failed(ctx, err)
			} else {
				seen = watch{now, wall}
			}
		}
		if err := s.Fire(ctx); err != nil {
			s.failed(ctx, err)
		}
		if now := s.clock.Now(); now.Sub(pruned) >= pruneEvery {
			pruned = now
			if _, err := s.store.PruneFires(ctx, s.now().Add(-s.cfg.Keep), prunedMost); err != nil {
				s.failed(ctx, err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *Service) failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		s.cfg.Log.Warn("schedules wait for the database; fires are made up by their policies", "error", err)
	}
}

// watch is one look at both clocks; the zero watch is none.
type watch struct {
	mono clock.Mono
	wall time.Time
}

// moved reports whether the wall clock was set since the last look, which it takes anew unless so.
func (w *watch) moved(now clock.Mono, wall time.Time) bool {
	if w.wall.IsZero() {
		return true
	}
	if d := wall.Sub(w.wall) - now.Sub(w.mono); d > jump || d < -jump {
		return true
	}
	*w = watch{now, wall}
	return false
}

// Realign brings back schedules whose next fire lies further ahead than their rule says from now: it was computed by a
// clock that ran ahead, and would be waited for until then. What is overdue is left to Fire and its policies. Fires that
// were made are not made again: their instants are theirs.
func (s *Service) Realign(ctx context.Context) error {
	after := ""
	for {
		page, err := s.store.ActiveSchedules(ctx, after, batch)
		if err != nil {
			return fmt.Errorf("reading schedules anew: %w", err)
		}
		now := s.now()
		var claims []Claim
		for _, d := range page {
			after = d.ID
			if c, ahead := s.ahead(d, now); ahead {
				claims = append(claims, c)
			}
		}
		if len(claims) > 0 {
			if _, err := s.store.ClaimFires(ctx, claims); err != nil {
				return fmt.Errorf("moving schedules: %w", err)
			}
			s.cfg.Log.Info("schedules lay beyond their rules and were moved to the clock of now", "schedules", len(claims))
		}
		if len(page) < batch {
			return nil
		}
	}
}

// ahead is the move of a schedule that lies beyond its rule.
func (s *Service) ahead(d Schedule, now time.Time) (Claim, bool) {
	if !d.Due.After(now) {
		return Claim{}, false
	}
	rule, err := ParseRule(d.Plan.Rule, d.Plan.Zone)
	if err != nil {
		return Claim{}, false // Fire says so when it is due
	}
	next := d
	next.from(rule, now)
	if next.Instant.IsZero() || !next.Instant.Before(d.Instant) {
		return Claim{}, false
	}
	return Claim{Schedule: d.ID, Revision: d.Revision, From: d.Instant, Instant: next.Instant, Due: next.Due}, true
}
