package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/attempts"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/runs"
)

var _ attempts.Records = (*Store)(nil)

// living is the condition of Attempts that have not ended, as the partial indexes have it.
const living = `a.state IN ('assigned', 'starting', 'running', 'finalizing')`

// Beat is attempts.LeaseRecords'. Renewals are counted: who judges a lease compares counts, not clocks.
func (s *Store) Beat(ctx context.Context, b attempts.Beat) (held attempts.Held, err error) {
	err = s.update(ctx, "renewing leases", func(tx *sql.Tx) error {
		// The Attempts before the runner: whoever ends an Attempt may wait for a budget, and whoever holds that for the runner.
		for _, h := range sortedHolds(b.Holds) {
			if _, err := exec(ctx, tx, `UPDATE attempts AS a SET beats = beats + 1, lease_until = $4 WHERE a.id = $1 AND a.runner = $2 AND a.fence = $3 AND `+living,
				h.Attempt, b.Runner, h.Fence, millis(b.LeaseUntil)); err != nil {
				return err
			}
		}
		n, err := exec(ctx, tx, `UPDATE runners SET beats = beats + 1, seen_at = $2, acked = CASE WHEN acked < $3 THEN $3 ELSE acked END WHERE id = $1`,
			b.Runner, millis(b.At), b.Acknowledged)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.Missing("runner " + b.Runner)
		}
		if b.Capacity != nil {
			text, err := json.Marshal(b.Capacity)
			if err != nil {
				return err
			}
			if _, err := exec(ctx, tx, `UPDATE runners SET capacity = $2 WHERE id = $1`, b.Runner, string(text)); err != nil {
				return err
			}
		}
		held, err = s.heldBy(ctx, tx, b.Runner, b.Holds)
		return err
	})
	return held, err
}

// sortedHolds gives the rows in the order in which every writer takes them.
func sortedHolds(holds []api.HeldLease) []api.HeldLease {
	return slices.SortedFunc(slices.Values(holds), func(a, b api.HeldLease) int {
		if a.Attempt < b.Attempt {
			return -1
		}
		return 1
	})
}

// Held is attempts.LeaseRecords'.
func (s *Store) Held(ctx context.Context, runner string, holds []api.HeldLease) (attempts.Held, error) {
	held, err := s.heldBy(ctx, s.read, runner, holds)
	return held, s.fail("reading a runner's Attempts", err)
}

func (s *Store) heldBy(ctx context.Context, q querier, runner string, holds []api.HeldLease) (held attempts.Held, err error) {
	if err = q.QueryRowContext(ctx, `SELECT sequence FROM runners WHERE id = $1`, runner).Scan(&held.Latest); err != nil {
		return held, missing(err, "runner "+runner)
	}
	held.Live, err = list(ctx, q, func(r row) (l attempts.Lease, err error) {
		l.Attempt, err = scanAttempt(withExtra{r, []any{&l.Cancel}})
		return l, err
	}, `SELECT `+attemptColumns+`, r.cancel FROM attempts a JOIN runs r ON r.id = a.run WHERE a.runner = $1 AND `+living+` ORDER BY a.sequence`, runner)
	if err != nil {
		return held, err
	}
	for _, h := range holds {
		mine := slices.ContainsFunc(held.Live, func(l attempts.Lease) bool { return l.Attempt.ID == h.Attempt && l.Attempt.Fence == h.Fence })
		if !mine {
			held.Lost = append(held.Lost, h.Attempt)
		}
	}
	return held, nil
}

// withExtra scans columns after those that a scan function knows.
type withExtra struct {
	row
	extra []any
}

func (w withExtra) Scan(dest ...any) error { return w.row.Scan(append(dest, w.extra...)...) }

// held reads the Attempt in the transaction, locked, and refuses a caller whose it isn't.
func (s *Store) heldAttempt(ctx context.Context, tx *sql.Tx, h attempts.Holder) (runs.Attempt, error) {
	a, err := readAttempt(ctx, tx, h.Attempt, s.engine.lockRow)
	if fault.Is(err, fault.NotFound) || err == nil && (a.Runner != h.Runner || a.Fence != h.Fence) {
		return a, attempts.Lost(h.Attempt)
	}
	return a, err
}

// StartAttempt is attempts.JobRecords'.
func (s *Store) StartAttempt(ctx context.Context, h attempts.Holder, at time.Time) (a runs.Attempt, r runs.Run, spec runs.Spec, err error) {
	err = s.update(ctx, "starting an Attempt", func(tx *sql.Tx) error {
		if a, err = s.heldAttempt(ctx, tx, h); err != nil {
			return err
		}
		if r, err = readRun(ctx, tx, a.Run, s.engine.lockRow); err != nil {
			return err
		}
		if spec, err = readSpec(ctx, tx, a.Run); err != nil {
			return err
		}
		switch a.State {
		case lifecycle.Starting:
			return nil
		case lifecycle.Assigned:
		default:
			return attempts.Lost(h.Attempt)
		}
		if r.Cancel {
			return attempts.Lost(h.Attempt)
		}
		a.State = lifecycle.Starting
		if _, err := exec(ctx, tx, `UPDATE attempts SET state = 'starting' WHERE id = $1 AND state = 'assigned'`, a.ID); err != nil {
			return err
		}
		return insertEvent(ctx, tx, runs.Event{Run: a.Run, At: at, Kind: runs.Starting, Attempt: a.ID})
	})
	return a, r, spec, err
}

