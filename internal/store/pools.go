package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/pools"
)

var _ pools.Store = (*Store)(nil)

const poolColumns = `name, tenant, policy, draining, drain_by, revision, created_at`

func scanPool(r row) (p pools.Pool, err error) {
	var policy string
	var drainBy, created int64
	if err = r.Scan(&p.Name, &p.Tenant, &policy, &p.Draining, &drainBy, &p.Revision, &created); err == nil {
		err = json.Unmarshal([]byte(policy), &p.Policy)
	}
	p.DrainBy, p.CreatedAt = instant(drainBy), instant(created)
	return p, err
}

// Pool is pools.PoolStore's.
func (s *Store) Pool(ctx context.Context, name string) (pools.Pool, error) {
	p, err := scanPool(s.read.QueryRowContext(ctx, `SELECT `+poolColumns+` FROM pools WHERE name = $1`, name))
	return p, s.fail("reading a pool", missing(err, "pool "+name))
}

// ListPools is pools.PoolStore's.
func (s *Store) ListPools(ctx context.Context) ([]pools.Pool, error) {
	all, err := list(ctx, s.read, scanPool, `SELECT `+poolColumns+` FROM pools ORDER BY name`)
	return all, s.fail("listing pools", err)
}

// CreatePool is pools.PoolStore's.
func (s *Store) CreatePool(ctx context.Context, p pools.Pool, e audit.Entry) error {
	return s.update(ctx, "making pool "+p.Name, func(tx *sql.Tx) error {
		policy, err := json.Marshal(p.Policy)
		if err == nil && p.Tenant != "" {
			err = knownTenant(ctx, tx, p.Tenant)
		}
		if err != nil {
			return err
		}
		if _, err := exec(ctx, tx, `INSERT INTO pools (name, tenant, policy, draining, drain_by, revision, created_at) VALUES ($1, $2, $3, $4, 0, 1, $5)`,
			p.Name, p.Tenant, string(policy), false, millis(p.CreatedAt)); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

// knownTenant refuses a tenant that isn't there: nobody would see that a name was misspelt.
func knownTenant(ctx context.Context, tx *sql.Tx, id string) error {
	var found int
	return missing(tx.QueryRowContext(ctx, `SELECT 1 FROM tenants WHERE id = $1`, id).Scan(&found), "tenant "+id)
}

// ChangePool is pools.PoolStore's.
func (s *Store) ChangePool(ctx context.Context, p pools.Pool, e audit.Entry) error {
	return s.update(ctx, "changing pool "+p.Name, func(tx *sql.Tx) error {
		policy, err := json.Marshal(p.Policy)
		if err != nil {
			return err
		}
		n, err := exec(ctx, tx, `UPDATE pools SET policy = $2, draining = $3, drain_by = $4, revision = $5 WHERE name = $1 AND revision = $6`,
			p.Name, string(policy), p.Draining, millis(p.DrainBy), p.Revision, p.Revision-1)
		if err != nil {
			return err
		}
		if n == 0 {
			return poolMismatch(ctx, tx, p.Name)
		}
		return insertAudit(ctx, tx, e)
	})
}

func poolMismatch(ctx context.Context, tx *sql.Tx, name string) error {
	var revision int64
	if err := tx.QueryRowContext(ctx, `SELECT revision FROM pools WHERE name = $1`, name).Scan(&revision); err != nil {
		return missing(err, "pool "+name)
	}
	return identity.RevisionMismatch("pool", revision)
}

// DeletePool is pools.PoolStore's.
func (s *Store) DeletePool(ctx context.Context, name string, e audit.Entry) error {
	return s.update(ctx, "deleting pool "+name, func(tx *sql.Tx) error {
		var busy int
		if err := tx.QueryRowContext(ctx, `
			SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM runs WHERE pool = $1 AND state IN ('queued', 'active') LIMIT 1) AS r)
				+ (SELECT COUNT(*) FROM runners WHERE pool = $1 AND revoked_at = 0)`, name).Scan(&busy); err != nil {
			return err
		}
		if busy > 0 {
			return fault.New(fault.Conflict, "pool %s still has Runs or runners: drain it, cancel what waits, revoke its runners", name)
		}
		n, err := exec(ctx, tx, `DELETE FROM pools WHERE name = $1`, name)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.Missing("pool " + name)
		}
		for _, query := range []string{`DELETE FROM pool_owners WHERE pool = $1`, `DELETE FROM pool_shares WHERE pool = $1`, `DELETE FROM runner_tokens WHERE pool = $1`} {
			if _, err := exec(ctx, tx, query, name); err != nil {
				return err
			}
		}
		return insertAudit(ctx, tx, e)
	})
}

// Shares is pools.ShareStore's.
func (s *Store) Shares(ctx context.Context, pool string) ([]api.PoolShare, error) {
	all, err := list(ctx, s.read, func(r row) (p api.PoolShare, err error) { return p, r.Scan(&p.Pool, &p.Tenant, &p.Weight, &p.MaxSlots) },
		`SELECT pool, tenant, weight, max_slots FROM pool_shares WHERE pool = $1 ORDER BY tenant`, pool)
	return all, s.fail("listing shares", err)
}

// SetShare is pools.ShareStore's.
func (s *Store) SetShare(ctx context.Context, p api.PoolShare, e audit.Entry) error {
	return s.update(ctx, "setting a share", func(tx *sql.Tx) error {
		if err := knownTenant(ctx, tx, p.Tenant); err != nil {
			return err
		}
		if _, err := exec(ctx, tx, `
			INSERT INTO pool_shares (pool, tenant, weight, max_slots) VALUES ($1, $2, $3, $4)
			ON CONFLICT (pool, tenant) DO UPDATE SET weight = excluded.weight, max_slots = excluded.max_slots`, p.Pool, p.Tenant, p.Weight, p.MaxSlots); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

// Budget is pools.ShareStore's.
func (s *Store) Budget(ctx context.Context, tenant string) (b pools.Budget, err error) {
	b.Tenant = tenant
	err = s.read.QueryRowContext(ctx, `
		SELECT limited, spent, revision, (SELECT COALESCE(SUM(amount), 0) FROM holds WHERE account = $1 AND kind = 'money') FROM budgets WHERE tenant = $1`, tenant).
		Scan(&b.Limit, &b.Spent, &b.Revision, &b.Held)
	if errors.Is(err, sql.ErrNoRows) {
		return b, nil
	}
	return b, s.fail("reading a budget", err)
}

// SetBudget is pools.ShareStore's.
func (s *Store) SetBudget(ctx context.Context, b pools.Budget, e audit.Entry) error {
	return s.update(ctx, "setting a budget", func(tx *sql.Tx) error {
		if err := knownTenant(ctx, tx, b.Tenant); err != nil {
			return err
		}
		n, err := exec(ctx, tx, `
			INSERT INTO budgets (tenant, limited, spent, revision)
			SELECT CAST($1 AS TEXT), CAST($2 AS BIGINT), 0, CAST($3 AS BIGINT) WHERE CAST($3 AS BIGINT) = 1 OR EXISTS (SELECT 1 FROM budgets WHERE tenant = $1)
			ON CONFLICT (tenant) DO UPDATE SET limited = excluded.limited, revision = excluded.revision WHERE budgets.revision = excluded.revision - 1`,
			b.Tenant, b.Limit, b.Revision)
		if err != nil {
			return err
		}
		if n == 0 {
			var revision int64
			if err := tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(revision), 0) FROM budgets WHERE tenant = $1`, b.Tenant).Scan(&revision); err != nil {
				return err
			}
			return identity.RevisionMismatch("budget", revision)
		}
		return insertAudit(ctx, tx, e)
	})
}

// CreateToken is pools.RunnerStore's.
func (s *Store) CreateToken(ctx context.Context, t pools.Token, e audit.Entry) error {
	return s.update(ctx, "making a token for runners", func(tx *sql.Tx) error {
		if _, err := exec(ctx, tx, `INSERT INTO runner_tokens (id, pool, hash, expires_at, used_by) VALUES ($1, $2, $3, $4, '')`,
			t.ID, t.Pool, t.Hash, millis(t.ExpiresAt)); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

// RegisterRunner is pools.RunnerStore's.
func (s *Store) RegisterRunner(ctx context.Context, tokenHash string, r pools.Runner, now time.Time, e audit.Entry) (pools.Runner, error) {
	err := s.update(ctx, "registering a runner", func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `UPDATE runner_tokens SET used_by = $2 WHERE hash = $1 AND used_by = '' AND expires_at > $3 RETURNING pool`,
			tokenHash, r.ID, millis(now)).Scan(&r.Pool)
		if errors.Is(err, sql.ErrNoRows) {
			return fault.New(fault.Unauthorized, "the token is unknown, used or expired: make a new one with roadctl pools token POOL")
		}
		if err != nil {
			return err
		}
		capacity, err := json.Marshal(r.Capacity)
		if err != nil {
			return err
		}
		labels, err := json.Marshal(r.Labels)
		if err != nil {
			return err
		}
		if _, err = exec(ctx, tx, `
			INSERT INTO runners (id, pool, name, hash, capacity, labels, version, protocol, draining, revoked_at, created_at, sequence, acked, beats, seen_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, $10, 0, 0, 0, 0)`,
			r.ID, r.Pool, r.Name, r.Hash, string(capacity), string(labels), r.Version, r.Protocol, false, millis(r.CreatedAt)); err != nil {
			return err
		}
		e.Detail = "with pool " + r.Pool + " as " + e.Detail
		return insertAudit(ctx, tx, e)
	})
	return r, err
}

const runnerColumns = `r.id, r.pool, r.name, r.hash, r.capacity, r.labels, r.version, r.protocol, r.draining, r.revoked_at, r.created_at, r.seen_at, r.beats`

func scanRunner(from row) (r pools.Runner, err error) {
	var capacity, labels string
	var revoked, created, seen int64
	if err = from.Scan(&r.ID, &r.Pool, &r.Name, &r.Hash, &capacity, &labels, &r.Version, &r.Protocol, &r.Draining, &revoked, &created, &seen, &r.Beats); err == nil {
		err = errors.Join(json.Unmarshal([]byte(capacity), &r.Capacity), json.Unmarshal([]byte(labels), &r.Labels))
	}
	r.RevokedAt, r.CreatedAt, r.SeenAt = instant(revoked), instant(created), instant(seen)
	return r, err
}

// Runner is pools.RunnerStore's.
func (s *Store) Runner(ctx context.Context, id string) (pools.Runner, error) {
	r, err := scanRunner(s.read.QueryRowContext(ctx, `SELECT `+runnerColumns+` FROM runners r WHERE r.id = $1`, id))
	return r, s.fail("reading a runner", missing(err, "runner "+id))
}

// Runners is pools.RunnerStore's.
func (s *Store) Runners(ctx context.Context, pool string) ([]pools.Runner, error) {
	all, err := list(ctx, s.read, scanRunner, `SELECT `+runnerColumns+` FROM runners r WHERE $1 = '' OR r.pool = $1 ORDER BY r.pool, r.name, r.id`, pool)
	if err != nil {
		return nil, s.fail("listing runners", err)
	}
	used, err := list(ctx, s.read, scanAttempt, `SELECT `+attemptColumns+` FROM attempts a WHERE ($1 = '' OR a.pool = $1) AND `+living, pool)
	for _, a := range used {
		for i := range all {
			if all[i].ID == a.Runner {
				all[i].Attempts++
				all[i].Used.Slots += a.Resources.Slots
				all[i].Used.MilliCPU += a.Resources.MilliCPU
				all[i].Used.MemoryBytes += a.Resources.MemoryBytes
				all[i].Used.DiskBytes += a.Resources.DiskBytes
			}
		}
	}
	return all, s.fail("listing runners", err)
}

// DrainRunner is pools.RunnerStore's.
func (s *Store) DrainRunner(ctx context.Context, id string, drain bool, e audit.Entry) error {
	return s.changeRunner(ctx, `UPDATE runners SET draining = $2 WHERE id = $1 AND revoked_at = 0`, id, drain, e)
}

// RevokeRunner is pools.RunnerStore's.
func (s *Store) RevokeRunner(ctx context.Context, id string, at time.Time, e audit.Entry) error {
	return s.changeRunner(ctx, `UPDATE runners SET revoked_at = $2 WHERE id = $1 AND revoked_at = 0`, id, millis(at), e)
}

func (s *Store) changeRunner(ctx context.Context, query, id string, value any, e audit.Entry) error {
	return s.update(ctx, "changing runner "+id, func(tx *sql.Tx) error {
		n, err := exec(ctx, tx, query, id, value)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.Missing("runner " + id)
		}
		return insertAudit(ctx, tx, e)
	})
}
