package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/runs"
)

const submitRoute = "submitting Runs"

// errRefused gives a transaction up whose outcome is a bound that was reached.
var errRefused = errors.New("a bound was reached")

// SubmitRuns is runs.SubmitRecords'.
func (s *Store) SubmitRuns(ctx context.Context, sub runs.Submission) (out runs.Outcome, err error) {
	err = s.update(ctx, submitRoute, func(tx *sql.Tx) error {
		out = runs.Outcome{}
		earlier, found, err := s.knownKey(ctx, tx, sub)
		if err != nil || found {
			out = runs.Outcome{Runs: earlier, Repeat: found}
			return err
		}
		if len(sub.Runs) == 0 {
			return nil
		}
		for _, b := range sub.Bounds {
			if err := s.withinBounds(ctx, tx, sub, b, &out); err != nil {
				return err
			}
		}
		return s.insertSubmission(ctx, tx, sub, &out)
	})
	if errors.Is(err, errRefused) {
		return runs.Outcome{Refused: out.Refused, Pool: out.Pool, Queued: out.Queued}, nil
	}
	return out, err
}

func (s *Store) knownKey(ctx context.Context, tx *sql.Tx, sub runs.Submission) (earlier []runs.Run, found bool, err error) {
	if sub.Key == nil {
		return nil, false, nil
	}
	var body, answer string
	err = tx.QueryRowContext(ctx, `SELECT body, answer FROM run_keys WHERE tenant = $1 AND principal = $2 AND route = $3 AND name = $4`,
		sub.Tenant, sub.Key.Principal, sub.Key.Route, sub.Key.Name).Scan(&body, &answer)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case body != sub.Key.Body:
		return nil, false, fault.New(fault.IdempotencyMismatch, "Idempotency-Key %q was used before with another request: use a new key for a new request", sub.Key.Name)
	}
	for _, id := range strings.Fields(answer) {
		r, err := readRun(ctx, tx, id, "")
		if err != nil {
			return nil, false, err
		}
		earlier = append(earlier, r)
	}
	return earlier, true, nil
}

// withinBounds counts what is queued. The row of the tenant's share is held meanwhile, so that two submits of one
// tenant can't both take the last place.
func (s *Store) withinBounds(ctx context.Context, tx *sql.Tx, sub runs.Submission, b runs.Bounds, out *runs.Outcome) error {
	if _, err := exec(ctx, tx, `
		INSERT INTO pool_shares (pool, tenant, weight, max_slots) VALUES ($1, $2, 100, 0) ON CONFLICT (pool, tenant) DO NOTHING`,
		b.Pool, sub.Tenant); err != nil {
		return err
	}
	var weight int64
	if err := tx.QueryRowContext(ctx, `SELECT weight FROM pool_shares WHERE pool = $1 AND tenant = $2`+s.engine.lockRow, b.Pool, sub.Tenant).Scan(&weight); err != nil {
		return err
	}
	added := 0
	for i := range sub.Runs {
		if sub.Runs[i].Run.Pool == b.Pool {
			added++
		}
	}
	refuse := func(word string, queued int) error {
		out.Refused, out.Pool, out.Queued = word, b.Pool, queued
		return errRefused
	}
	if b.TenantDepth > 0 {
		var queued int
		if err := tx.QueryRowContext(ctx, `
			SELECT COUNT(*) FROM (SELECT 1 FROM runs WHERE pool = $1 AND tenant = $2 AND state = 'queued' LIMIT $3) AS q`,
			b.Pool, sub.Tenant, b.TenantDepth+1).Scan(&queued); err != nil {
			return err
		}
		if queued+added > b.TenantDepth {
			return refuse("tenant_depth", queued)
		}
	}
	queued, err := s.poolDepth(ctx, tx, b, added)
	if err != nil {
		return err
	}
	if b.Depth > 0 && queued+added > b.Depth {
		return refuse("depth", queued)
	}
	return s.withinAge(ctx, tx, sub, b, refuse)
}

