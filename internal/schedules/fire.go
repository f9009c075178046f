package schedules

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/roadstead/roadstead/internal/fault"
)

// How fires are worked off.
const (
	batch      = 100              // schedules claimed in one transaction
	submitters = 4                // submits under way at once
	handover   = 30 * time.Second // who claimed a fire has this long to submit it before anybody may
	submitTime = 20 * time.Second // of one submit; less than the handover, so its claimer hears of it first
	longestTry = 10 * time.Minute // between two tries, at most
	giveUp     = 24 * time.Hour   // after this long without an answer whether there is a Run
	mostRounds = 100              // batches of one call
)

// Fire claims what is due and submits it, then what an earlier claim left behind. A fire is claimed and written in one
// transaction, so a crash between claim and submit leaves a pending fire, which whoever looks next submits under the same
// key: none is lost, none makes two Runs (R02). It may be called by any number of processes at once.
func (s *Service) Fire(ctx context.Context) error {
	for range mostRounds {
		now := s.now()
		due, err := s.store.DueSchedules(ctx, now, batch)
		if err != nil {
			return fmt.Errorf("looking for due schedules: %w", err)
		}
		claims := make([]Claim, 0, len(due))
		for _, d := range due {
			claims = append(claims, s.claim(d, now))
		}
		if len(claims) > 0 {
			fires, err := s.store.ClaimFires(ctx, claims)
			if err != nil {
				return fmt.Errorf("claiming fires: %w", err)
			}
			s.submitAll(ctx, fires)
		}
		if len(due) < batch || ctx.Err() != nil {
			break
		}
	}
	return s.sweep(ctx)
}

// claim moves an overdue schedule to its next fire from now, with the fires that its policy makes of what was due.
func (s *Service) claim(d Schedule, now time.Time) Claim {
	c := Claim{Schedule: d.ID, Revision: d.Revision, From: d.Instant}
	rule, err := ParseRule(d.Plan.Rule, d.Plan.Zone)
	if err != nil { // a zone that this machine's database does not have
		s.cfg.Log.Error("a schedule can't be read; it is looked at again in an hour", "schedule", d.ID, "error", err)
		c.Instant, c.Due = d.Instant, now.Add(time.Hour)
		return c
	}
	next := d
	next.from(rule, now)
	c.Instant, c.Due = next.Instant, next.Due
	made := d.made(rule, now, s.cfg.Grace)
	if len(made) == 0 || made[0].After(d.Instant) {
		f := d.fire(d.Instant, now)
		f.State, f.SettledAt, f.TryAt = MissedOut, now, time.Time{}
		f.Reason = fmt.Sprintf("nobody claimed it in time, with all between it and %s; catch-up is %s", now.Format(time.RFC3339), d.Plan.CatchUp.Policy)
		if len(made) > 0 {
			f.Reason = fmt.Sprintf("nobody claimed it in time, with all between it and %s; catch-up is %s", made[0].Format(time.RFC3339), d.Plan.CatchUp.Policy)
		}
		c.Fires = append(c.Fires, f)
	}
	for i, at := range made {
		f := d.fire(at, now)
		if f.Until = c.Due; i+1 < len(made) {
			f.Until = now // a newer one is there already
		}
		c.Fires = append(c.Fires, f)
	}
	return c
}

// fire is a pending one at an instant.
func (s Schedule) fire(at, now time.Time) Fire {
	return Fire{
		Schedule: s.ID, Instant: at, Due: at.Add(s.place()), State: Pending, TryAt: now.Add(handover), ClaimedAt: now,
		Order: Order{Tenant: s.Tenant, Name: s.Name, Owner: s.Owner, Overlap: s.Plan.Overlap, Refused: s.Plan.Refused, Template: s.Plan.Template},
	}
}

// made are the instants, oldest first, that an overdue schedule fires now. It looks no further back than the policy's age,
// and from near to far, so a clock set forward by years costs no more than one by an hour.
func (s Schedule) made(r Rule, now time.Time, grace time.Duration) []time.Time {
	most, ages := 1, []time.Duration{grace}
	if c := s.Plan.CatchUp; c.Policy != None {
		ages = []time.Duration{min(time.Hour, c.MaxAge), min(24*time.Hour, c.MaxAge), max(c.MaxAge, grace)}
		if c.Policy == All {
			most = c.Max
		}
	}
	end := now.Add(-s.place())
	var found []time.Time
	for _, age := range ages {
		begin := end.Add(-age)
		if begin.Before(s.Instant) {
			begin = s.Instant.Add(-time.Millisecond)
		}
		found = slices.AppendSeq(found[:0], r.Between(begin, end))
		if len(found) >= most || begin.Before(s.Instant) {
			break
		}
	}
	return found[max(0, len(found)-most):]
}

