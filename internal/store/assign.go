package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"

	"github.com/roadstead/roadstead/internal/dispatcher"
	"github.com/roadstead/roadstead/internal/runs"
)

// Assign is dispatcher.OwnerRecords'. The order of locks is the same for everybody: the pool's owner,
// the budgets by tenant, the Runs by id. What doesn't fit is left out and told; the rest is committed.
func (s *Store) Assign(ctx context.Context, o dispatcher.Owner, all []dispatcher.Assignment) (out []dispatcher.Assigned, err error) {
	err = s.update(ctx, "assigning Runs", func(tx *sql.Tx) error {
		out = make([]dispatcher.Assigned, len(all))
		var epoch int64
		err := tx.QueryRowContext(ctx, `SELECT epoch FROM pool_owners WHERE pool = $1 AND owner = $2`+s.engine.lockRow, o.Pool, o.ID).Scan(&epoch)
		if errors.Is(err, sql.ErrNoRows) || err == nil && epoch != o.Epoch {
			return refuseDeposed(o.Pool)
		}
		if err != nil {
			return err
		}
		left, err := s.lockBudgets(ctx, tx, all)
		if err != nil {
			return err
		}
		for _, i := range byRun(all) {
			if out[i], err = s.assignOne(ctx, tx, o, all[i], left); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// byRun lists the indexes in the order of the Runs' ids.
func byRun(all []dispatcher.Assignment) []int {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if all[a].Run < all[b].Run {
			return -1
		}
		return 1
	})
	return order
}

// lockBudgets says what each tenant's budget has left; those without one are absent.
func (s *Store) lockBudgets(ctx context.Context, tx *sql.Tx, all []dispatcher.Assignment) (left map[string]int64, err error) {
	left = map[string]int64{}
	var tenants []string
	for _, a := range all {
		if a.HoldMicro > 0 && !slices.Contains(tenants, a.Tenant) {
			tenants = append(tenants, a.Tenant)
		}
	}
	slices.Sort(tenants)
	for _, tenant := range tenants {
		micro, limited, err := budgetLeft(ctx, tx, tenant, s.engine.lockRow)
		if err != nil {
			return nil, err
		}
		if limited {
			left[tenant] = micro
		}
	}
	return left, nil
}

func (s *Store) assignOne(ctx context.Context, tx *sql.Tx, o dispatcher.Owner, a dispatcher.Assignment, left map[string]int64) (dispatcher.Assigned, error) {
	lose := func(why dispatcher.Loss) (dispatcher.Assigned, error) { return dispatcher.Assigned{Loss: why}, nil }
	r, err := scanRun(tx.QueryRowContext(ctx, `SELECT `+runColumns+` FROM runs r WHERE r.id = $1`+s.engine.lockRow, a.Run))
	if errors.Is(err, sql.ErrNoRows) || err == nil && (r.State != "queued" || r.Fence != a.Fence || r.WaitsFor > 0 || r.NextEligible.After(a.At)) {
		return lose(dispatcher.LossChanged)
	}
	if err != nil {
		return dispatcher.Assigned{}, err
	}
	if micro, limited := left[a.Tenant]; limited && a.HoldMicro > 0 && a.HoldMicro > micro {
		return lose(dispatcher.LossBudget)
	}
	if a.Lane != "" {
		n, err := exec(ctx, tx, `INSERT INTO holds (attempt, kind, account, amount) VALUES ($1, 'lane', $2, 1) ON CONFLICT DO NOTHING`,
			a.Attempt, a.Tenant+"/"+a.Lane)
		if err != nil {
			return dispatcher.Assigned{}, err
		}
		if n == 0 {
			return lose(dispatcher.LossLane)
		}
	}
	var sequence int64
	err = tx.QueryRowContext(ctx, `UPDATE runners SET sequence = sequence + 1 WHERE id = $1 AND revoked_at = 0 RETURNING sequence`, a.Runner).Scan(&sequence)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = exec(ctx, tx, `DELETE FROM holds WHERE attempt = $1`, a.Attempt)
		return dispatcher.Assigned{Loss: dispatcher.LossRunner}, err
	}
	if err == nil {
		err = s.insertAttempt(ctx, tx, o, a, sequence)
	}
	if err != nil {
		return dispatcher.Assigned{}, err
	}
	if _, limited := left[a.Tenant]; limited {
		left[a.Tenant] -= a.HoldMicro
	}
	return dispatcher.Assigned{Won: true}, nil
}

// insertAttempt makes the Attempt with its holds, and the Run active.
func (s *Store) insertAttempt(ctx context.Context, tx *sql.Tx, o dispatcher.Owner, a dispatcher.Assignment, sequence int64) error {
	resources, err := json.Marshal(a.Resources)
	if err != nil {
		return err
	}
	n, err := exec(ctx, tx, `UPDATE runs SET state = 'active', reason = '', fence = fence + 1, version = version + 1 WHERE id = $1 AND fence = $2 AND state = 'queued'`, a.Run, a.Fence)
	if err == nil && n == 0 {
		err = errLost
	}
	if err != nil {
		return err
	}
	if _, err := exec(ctx, tx, `
		INSERT INTO attempts (id, run, tenant, pool, runner, number, fence, state, reason, detail, sequence, beats, lease_until, resources,
			assigned_at, started_at, ended_at, decision, report, cost)
		VALUES ($1, $2, $3, $4, $5, $6, $6, 'assigned', '', '', $7, 0, $8, $9, $10, 0, 0, $11, '', 0)`,
		a.Attempt, a.Run, a.Tenant, o.Pool, a.Runner, a.Fence+1, sequence, millis(a.LeaseUntil), string(resources), millis(a.At), a.Decision); err != nil {
		return err
	}
	if _, err := exec(ctx, tx, `INSERT INTO holds (attempt, kind, account, amount) VALUES ($1, 'slots', $2, $3)`,
		a.Attempt, o.Pool+"/"+a.Tenant, a.Resources.Slots); err != nil {
		return err
	}
	if a.HoldMicro > 0 {
		if _, err := exec(ctx, tx, `INSERT INTO holds (attempt, kind, account, amount) VALUES ($1, 'money', $2, $3)`, a.Attempt, a.Tenant, a.HoldMicro); err != nil {
			return err
		}
	}
	return insertEvent(ctx, tx, runs.Event{Run: a.Run, At: a.At, Kind: runs.Assigned, Attempt: a.Attempt, Detail: "on runner " + a.Runner})
}
