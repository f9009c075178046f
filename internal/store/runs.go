package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/runs"
)

var _ runs.Records = (*Store)(nil)

const runColumns = `r.id, r.tenant, r.pool, r.state, r.reason, r.fence, r.version, r.created_at, r.created_by, r.created_name, r.next_eligible,
	r.eligible_at, r.priority, r.class, r.package, r.array_id, r.array_index, r.lane, r.waits_for, r.failures, r.losses, r.cancel, r.started_at,
	r.ended_at, r.spent, r.inserted`

func scanRun(from row) (r runs.Run, err error) {
	var created, next, eligible, started, ended int64
	err = from.Scan(&r.ID, &r.Tenant, &r.Pool, &r.State, &r.Reason, &r.Fence, &r.Version, &created, &r.CreatedBy, &r.CreatedName, &next,
		&eligible, &r.Priority, &r.Class, &r.Package, &r.Array, &r.Index, &r.Lane, &r.WaitsFor, &r.Failures, &r.Losses, &r.Cancel, &started,
		&ended, &r.SpentMicro, &r.Inserted)
	r.CreatedAt, r.NextEligible, r.EligibleAt = instant(created), instant(next), instant(eligible)
	r.StartedAt, r.EndedAt = instant(started), instant(ended)
	return r, err
}

// Run is runs.ReadRecords'.
func (s *Store) Run(ctx context.Context, id string) (runs.Run, error) {
	r, err := readRun(ctx, s.read, id, "")
	return r, s.fail("reading a Run", err)
}

// readRun reads one Run; lock is the engine's suffix when the row shall stay as it is until the transaction ends.
func readRun(ctx context.Context, q querier, id, lock string) (runs.Run, error) {
	r, err := scanRun(q.QueryRowContext(ctx, `SELECT `+runColumns+` FROM runs r WHERE r.id = $1`+lock, id))
	return r, missing(err, "Run "+id)
}

// RunSpec is runs.ReadRecords'.
func (s *Store) RunSpec(ctx context.Context, id string) (spec runs.Spec, err error) {
	spec, err = readSpec(ctx, s.read, id)
	return spec, s.fail("reading a Run's specification", err)
}

func readSpec(ctx context.Context, q querier, id string) (spec runs.Spec, err error) {
	var text string
	err = q.QueryRowContext(ctx, `SELECT spec FROM run_specs WHERE run = $1`, id).Scan(&text)
	if err == nil {
		err = json.Unmarshal([]byte(text), &spec)
	}
	return spec, missing(err, "Run "+id)
}

// ListRuns is runs.ReadRecords'. A page costs what is on it, wherever it lies: it is read along an index from where it
// begins, one piece for each state that is asked for, as those of a state that few are in may lie far apart.
func (s *Store) ListRuns(ctx context.Context, f runs.Filter) ([]runs.Run, error) {
	where, args := listWhere(f)
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	limit := arg(f.Limit)
	piece := func(where []string) string {
		query := `SELECT ` + runColumns + ` FROM runs r`
		if len(where) > 0 {
			query += ` WHERE ` + strings.Join(where, ` AND `)
		}
		return query + ` ORDER BY r.created_at DESC, r.id DESC LIMIT ` + limit
	}
	query := piece(where)
	if len(f.States) > 0 {
		var pieces []string
		for i, state := range slices.Compact(slices.Sorted(slices.Values(f.States))) {
			pieces = append(pieces, fmt.Sprintf(`SELECT * FROM (%s) AS s%d`, piece(append(slices.Clone(where), `r.state = `+arg(string(state)))), i))
		}
		query = strings.Join(pieces, ` UNION ALL `) + ` ORDER BY created_at DESC, id DESC LIMIT ` + limit
	}
	all, err := list(ctx, s.read, scanRun, query, args...)
	return all, s.fail("listing Runs", err)
}

// listWhere is what a filter asks for beside the states.
func listWhere(f runs.Filter) (where []string, args []any) {
	add := func(condition string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(args)), 1)
		}
		where = append(where, condition)
	}
	if f.Tenant != "" {
		add(`r.tenant = ?`, f.Tenant)
	}
	if f.After != "" {
		add(`(r.created_at, r.id) < (?, ?)`, millis(f.AfterAt), f.After)
	}
	if f.Pool != "" {
		add(`r.pool = ?`, f.Pool)
	}
	if f.Array != "" {
		add(`r.array_id = ?`, f.Array)
	}
	if f.Package != "" {
		add(`(r.package = ? OR r.package LIKE ? ESCAPE '!')`, f.Package, likePrefix(f.Package+"@"))
	}
	for _, name := range sortedNames(f.Labels) {
		add(`EXISTS (SELECT 1 FROM run_labels l WHERE l.tenant = r.tenant AND l.name = ? AND l.value = ? AND l.run = r.id)`, name, f.Labels[name])
	}
	return where, args
}

