package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/roadstead/roadstead/internal/dispatcher"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/pools"
	"github.com/roadstead/roadstead/internal/runs"
)

var _ dispatcher.Records = (*Store)(nil)

// PoolStates is dispatcher.OwnerRecords'.
func (s *Store) PoolStates(ctx context.Context) ([]dispatcher.PoolState, error) {
	all, err := list(ctx, s.read, func(r row) (p dispatcher.PoolState, err error) {
		var policy string
		if err = r.Scan(&p.Name, &policy, &p.Draining, &p.Revision, &p.Owner, &p.Epoch, &p.Beats); err == nil {
			p.Policy, err = pools.ParsePolicy(policy)
		}
		return p, err
	}, `SELECT p.name, p.policy, p.draining, p.revision, COALESCE(o.owner, ''), COALESCE(o.epoch, 0), COALESCE(o.beats, 0)
		FROM pools p LEFT JOIN pool_owners o ON o.pool = p.name ORDER BY p.name`)
	return all, s.fail("reading the pools", err)
}

func refuseDeposed(pool string) error {
	f := fault.New(fault.Conflict, "pool %s has another owner", pool)
	f.Reason = dispatcher.ReasonDeposed
	return f
}

// TakePool is dispatcher.OwnerRecords'.
func (s *Store) TakePool(ctx context.Context, pool, owner string, epoch int64) (o dispatcher.Owner, err error) {
	err = s.update(ctx, "taking a pool over", func(tx *sql.Tx) error {
		n, err := exec(ctx, tx, `
			INSERT INTO pool_owners (pool, owner, epoch, beats, clock)
			SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS BIGINT), 0, '' WHERE CAST($3 AS BIGINT) = 1 OR EXISTS (SELECT 1 FROM pool_owners WHERE pool = $1)
			ON CONFLICT (pool) DO UPDATE SET owner = excluded.owner, epoch = excluded.epoch, beats = pool_owners.beats + 1
			WHERE pool_owners.epoch = excluded.epoch - 1`, pool, owner, epoch+1)
		if err == nil && n == 0 {
			return refuseDeposed(pool)
		}
		return err
	})
	return dispatcher.Owner{Pool: pool, ID: owner, Epoch: epoch + 1}, err
}

// KeepPool is dispatcher.OwnerRecords'.
func (s *Store) KeepPool(ctx context.Context, o dispatcher.Owner, clock string) error {
	return s.update(ctx, "keeping a pool", func(tx *sql.Tx) error {
		n, err := exec(ctx, tx, `UPDATE pool_owners SET beats = beats + 1, clock = $4 WHERE pool = $1 AND owner = $2 AND epoch = $3`, o.Pool, o.ID, o.Epoch, clock)
		if err == nil && n == 0 {
			return refuseDeposed(o.Pool)
		}
		return err
	})
}

