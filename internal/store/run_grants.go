package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/roadstead/roadstead/internal/attempts"
	"github.com/roadstead/roadstead/internal/fault"
)

const grantColumns = `g.id, g.attempt, g.run, a.tenant, g.kind, g.name, g.digest, g.size, g.hash, g.expires_at, g.done_at`

func scanGrant(from row) (g attempts.Grant, err error) {
	var expires, done int64
	err = from.Scan(&g.ID, &g.Attempt, &g.Run, &g.Tenant, &g.Kind, &g.Name, &g.Digest, &g.Size, &g.Hash, &expires, &done)
	g.ExpiresAt, g.DoneAt = instant(expires), instant(done)
	return g, err
}

// NewGrant is attempts.GrantRecords'.
func (s *Store) NewGrant(ctx context.Context, h attempts.Holder, g attempts.Grant) (out attempts.Grant, err error) {
	err = s.update(ctx, "granting an upload", func(tx *sql.Tx) error {
		a, err := s.heldAttempt(ctx, tx, h)
		if err != nil {
			return err
		}
		if a.State.Ended() || a.Report != "" {
			return attempts.Lost(h.Attempt)
		}
		if _, err := exec(ctx, tx, `
			INSERT INTO run_grants (id, attempt, run, kind, name, digest, size, hash, expires_at, done_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0)
			ON CONFLICT (attempt, kind, name, digest) DO UPDATE SET hash = excluded.hash, expires_at = excluded.expires_at
			WHERE run_grants.size = excluded.size`,
			g.ID, g.Attempt, g.Run, g.Kind, g.Name, g.Digest, g.Size, g.Hash, millis(g.ExpiresAt)); err != nil {
			return err
		}
		out, err = scanGrant(tx.QueryRowContext(ctx, `SELECT `+grantColumns+` FROM run_grants g JOIN attempts a ON a.id = g.attempt
			WHERE g.attempt = $1 AND g.kind = $2 AND g.name = $3 AND g.digest = $4`, g.Attempt, g.Kind, g.Name, g.Digest))
		if err == nil && out.Size != g.Size {
			return fault.Invalid("size", "the digest was announced with %d bytes before", out.Size)
		}
		return err
	})
	return out, err
}

const usableGrant = `g.expires_at > $2 AND a.state IN ('starting', 'running') AND a.report = ''`

// UseGrant is attempts.GrantRecords'.
func (s *Store) UseGrant(ctx context.Context, hash string, now time.Time) (attempts.Grant, error) {
	g, err := scanGrant(s.read.QueryRowContext(ctx, `SELECT `+grantColumns+` FROM run_grants g JOIN attempts a ON a.id = g.attempt
		WHERE g.hash = $1 AND `+usableGrant, hash, millis(now)))
	return g, s.fail("reading a grant", missing(err, "a grant that may be used now"))
}

// FinishGrant is attempts.GrantRecords'. The grant may have died while the bytes came.
func (s *Store) FinishGrant(ctx context.Context, id string, at time.Time) error {
	return s.update(ctx, "noting an upload", func(tx *sql.Tx) error {
		n, err := exec(ctx, tx, `UPDATE run_grants AS g SET done_at = $2 WHERE g.id = $1
			AND EXISTS (SELECT 1 FROM attempts a WHERE a.id = g.attempt AND `+usableGrant+`)`, id, millis(at))
		if err == nil && n == 0 {
			return attempts.Lost(id)
		}
		return err
	})
}

// AttemptGrants is attempts.GrantRecords'.
func (s *Store) AttemptGrants(ctx context.Context, attempt string) ([]attempts.Grant, error) {
	all, err := list(ctx, s.read, scanGrant, `SELECT `+grantColumns+` FROM run_grants g JOIN attempts a ON a.id = g.attempt
		WHERE g.attempt = $1 AND g.done_at > 0 ORDER BY g.id`, attempt)
	return all, s.fail("listing grants", err)
}

// LastCheckpoint is attempts.GrantRecords'.
func (s *Store) LastCheckpoint(ctx context.Context, run string, before int) (attempts.Grant, bool, error) {
	g, err := scanGrant(s.read.QueryRowContext(ctx, `SELECT `+grantColumns+` FROM run_grants g JOIN attempts a ON a.id = g.attempt
		WHERE g.run = $1 AND g.kind = 'checkpoint' AND g.done_at > 0 AND a.number < $2 ORDER BY a.number DESC, g.done_at DESC LIMIT 1`, run, before))
	if errors.Is(err, sql.ErrNoRows) {
		return g, false, nil
	}
	return g, err == nil, s.fail("reading a checkpoint", err)
}

// Results is attempts.GrantRecords'.
func (s *Store) Results(ctx context.Context, id string) ([]attempts.ElementResult, error) {
	all, err := list(ctx, s.read, func(r row) (e attempts.ElementResult, err error) {
		var array string
		err = r.Scan(&array, &e.Index, &e.Result.Name, &e.Result.Digest, &e.Result.Size, &e.Result.MediaType)
		if array == "" || array != id {
			e.Index = -1
		}
		return e, err
	}, `SELECT r.array_id, r.array_index, s.name, s.digest, s.size, s.media_type
		FROM runs r JOIN run_results s ON s.run = r.id
		WHERE r.id = $1 OR (r.array_id = $1 AND r.array_id <> '') ORDER BY r.array_index, r.id, s.name`, id)
	return all, s.fail("listing results", err)
}