// likePrefix is the pattern of everything that begins with the text.
func likePrefix(text string) string {
	return strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(text) + "%"
}

const attemptColumns = `a.id, a.run, a.tenant, a.pool, a.runner, a.number, a.fence, a.state, a.reason, a.detail, a.sequence, a.beats, a.lease_until,
	a.resources, a.assigned_at, a.started_at, a.ended_at, a.report, a.cost`

func scanAttempt(from row) (a runs.Attempt, err error) {
	var lease, assigned, started, ended int64
	var resources string
	err = from.Scan(&a.ID, &a.Run, &a.Tenant, &a.Pool, &a.Runner, &a.Number, &a.Fence, &a.State, &a.Reason, &a.Detail, &a.Sequence, &a.Beats, &lease,
		&resources, &assigned, &started, &ended, &a.Report, &a.CostMicro)
	if err == nil {
		err = json.Unmarshal([]byte(resources), &a.Resources)
	}
	a.LeaseUntil, a.AssignedAt, a.StartedAt, a.EndedAt = instant(lease), instant(assigned), instant(started), instant(ended)
	return a, err
}

// readAttempt reads one Attempt; lock as in readRun.
func readAttempt(ctx context.Context, q querier, id, lock string) (runs.Attempt, error) {
	a, err := scanAttempt(q.QueryRowContext(ctx, `SELECT `+attemptColumns+` FROM attempts a WHERE a.id = $1`+lock, id))
	return a, missing(err, "Attempt "+id)
}

// RunAttempts is runs.ReadRecords'.
func (s *Store) RunAttempts(ctx context.Context, run string) ([]runs.Attempt, error) {
	all, err := list(ctx, s.read, scanAttempt, `SELECT `+attemptColumns+` FROM attempts a WHERE a.run = $1 ORDER BY a.number`, run)
	return all, s.fail("listing Attempts", err)
}

// RunDetails is runs.ReadRecords'.
func (s *Store) RunDetails(ctx context.Context, run string) (d runs.Details, err error) {
	d.Results, err = readResults(ctx, s.read, run)
	if err == nil {
		d.Progress, err = readProgress(ctx, s.read, run)
	}
	if err == nil {
		d.Labels, err = readLabels(ctx, s.read, run)
	}
	return d, s.fail("reading what belongs to a Run", err)
}

func readResults(ctx context.Context, q querier, run string) ([]api.Result, error) {
	return list(ctx, q, func(r row) (one api.Result, err error) {
		err = r.Scan(&one.Name, &one.Digest, &one.Size, &one.MediaType)
		one.Path = api.PathRuns + run + "/results/" + one.Name
		return one, err
	}, `SELECT name, digest, size, media_type FROM run_results WHERE run = $1 ORDER BY name`, run)
}

func readProgress(ctx context.Context, q querier, run string) (*api.Progress, error) {
	var p api.Progress
	var at int64
	err := q.QueryRowContext(ctx, `SELECT fraction, message, at FROM run_progress WHERE run = $1`, run).Scan(&p.Fraction, &p.Message, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	p.At = instant(at)
	return &p, err
}

func readLabels(ctx context.Context, q querier, run string) (map[string]string, error) {
	spec, err := readSpec(ctx, q, run)
	return spec.Request.Labels, err
}

// insertEvent adds one step to a Run's life. The caller holds the Run's row, so nobody takes the same number.
func insertEvent(ctx context.Context, tx *sql.Tx, e runs.Event) error {
	_, err := exec(ctx, tx, `
		INSERT INTO run_events (run, seq, at, kind, attempt, reason, detail)
		SELECT CAST($1 AS TEXT), COALESCE(MAX(seq), 0) + 1, CAST($2 AS BIGINT), $3, $4, $5, $6 FROM run_events WHERE run = CAST($1 AS TEXT)`,
		e.Run, millis(e.At), e.Kind, e.Attempt, e.Reason, e.Detail)
	return err
}

// RunEvents is runs.ReadRecords'.
func (s *Store) RunEvents(ctx context.Context, run string, seq int64, limit int) ([]runs.Event, error) {
	all, err := list(ctx, s.read, func(r row) (e runs.Event, err error) {
		var at int64
		err = r.Scan(&e.Run, &e.Seq, &at, &e.Kind, &e.Attempt, &e.Reason, &e.Detail)
		e.At = instant(at)
		return e, err
	}, `SELECT run, seq, at, kind, attempt, reason, detail FROM run_events WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3`, run, seq, limit)
	return all, s.fail("listing events", err)
}
