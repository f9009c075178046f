package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"

	"github.com/roadstead/roadstead/internal/dispatcher"
	"github.com/roadstead/roadstead/internal/runs"
)

// Assign is dispatcher.OwnerRecords'. The order of locks is the same for everybody: the pool's owner,
// the budgets by tenant, the Runs by id, the runners by id, the lanes. What doesn't fit is left out and told; the rest is
// committed. A batch costs a fixed number of statements, whatever its size.
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
		r, err := s.room(ctx, tx, all)
		if err != nil {
			return err
		}
		var winners []winner
		for _, i := range byRun(all) {
			if out[i] = r.take(all[i]); out[i].Won {
				winners = append(winners, newWinner(o, all[i], r.sequences[all[i].Runner]))
			}
		}
		return s.commitWinners(ctx, tx, winners)
	})
	return out, err
}

// byRun lists the indexes in the order of the Runs' ids.
func byRun(all []dispatcher.Assignment) []int {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(all[a].Run, all[b].Run) })
	return order
}

// room is what the rows allow to a batch, which holds their locks; what was taken of it already is taken off.
type room struct {
	runs      map[string]runs.Run // those that wait
	left      map[string]int64    // of budgets, by tenant; those without one are absent
	lanes     map[string]bool     // whose concurrency key is taken
	sequences map[string]int64    // of the last assignment, by runner that was not revoked
}

func (s *Store) room(ctx context.Context, tx *sql.Tx, all []dispatcher.Assignment) (r room, err error) {
	var money, ids, runners, lanes []string
	for _, a := range all {
		ids, runners = append(ids, a.Run), append(runners, a.Runner)
		if a.HoldMicro > 0 {
			money = append(money, a.Tenant)
		}
		if a.Lane != "" {
			lanes = append(lanes, laneAccount(a))
		}
	}
	if r.left, err = s.budgetsLeft(ctx, tx, money); err != nil {
		return r, err
	}
	r.runs = map[string]runs.Run{}
	err = s.each(ctx, tx, ids, `SELECT r.id, r.fence, r.next_eligible FROM runs r
		WHERE r.id IN (SELECT `+s.engine.text+` FROM `+s.engine.elements+`) AND r.state = 'queued' AND r.waits_for = 0 ORDER BY r.id`+s.engine.lockRow,
		func(from row) error {
			var one runs.Run
			var next int64
			err := from.Scan(&one.ID, &one.Fence, &next)
			one.NextEligible = instant(next)
			r.runs[one.ID] = one
			return err
		})
	if err != nil {
		return r, err
	}
	if r.sequences, err = s.numbers(ctx, tx, runners, `SELECT r.id, r.sequence FROM runners r
		WHERE r.id IN (SELECT `+s.engine.text+` FROM `+s.engine.elements+`) AND r.revoked_at = 0 ORDER BY r.id`+s.engine.lockRow); err != nil {
		return r, err
	}
	taken, err := s.numbers(ctx, tx, lanes, `SELECT h.account, h.amount FROM holds h
		WHERE h.kind = 'lane' AND h.account IN (SELECT `+s.engine.text+` FROM `+s.engine.elements+`)`)
	r.lanes = map[string]bool{}
	for account := range taken {
		r.lanes[account] = true
	}
	return r, err
}

// budgetsLeft says what the tenants' budgets have left, and holds their rows.
func (s *Store) budgetsLeft(ctx context.Context, tx *sql.Tx, tenants []string) (left map[string]int64, err error) {
	left, err = s.numbers(ctx, tx, tenants, `SELECT b.tenant, b.limited - b.spent FROM budgets b
		WHERE b.tenant IN (SELECT `+s.engine.text+` FROM `+s.engine.elements+`) ORDER BY b.tenant`+s.engine.lockRow)
	if err != nil || len(left) == 0 {
		return left, err
	}
	// What is held is read by a statement of its own: it sees what those have committed who held the rows before.
	held, err := s.numbers(ctx, tx, tenants, `SELECT h.account, SUM(h.amount) FROM holds h
		WHERE h.kind = 'money' AND h.account IN (SELECT `+s.engine.text+` FROM `+s.engine.elements+`) GROUP BY h.account`)
	for tenant := range left {
		left[tenant] -= held[tenant]
	}
	return left, err
}

// numbers reads a number for each name that has one; the query gets the names as elements.
func (s *Store) numbers(ctx context.Context, tx *sql.Tx, names []string, query string) (map[string]int64, error) {
	out := map[string]int64{}
	return out, s.each(ctx, tx, names, query, func(from row) error {
		var name string
		var n int64
		err := from.Scan(&name, &n)
		out[name] = n
		return err
	})
}

// each calls scan for every row of a query about the names. Nothing is asked about no names.
func (s *Store) each(ctx context.Context, tx *sql.Tx, names []string, query string, scan func(row) error) error {
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	text, err := json.Marshal(slices.Compact(names))
	if err != nil {
		return err
	}
	_, err = list(ctx, tx, func(r row) (struct{}, error) { return struct{}{}, scan(r) }, query, string(text))
	return err
}

func laneAccount(a dispatcher.Assignment) string { return a.Tenant + "/" + a.Lane }

// take gives one decision its room, or says what is missing.
func (r room) take(a dispatcher.Assignment) dispatcher.Assigned {
	run, waits := r.runs[a.Run]
	micro, limited := r.left[a.Tenant]
	sequence, known := r.sequences[a.Runner]
	switch {
	case !waits || run.Fence != a.Fence || run.NextEligible.After(a.At):
		return dispatcher.Assigned{Loss: dispatcher.LossChanged}
	case limited && a.HoldMicro > 0 && a.HoldMicro > micro:
		return dispatcher.Assigned{Loss: dispatcher.LossBudget}
	case a.Lane != "" && r.lanes[laneAccount(a)]:
		return dispatcher.Assigned{Loss: dispatcher.LossLane}
	case !known:
		return dispatcher.Assigned{Loss: dispatcher.LossRunner}
	}
	delete(r.runs, a.Run)
	r.sequences[a.Runner] = sequence + 1
	if limited {
		r.left[a.Tenant] = micro - a.HoldMicro
	}
	if a.Lane != "" {
		r.lanes[laneAccount(a)] = true
	}
	return dispatcher.Assigned{Won: true}
}