// LaunchAttempt is attempts.JobRecords'.
func (s *Store) LaunchAttempt(ctx context.Context, h attempts.Holder, at time.Time) (a runs.Attempt, err error) {
	err = s.update(ctx, "noting an Attempt's start", func(tx *sql.Tx) error {
		if a, err = s.heldAttempt(ctx, tx, h); err != nil {
			return err
		}
		switch a.State {
		case lifecycle.Running:
			return nil
		case lifecycle.Starting:
		default:
			return attempts.Lost(h.Attempt)
		}
		a.State, a.StartedAt = lifecycle.Running, at
		if _, err := exec(ctx, tx, `UPDATE attempts SET state = 'running', started_at = $2 WHERE id = $1 AND state = 'starting'`, a.ID, millis(at)); err != nil {
			return err
		}
		if _, err := exec(ctx, tx, `UPDATE runs SET started_at = $2 WHERE id = $1`, a.Run, millis(at)); err != nil {
			return err
		}
		return insertEvent(ctx, tx, runs.Event{Run: a.Run, At: at, Kind: runs.Running, Attempt: a.ID})
	})
	return a, err
}

// LiveAttempt is attempts.JobRecords'.
func (s *Store) LiveAttempt(ctx context.Context, h attempts.Holder) (a runs.Attempt, spec runs.Spec, err error) {
	a, err = readAttempt(ctx, s.read, h.Attempt, "")
	if fault.Is(err, fault.NotFound) || err == nil && (a.Runner != h.Runner || a.Fence != h.Fence || a.State.Ended()) {
		return a, spec, attempts.Lost(h.Attempt)
	}
	if err == nil {
		spec, err = readSpec(ctx, s.read, a.Run)
	}
	return a, spec, s.fail("reading an Attempt", err)
}

// AppendLogs is attempts.JobRecords'. The Attempt's row is held, so pieces never overlap.
func (s *Store) AppendLogs(ctx context.Context, h attempts.Holder, first int64, lines []api.JobLine, progress *api.Progress) (a runs.Attempt, err error) {
	err = s.update(ctx, "storing logs", func(tx *sql.Tx) error {
		if a, err = s.heldAttempt(ctx, tx, h); err != nil {
			return err
		}
		if a.State.Ended() || a.State == lifecycle.Assigned {
			return attempts.Lost(h.Attempt)
		}
		if err := appendLines(ctx, tx, a, first, lines); err != nil || progress == nil {
			return err
		}
		_, err := exec(ctx, tx, `
			INSERT INTO run_progress (run, fraction, message, at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (run) DO UPDATE SET fraction = excluded.fraction, message = excluded.message, at = excluded.at`,
			a.Run, progress.Fraction, progress.Message, millis(progress.At))
		return err
	})
	return a, err
}

func appendLines(ctx context.Context, tx *sql.Tx, a runs.Attempt, first int64, lines []api.JobLine) error {
	var next int64
	err := tx.QueryRowContext(ctx, `SELECT first + lines FROM run_logs WHERE run = $1 AND number = $2 ORDER BY first DESC LIMIT 1`, a.Run, a.Number).Scan(&next)
	if errors.Is(err, sql.ErrNoRows) {
		next, err = 1, nil
	}
	if err != nil {
		return err
	}
	if first > next {
		return fault.Invalid("first", "lines up to %d are stored, %d must follow and not %d", next-1, next, first)
	}
	known := min(next-first, int64(len(lines)))
	if lines = lines[known:]; len(lines) == 0 {
		return nil
	}
	body, err := json.Marshal(lines)
	if err != nil {
		return err
	}
	_, err = exec(ctx, tx, `INSERT INTO run_logs (run, attempt, number, first, lines, body) VALUES ($1, $2, $3, $4, $5, $6)`,
		a.Run, a.ID, a.Number, first+known, len(lines), string(body))
	return err
}

// ReportAttempt is attempts.JobRecords'.
func (s *Store) ReportAttempt(ctx context.Context, h attempts.Holder, report string, at time.Time) (a runs.Attempt, repeated bool, err error) {
	err = s.update(ctx, "taking an Attempt's report", func(tx *sql.Tx) error {
		repeated = false
		if a, err = s.heldAttempt(ctx, tx, h); err != nil {
			return err
		}
		if a.Report != "" {
			if a.Report != report {
				refusal := fault.New(fault.Conflict, "Attempt %s was reported otherwise before, and that counts", a.ID)
				refusal.Reason = "report_differs"
				return refusal
			}
			repeated = true
			return nil
		}
		if a.State != lifecycle.Starting && a.State != lifecycle.Running && a.State != lifecycle.Assigned {
			return attempts.Lost(h.Attempt)
		}
		// The Run's row is held for the number of its event.
		if _, err := readRun(ctx, tx, a.Run, s.engine.lockRow); err != nil {
			return err
		}
		a.State, a.Report, a.EndedAt = lifecycle.Finalizing, report, at
		if _, err := exec(ctx, tx, `UPDATE attempts SET state = 'finalizing', report = $2, ended_at = $3 WHERE id = $1`, a.ID, report, millis(at)); err != nil {
			return err
		}
		return insertEvent(ctx, tx, runs.Event{Run: a.Run, At: at, Kind: runs.Finalizing, Attempt: a.ID})
	})
	return a, repeated, err
}

// Unfinished is attempts.JobRecords'.
func (s *Store) Unfinished(ctx context.Context, after string, limit int) ([]attempts.Unfinished, error) {
	all, err := list(ctx, s.read, func(r row) (u attempts.Unfinished, err error) {
		var spec string
		if u.Attempt, err = scanAttempt(withExtra{r, []any{&spec}}); err == nil {
			err = json.Unmarshal([]byte(spec), &u.Spec)
		}
		return u, err
	}, `SELECT `+attemptColumns+`, s.spec FROM attempts a JOIN run_specs s ON s.run = a.run
		WHERE a.state = 'finalizing' AND a.id > $1 ORDER BY a.id LIMIT $2`, after, limit)
	return all, s.fail("listing unfinished Attempts", err)
}
