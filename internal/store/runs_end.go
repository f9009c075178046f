package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/runs"
)

// CancelRun is runs.CancelRecords'.
func (s *Store) CancelRun(ctx context.Context, c runs.Cancellation, e audit.Entry) (ended runs.Ended, err error) {
	err = s.update(ctx, "cancelling a Run", func(tx *sql.Tx) error {
		r, err := readRun(ctx, tx, c.Run, s.engine.lockRow)
		if err != nil {
			return err
		}
		if ended = (runs.Ended{Run: r}); r.State.Ended() || r.Cancel {
			return nil
		}
		if ended, err = s.cancelIn(ctx, tx, r, c); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
	return ended, err
}

// cancelIn ends a queued Run or marks an active one, whose row the caller has read.
func (s *Store) cancelIn(ctx context.Context, tx *sql.Tx, r runs.Run, c runs.Cancellation) (runs.Ended, error) {
	if r.State == lifecycle.Queued {
		return s.endQueued(ctx, tx, r, lifecycle.Cancelled, c.Reason, c.Detail, c.At)
	}
	if r.State.Ended() || r.Cancel {
		return runs.Ended{Run: r}, nil
	}
	n, err := exec(ctx, tx, `UPDATE runs SET cancel = $3, cancel_reason = $4, version = version + 1 WHERE id = $1 AND version = $2`, r.ID, r.Version, true, c.Reason)
	if err != nil {
		return runs.Ended{}, err
	}
	if n == 0 {
		return runs.Ended{}, errLost
	}
	r.Cancel, r.Version = true, r.Version+1
	return runs.Ended{Run: r}, insertEvent(ctx, tx, runs.Event{Run: r.ID, At: c.At, Kind: runs.CancelRequested, Reason: string(c.Reason), Detail: c.Detail})
}

// EndQueuedRun ends a Run that never gets its turn: it waited too long, or can't fit. It is a conflict when the Run is not
// queued at that version any more.
func (s *Store) EndQueuedRun(ctx context.Context, id string, version int64, state lifecycle.Run, reason lifecycle.Reason, detail string, at time.Time) (ended runs.Ended, err error) {
	err = s.update(ctx, "ending a Run that waits", func(tx *sql.Tx) error {
		r, err := readRun(ctx, tx, id, s.engine.lockRow)
		if err != nil {
			return err
		}
		if r.State != lifecycle.Queued || r.Version != version {
			return fault.New(fault.Conflict, "Run %s is %s at version %d", id, r.State, r.Version)
		}
		ended, err = s.endQueued(ctx, tx, r, state, reason, detail, at)
		return err
	})
	return ended, err
}

func (s *Store) endQueued(ctx context.Context, tx *sql.Tx, r runs.Run, state lifecycle.Run, reason lifecycle.Reason, detail string, at time.Time) (ended runs.Ended, err error) {
	n, err := exec(ctx, tx, `
		UPDATE runs SET state = $3, reason = $4, ended_at = $5, waits_for = 0, version = version + 1
		WHERE id = $1 AND version = $2 AND state = 'queued'`, r.ID, r.Version, state, reason, millis(at))
	if err != nil {
		return ended, err
	}
	if n == 0 {
		return ended, errLost
	}
	end(&r, state, reason, at)
	r.Version++
	if err := insertEvent(ctx, tx, runs.Event{Run: r.ID, At: at, Kind: string(state), Reason: string(reason), Detail: detail}); err != nil {
		return ended, err
	}
	ended.Run = r
	return ended, s.settleDependents(ctx, tx, &ended, at)
}

// EndAttempt ends an Attempt: its holds end, its cost is settled, and its Run goes on or ends, in one transaction
// . One that isn't in a state named in From, or has another fence, is a conflict.
func (s *Store) EndAttempt(ctx context.Context, e runs.Ending) (ended runs.Ended, err error) {
	err = s.update(ctx, "ending an Attempt", func(tx *sql.Tx) error {
		ended, err = s.endAttemptIn(ctx, tx, e)
		return err
	})
	return ended, err
}

func (s *Store) endAttemptIn(ctx context.Context, tx *sql.Tx, e runs.Ending) (ended runs.Ended, err error) {
	a, err := readAttempt(ctx, tx, e.Attempt, s.engine.lockRow)
	if err != nil {
		return ended, err
	}
	from := false
	for _, state := range e.From {
		from = from || state == a.State
	}
	if !from || a.Fence != e.Fence || !a.State.MayBecome(e.State) {
		refusal := fault.New(fault.Conflict, "Attempt %s is %s (%s)", a.ID, a.State, a.Reason)
		refusal.Reason = "attempt_" + string(a.State)
		return ended, refusal
	}
	r, err := readRun(ctx, tx, a.Run, s.engine.lockRow)
	if err != nil {
		return ended, err
	}
	if _, err := exec(ctx, tx, `UPDATE attempts SET state = $2, reason = $3, detail = $4, ended_at = $5, cost = $6 WHERE id = $1`,
		a.ID, e.State, e.Reason, e.Detail, millis(e.At), e.CostMicro); err != nil {
		return ended, err
	}
	if err := endHolds(ctx, tx, a, e.CostMicro); err != nil {
		return ended, err
	}
	if r.State != lifecycle.Active || r.Fence != a.Fence {
		ended.Run = r // the Run has gone on without this Attempt
		return ended, nil
	}
	return s.goOn(ctx, tx, r, e)
}

// endHolds gives back what the Attempt held and books what it cost.
func endHolds(ctx context.Context, tx *sql.Tx, a runs.Attempt, cost int64) error {
	if _, err := exec(ctx, tx, `DELETE FROM holds WHERE attempt = $1`, a.ID); err != nil || cost == 0 {
		return err
	}
	_, err := exec(ctx, tx, `UPDATE budgets SET spent = spent + $2 WHERE tenant = $1`, a.Tenant, cost)
	return err
}

// goOn decides what becomes of the Run of an Attempt that ended.
func (s *Store) goOn(ctx context.Context, tx *sql.Tx, r runs.Run, e runs.Ending) (ended runs.Ended, err error) {
	spec, err := readSpec(ctx, tx, r.ID)
	if err != nil {
		return ended, err
	}
	state, wait := lifecycle.Next(lifecycle.Ending{State: e.State, Reason: e.Reason, Cancel: r.Cancel}, spec.RetryPolicy(), r.Failures, r.Losses)
	reason := e.Reason
	if state == lifecycle.Cancelled {
		if err := tx.QueryRowContext(ctx, `SELECT cancel_reason FROM runs WHERE id = $1`, r.ID).Scan(&reason); err != nil {
			return ended, err
		}
		if reason == "" {
			reason = e.Reason
		}
	}
	switch {
	case e.State == lifecycle.AttemptFailed:
		r.Failures++
	case e.State == lifecycle.AttemptInterrupted && e.Reason != lifecycle.NotStarted:
		r.Losses++
	}
	r.State, r.SpentMicro, r.Version = state, r.SpentMicro+e.CostMicro, r.Version+1
	kind := string(state)
	if state == lifecycle.Queued {
		kind = runs.Retried
		r.NextEligible = e.At.Add(wait)
		r.EligibleAt, r.Inserted = r.NextEligible, e.At.UnixMilli()
		r.Reason = ""
	} else {
		r.Reason, r.EndedAt = reason, e.At
	}
	if err := s.writeRun(ctx, tx, r); err != nil {
		return ended, err
	}
	event := runs.Event{Run: r.ID, At: e.At, Kind: kind, Attempt: e.Attempt, Reason: string(reason), Detail: e.Detail}
	if err := insertEvent(ctx, tx, event); err != nil {
		return ended, err
	}
	if state == lifecycle.Succeeded {
		if err := insertResults(ctx, tx, r.ID, e); err != nil {
			return ended, err
		}
	}
	ended.Run = r
	if !state.Ended() {
		return ended, nil
	}
	return ended, s.settleDependents(ctx, tx, &ended, e.At)
}

// writeRun writes what an ending changes of a Run, if it still is at the version before.
func (s *Store) writeRun(ctx context.Context, tx *sql.Tx, r runs.Run) error {
	n, err := exec(ctx, tx, `
		UPDATE runs SET state = $3, reason = $4, version = version + 1, next_eligible = $5, eligible_at = $6, failures = $7, losses = $8,
			ended_at = $9, spent = $10, inserted = $11
		WHERE id = $1 AND version = $2 AND state = 'active'`,
		r.ID, r.Version-1, r.State, r.Reason, millis(r.NextEligible), millis(r.EligibleAt), r.Failures, r.Losses, millis(r.EndedAt), r.SpentMicro, r.Inserted)
	if err == nil && n == 0 {
		return errLost
	}
	return err
}

func insertResults(ctx context.Context, tx *sql.Tx, run string, e runs.Ending) error {
	for _, res := range e.Results {
		if _, err := exec(ctx, tx, `INSERT INTO run_results (run, name, attempt, digest, size, media_type) VALUES ($1, $2, $3, $4, $5, $6)`,
			run, res.Name, e.Attempt, res.Digest, res.Size, res.MediaType); err != nil {
			return err
		}
	}
	return nil
}

// settleDependents tells those who waited for the Run how it ended: they are freed, or can't start any more and end
// too, and so on.
func (s *Store) settleDependents(ctx context.Context, tx *sql.Tx, ended *runs.Ended, at time.Time) error {
	open := []runs.Run{ended.Run}
	for len(open) > 0 {
		done := open[0]
		open = open[1:]
		waiting, err := list(ctx, tx, func(r row) (n need, err error) { return n, r.Scan(&n.id, &n.when) },
			`SELECT run, required FROM run_dependencies WHERE needs = $1 ORDER BY run`, done.ID)
		if err != nil {
			return err
		}
		for _, w := range waiting {
			r, err := readRun(ctx, tx, w.id, s.engine.lockRow)
			if err != nil {
				return err
			}
			if r.State != lifecycle.Queued {
				continue
			}
			if meets(done.State, w.when) {
				err = s.meetOne(ctx, tx, r, ended, at)
			} else {
				err = s.drop(ctx, tx, r, done, ended, at)
				end(&r, lifecycle.Cancelled, lifecycle.DependencyFailed, at)
				open = append(open, r)
			}
			if err != nil {
				return err
			}
		}
		if _, err := exec(ctx, tx, `DELETE FROM run_dependencies WHERE needs = $1`, done.ID); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) meetOne(ctx context.Context, tx *sql.Tx, r runs.Run, ended *runs.Ended, at time.Time) error {
	if r.WaitsFor > 1 {
		_, err := exec(ctx, tx, `UPDATE runs SET waits_for = waits_for - 1, version = version + 1 WHERE id = $1`, r.ID)
		return err
	}
	next := max(millis(r.NextEligible), millis(at))
	if _, err := exec(ctx, tx, `UPDATE runs SET waits_for = 0, version = version + 1, next_eligible = $2, eligible_at = $2, inserted = $3 WHERE id = $1`,
		r.ID, next, millis(at)); err != nil {
		return err
	}
	ended.Freed = append(ended.Freed, r.ID)
	return insertEvent(ctx, tx, runs.Event{Run: r.ID, At: at, Kind: runs.DependencyMet})
}

func (s *Store) drop(ctx context.Context, tx *sql.Tx, r, because runs.Run, ended *runs.Ended, at time.Time) error {
	if _, err := exec(ctx, tx, `UPDATE runs SET state = 'cancelled', reason = $2, ended_at = $3, waits_for = 0, version = version + 1 WHERE id = $1 AND state = 'queued'`,
		r.ID, lifecycle.DependencyFailed, millis(at)); err != nil {
		return err
	}
	ended.Dropped = append(ended.Dropped, r.ID)
	return insertEvent(ctx, tx, runs.Event{Run: r.ID, At: at, Kind: string(lifecycle.Cancelled), Reason: string(lifecycle.DependencyFailed), Detail: because.ID + " ended " + string(because.State)})
}