// sweep submits pending fires whose time has come.
func (s *Service) sweep(ctx context.Context) error {
	for ctx.Err() == nil {
		now := s.now()
		fires, err := s.store.PendingFires(ctx, now, now.Add(longestTry+handover), batch)
		if err != nil {
			return fmt.Errorf("looking for pending fires: %w", err)
		}
		var mine []Fire
		for _, f := range fires {
			taken, err := s.store.TakeFire(ctx, f, now.Add(handover))
			if err != nil {
				return fmt.Errorf("taking a pending fire: %w", err)
			}
			if f.TryAt = now.Add(handover); taken {
				mine = append(mine, f)
			}
		}
		s.submitAll(ctx, mine)
		if len(fires) < batch {
			break
		}
	}
	return ctx.Err()
}

// submitAll submits fires, a few at a time, those of one schedule in their order. What fails stays pending.
func (s *Service) submitAll(ctx context.Context, fires []Fire) {
	work := make(chan []Fire)
	var all sync.WaitGroup
	for range min(submitters, len(fires)) {
		all.Go(func() {
			for row := range work {
				for _, f := range row {
					s.submit(ctx, f)
				}
			}
		})
	}
	for len(fires) > 0 {
		n := 1
		for n < len(fires) && fires[n].Schedule == fires[0].Schedule {
			n++
		}
		work <- fires[:n]
		fires = fires[n:]
	}
	close(work)
	all.Wait()
}

// submit makes the Run of one fire and writes what came of it.
func (s *Service) submit(ctx context.Context, f Fire) {
	if f.State != Pending || ctx.Err() != nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, submitTime)
	defer cancel()
	run, err := s.submitter.SubmitScheduled(limited, f)
	if ctx.Err() != nil && err != nil {
		return
	}
	f = settled(f, run, err, s.now())
	if err := s.store.SettleFire(ctx, f); err != nil {
		// It stays pending, and the same key finds the same Run.
		s.cfg.Log.Warn("a fire of a schedule could not be settled; it is submitted again under its key", "schedule", f.Schedule, "error", err)
		return
	}
	if f.State != Submitted {
		s.cfg.Log.Warn("a fire of a schedule made no Run", "schedule", f.Schedule, "instant", f.Instant, "state", f.State, "reason", f.Reason, "error", err)
	}
}

// settled is a fire after a submit that was answered at an instant.
func settled(f Fire, run string, err error, now time.Time) Fire {
	f.Tries++
	if err == nil {
		f.State, f.Run, f.Reason, f.SettledAt = Submitted, run, "", now
		return f
	}
	refusal := fault.From(err)
	f.Reason = string(refusal.Code) + ": " + refusal.Message
	wait := min(longestTry, max(refusal.RetryAfter, time.Second<<min(f.Tries, 10)))
	known := refused(refusal.Code)
	switch {
	case refusal.Code == fault.Conflict && refusal.Reason == ReasonOverlap:
		f.State, f.SettledAt = Skipped, now
	case known && f.Order.Refused == Drop:
		f.State, f.SettledAt = Dropped, now
	case known && !f.Until.IsZero() && !now.Add(wait).Before(f.Until):
		f.State, f.SettledAt = Dropped, now
		f.Reason = "the next fire came first; " + f.Reason
	case now.Sub(f.ClaimedAt) > giveUp:
		f.State, f.SettledAt = Dropped, now
		f.Reason = "no answer within a day; " + f.Reason
	default:
		f.TryAt = now.Add(wait)
	}
	return f
}

// refused reports whether a code says for certain that there is no Run.
func refused(c fault.Code) bool {
	switch c {
	case fault.InvalidInput, fault.Unauthorized, fault.Forbidden, fault.NotFound, fault.Conflict, fault.RateLimited, fault.TooLarge,
		fault.CapacityExceeded, fault.IdempotencyMismatch:
		return true
	}
	return false
}