// poolDepth counts what is queued in the pool. Near the bound the pool's row is held, so that two tenants can't both
// take the last place; further away nobody waits for anybody.
func (s *Store) poolDepth(ctx context.Context, tx *sql.Tx, b runs.Bounds, added int) (queued int, err error) {
	if b.Depth == 0 {
		return 0, nil
	}
	count := func() error {
		return tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM runs WHERE pool = $1 AND state = 'queued' LIMIT $2) AS q`,
			b.Pool, b.Depth+1).Scan(&queued)
	}
	if err := count(); err != nil || queued+added > b.Depth || queued+added < b.Depth-max(1000, b.Depth/10) {
		return queued, err
	}
	var revision int64
	if err := tx.QueryRowContext(ctx, `SELECT revision FROM pools WHERE name = $1`+s.engine.lockRow, b.Pool).Scan(&revision); err != nil {
		return 0, missing(err, "pool "+b.Pool)
	}
	return queued, count()
}

func (s *Store) withinAge(ctx context.Context, tx *sql.Tx, sub runs.Submission, b runs.Bounds, refuse func(string, int) error) error {
	if b.OldestAt.IsZero() {
		return nil
	}
	var oldest int64
	if err := tx.QueryRowContext(ctx, `
		SELECT COALESCE(MIN(eligible_at), 0) FROM runs WHERE pool = $1 AND tenant = $2 AND state = 'queued' AND waits_for = 0`,
		b.Pool, sub.Tenant).Scan(&oldest); err != nil {
		return err
	}
	if oldest > 0 && oldest < millis(b.OldestAt) {
		return refuse("age", 0)
	}
	return nil
}

func (s *Store) insertSubmission(ctx context.Context, tx *sql.Tx, sub runs.Submission, out *runs.Outcome) error {
	var ids []string
	for i := range sub.Runs {
		n := sub.Runs[i]
		needs, doomed, err := s.needed(ctx, tx, sub, n)
		if err != nil {
			return err
		}
		n.Run.WaitsFor = len(needs)
		if doomed {
			end(&n.Run, lifecycle.Cancelled, lifecycle.DependencyFailed, sub.At)
		}
		touched, err := s.enterLane(ctx, tx, &n, sub.At)
		if err != nil {
			return err
		}
		if err := insertRun(ctx, tx, n); err != nil {
			return err
		}
		for _, need := range needs {
			if n.Run.State.Ended() {
				break
			}
			if _, err := exec(ctx, tx, `INSERT INTO run_dependencies (needs, run, required) VALUES ($1, $2, $3) ON CONFLICT (needs, run) DO NOTHING`,
				need.id, n.Run.ID, need.when); err != nil {
				return err
			}
		}
		ids = append(ids, n.Run.ID)
		out.Runs, out.Touched = append(out.Runs, n.Run), append(out.Touched, touched...)
	}
	if sub.Key == nil {
		return nil
	}
	n, err := exec(ctx, tx, `INSERT INTO run_keys (tenant, principal, route, name, body, answer) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (tenant, principal, route, name) DO NOTHING`,
		sub.Tenant, sub.Key.Principal, sub.Key.Route, sub.Key.Name, sub.Key.Body, strings.Join(ids, " "))
	if err == nil && n == 0 {
		return errLost // the same submit came at the same moment over another connection: its answer is the answer
	}
	return err
}

// end makes a record terminal before it is written.
func end(r *runs.Run, state lifecycle.Run, reason lifecycle.Reason, at time.Time) {
	r.State, r.Reason, r.EndedAt, r.WaitsFor = state, reason, at, 0
}

func insertRun(ctx context.Context, tx *sql.Tx, n runs.NewRecord) error {
	r := n.Run
	if _, err := exec(ctx, tx, `
		INSERT INTO runs (id, tenant, pool, state, reason, fence, version, created_at, created_by, created_name, next_eligible, eligible_at,
			priority, class, package, array_id, array_index, lane, waits_for, failures, losses, cancel, cancel_reason, started_at, ended_at, spent, inserted)
		VALUES ($1, $2, $3, $4, $5, 0, 1, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, 0, 0, $18, '', 0, $19, 0, $20)`,
		r.ID, r.Tenant, r.Pool, r.State, r.Reason, millis(r.CreatedAt), r.CreatedBy, r.CreatedName, millis(r.NextEligible), millis(r.EligibleAt),
		r.Priority, r.Class, r.Package, r.Array, r.Index, r.Lane, r.WaitsFor, false, millis(r.EndedAt), r.Inserted); err != nil {
		return err
	}
	spec, err := json.Marshal(n.Spec)
	if err != nil {
		return err
	}
	brief, err := briefOf(n.Spec)
	if err != nil {
		return err
	}
	if _, err := exec(ctx, tx, `INSERT INTO run_specs (run, brief, spec) VALUES ($1, $2, $3)`, r.ID, brief, string(spec)); err != nil {
		return err
	}
	for _, name := range sortedNames(n.Spec.Request.Labels) {
		if _, err := exec(ctx, tx, `INSERT INTO run_labels (tenant, name, value, run) VALUES ($1, $2, $3, $4)`,
			r.Tenant, name, n.Spec.Request.Labels[name], r.ID); err != nil {
			return err
		}
	}
	first := runs.Event{Run: r.ID, At: r.CreatedAt, Kind: runs.Submitted}
	if err := insertEvent(ctx, tx, first); err != nil || !r.State.Ended() {
		return err
	}
	return insertEvent(ctx, tx, runs.Event{Run: r.ID, At: r.CreatedAt, Kind: string(r.State), Reason: string(r.Reason)})
}

// need is one Run that has to end first.
type need struct{ id, when string }

// needed resolves after. The rows of what is waited for are held, so that none ends between this look and the commit
// without seeing who waits. doomed: one of them has ended otherwise already.
func (s *Store) needed(ctx context.Context, tx *sql.Tx, sub runs.Submission, n runs.NewRecord) (needs []need, doomed bool, err error) {
	for _, after := range n.After {
		on, err := list(ctx, tx, scanRun, `SELECT `+runColumns+` FROM runs r WHERE r.id = $1 OR (r.array_id = $1 AND r.array_id <> '')
			ORDER BY r.id`+s.engine.lockRow, after.On)
		if err != nil {
			return nil, false, err
		}
		if len(on) == 0 || on[0].Tenant != sub.Tenant {
			return nil, false, fault.Invalid(after.Field, "there is no Run or array %q of yours", after.On)
		}
		if after.When == "fail" && on[0].ID != after.On {
			return nil, false, fault.Invalid(strings.TrimSuffix(after.Field, ".run")+".when", "an array can be waited for with ok or any")
		}
		for _, r := range on {
			switch {
			case !r.State.Ended():
				if needs, err = withNeed(needs, need{r.ID, after.When}, after.Field); err != nil {
					return nil, false, err
				}
			case !meets(r.State, after.When):
				doomed = true
			}
		}
	}
	return needs, doomed, nil
}

// withNeed adds a need. An element may be named by itself and by its array too: it is waited for once, as the stricter asks.
func withNeed(needs []need, one need, field string) ([]need, error) {
	i := slices.IndexFunc(needs, func(n need) bool { return n.id == one.id })
	switch {
	case i < 0:
		return append(needs, one), nil
	case needs[i].when == "any":
		needs[i].when = one.when
	case one.when != "any" && one.when != needs[i].when:
		return nil, fault.Invalid(field, "Run %s can't end both ok and otherwise", one.id)
	}
	return needs, nil
}

// meets reports whether an end is the one that is waited for.
func meets(state lifecycle.Run, when string) bool {
	switch when {
	case "any":
		return true
	case "fail":
		return state != lifecycle.Succeeded
	}
	return state == lifecycle.Succeeded
}

// enterLane applies the policy of a concurrency key: a new Run gives up, or those before it do.
func (s *Store) enterLane(ctx context.Context, tx *sql.Tx, n *runs.NewRecord, at time.Time) (touched []string, err error) {
	if n.Run.Lane == "" || n.LanePolicy == "queue" || n.LanePolicy == "" || n.Run.State.Ended() {
		return nil, nil
	}
	before, err := list(ctx, tx, scanRun, `SELECT `+runColumns+` FROM runs r
		WHERE r.tenant = $1 AND r.lane = $2 AND r.lane <> '' AND r.state IN ('queued', 'active') ORDER BY r.id`+s.engine.lockRow, n.Run.Tenant, n.Run.Lane)
	if err != nil || len(before) == 0 {
		return nil, err
	}
	if n.LanePolicy == "skip" {
		end(&n.Run, lifecycle.Cancelled, lifecycle.Skipped, at)
		return nil, nil
	}
	for _, r := range before {
		ended, err := s.cancelIn(ctx, tx, r, runs.Cancellation{Run: r.ID, Reason: lifecycle.Replaced, Detail: "by " + n.Run.ID, At: at})
		if err != nil {
			return nil, err
		}
		touched = append(append(append(touched, r.ID), ended.Freed...), ended.Dropped...)
	}
	return touched, nil
}

func sortedNames(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