// PoolClock is dispatcher.OwnerRecords'.
func (s *Store) PoolClock(ctx context.Context, pool string) (clock string, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT clock FROM pool_owners WHERE pool = $1`, pool).Scan(&clock)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return clock, s.fail("reading a pool's virtual times", err)
}

// rowColumns are those that dispatching looks at: a pool is loaded by the hundred thousand.
const rowColumns = `r.id, r.tenant, r.pool, r.state, r.fence, r.version, r.created_at, r.next_eligible, r.eligible_at, r.priority, r.package, r.array_id,
	r.waits_for, r.failures, r.losses, r.cancel, s.brief`

func scanRunRow(r row) (out dispatcher.RunRow, err error) {
	var brief string
	var created, next, eligible int64
	one := &out.Run
	err = r.Scan(&one.ID, &one.Tenant, &one.Pool, &one.State, &one.Fence, &one.Version, &created, &next, &eligible, &one.Priority, &one.Package, &one.Array,
		&one.WaitsFor, &one.Failures, &one.Losses, &one.Cancel, &brief)
	one.CreatedAt, one.NextEligible, one.EligibleAt = instant(created), instant(next), instant(eligible)
	if err == nil {
		err = scanBrief(brief, &out.Spec)
	}
	return out, err
}

// QueuedRows is dispatcher.RowRecords'.
func (s *Store) QueuedRows(ctx context.Context, pool, after string, limit int) ([]dispatcher.RunRow, error) {
	all, err := list(ctx, s.read, scanRunRow, `SELECT `+rowColumns+` FROM runs r JOIN run_specs s ON s.run = r.id
		WHERE r.pool = $1 AND r.state = 'queued' AND r.id > $2 ORDER BY r.id LIMIT $3`, pool, after, limit)
	return all, s.fail("reading queued Runs", err)
}

// NewRows is dispatcher.RowRecords'.
func (s *Store) NewRows(ctx context.Context, pool string, since time.Time, after string, limit int) ([]dispatcher.Mark, error) {
	all, err := list(ctx, s.read, func(r row) (m dispatcher.Mark, err error) { return m, r.Scan(&m.Run, &m.Version, &m.Inserted) },
		`SELECT r.id, r.version, r.inserted FROM runs r
		WHERE r.pool = $1 AND (r.inserted, r.id) > ($2, $3) AND r.state = 'queued' ORDER BY r.inserted, r.id LIMIT $4`, pool, millis(since), after, limit)
	return all, s.fail("reading new Runs", err)
}

// RunRows is dispatcher.RowRecords'.
func (s *Store) RunRows(ctx context.Context, ids []string) ([]dispatcher.RunRow, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(ids)
	if err != nil {
		return nil, s.fail("reading Runs", err)
	}
	all, err := list(ctx, s.read, scanRunRow, `SELECT `+rowColumns+` FROM runs r JOIN run_specs s ON s.run = r.id
		WHERE r.id IN (SELECT `+s.engine.text+` FROM `+s.engine.elements+`) ORDER BY r.id`, string(text))
	return all, s.fail("reading Runs", err)
}

// LiveRows is dispatcher.RowRecords'.
func (s *Store) LiveRows(ctx context.Context, pool string) ([]dispatcher.LiveRow, error) {
	all, err := list(ctx, s.read, func(r row) (l dispatcher.LiveRow, err error) {
		l.Row, err = scanRunRow(scanBetween{r, func(columns []any) []any { return append(columns, &l.Decision) }, &l.Attempt})
		return l, err
	}, `SELECT `+attemptColumns+`, `+rowColumns+`, a.decision FROM attempts a JOIN runs r ON r.id = a.run JOIN run_specs s ON s.run = a.run
		WHERE a.pool = $1 AND `+living+` ORDER BY a.id`, pool)
	return all, s.fail("reading living Attempts", err)
}

// scanBetween scans an Attempt before what a scan function knows, and more behind it.
type scanBetween struct {
	row
	behind  func([]any) []any
	attempt *runs.Attempt
}

func (b scanBetween) Scan(dest ...any) (err error) {
	*b.attempt, err = scanAttempt(withExtra{b.row, b.behind(dest)})
	return err
}

// Beats is dispatcher.RowRecords'.
func (s *Store) Beats(ctx context.Context, pool string) ([]dispatcher.Beat, error) {
	all, err := list(ctx, s.read, func(r row) (b dispatcher.Beat, err error) { return b, r.Scan(&b.Attempt, &b.State, &b.Beats) },
		`SELECT a.id, a.state, a.beats FROM attempts a WHERE a.pool = $1 AND `+living, pool)
	return all, s.fail("reading leases", err)
}

// RunnerRows is dispatcher.RowRecords'.
func (s *Store) RunnerRows(ctx context.Context, pool string) ([]dispatcher.RunnerRow, error) {
	all, err := list(ctx, s.read, func(r row) (one dispatcher.RunnerRow, err error) {
		var capacity, labels string
		var seen int64
		err = r.Scan(&one.ID, &capacity, &labels, &one.Draining, &one.Revoked, &one.Beats, &seen)
		one.SeenAt = instant(seen)
		if err == nil {
			err = errors.Join(json.Unmarshal([]byte(capacity), &one.Capacity), json.Unmarshal([]byte(labels), &one.Labels))
		}
		return one, err
	}, `SELECT id, capacity, labels, draining, revoked_at > 0, beats, seen_at FROM runners WHERE pool = $1 AND revoked_at = 0 ORDER BY id`, pool)
	return all, s.fail("reading runners", err)
}

// ShareRows is dispatcher.RowRecords'.
func (s *Store) ShareRows(ctx context.Context, pool string) ([]dispatcher.ShareRow, error) {
	all, err := list(ctx, s.read, func(r row) (one dispatcher.ShareRow, err error) {
		return one, r.Scan(&one.Tenant, &one.Weight, &one.MaxSlots)
	},
		`SELECT tenant, weight, max_slots FROM pool_shares WHERE pool = $1 ORDER BY tenant`, pool)
	return all, s.fail("reading the shares of a pool", err)
}

// BudgetLeft is dispatcher.EndRecords'.
func (s *Store) BudgetLeft(ctx context.Context, tenant string) (micro int64, limited bool, err error) {
	micro, limited, err = budgetLeft(ctx, s.read, tenant, "")
	return micro, limited, s.fail("reading a budget", err)
}

// budgetLeft is what is neither spent nor held. lock as in readRun.
func budgetLeft(ctx context.Context, q querier, tenant, lock string) (micro int64, limited bool, err error) {
	var limit, spent, held int64
	err = q.QueryRowContext(ctx, `SELECT limited, spent FROM budgets WHERE tenant = $1`+lock, tenant).Scan(&limit, &spent)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	if err == nil {
		err = q.QueryRowContext(ctx, `SELECT COALESCE(SUM(amount), 0) FROM holds WHERE account = $1 AND kind = 'money'`, tenant).Scan(&held)
	}
	return limit - spent - held, true, err
}

// RecentDurations is dispatcher.EndRecords'.
func (s *Store) RecentDurations(ctx context.Context, pool string, limit int) ([]dispatcher.Duration, error) {
	all, err := list(ctx, s.read, func(r row) (d dispatcher.Duration, err error) {
		var took int64
		var of dispatcher.RunRow
		var brief string
		if err = r.Scan(&of.Run.Tenant, &of.Run.Package, &brief, &took); err == nil {
			err = scanBrief(brief, &of.Spec)
		}
		return dispatcher.Duration{Kind: dispatcher.KindOf(of), Took: time.Duration(took) * time.Millisecond}, err
	}, `SELECT r.tenant, r.package, s.brief, a.ended_at - a.started_at FROM attempts a JOIN runs r ON r.id = a.run JOIN run_specs s ON s.run = a.run
		WHERE a.pool = $1 AND a.state = 'succeeded' AND a.started_at > 0 ORDER BY a.id DESC LIMIT $2`, pool, limit)
	return all, s.fail("reading how long Attempts took", err)
}
