package store

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

const keyColumns = `k.id, k.account, k.name, k.hash, k.created_at, k.expires_at, k.revoked_at, k.last_used`

// keyRow holds a key while it is scanned.
type keyRow struct {
	key                             identity.Key
	created, expires, revoked, used int64
}

func (r *keyRow) dest() []any {
	k := &r.key
	return []any{&k.ID, &k.Account, &k.Name, &k.Hash, &r.created, &r.expires, &r.revoked, &r.used}
}

func (r *keyRow) done() identity.Key {
	k := r.key
	k.CreatedAt, k.ExpiresAt, k.RevokedAt, k.LastUsed = instant(r.created), instant(r.expires), instant(r.revoked), instant(r.used)
	return k
}

func insertKey(ctx context.Context, tx *sql.Tx, k identity.Key) error {
	_, err := exec(ctx, tx, `
		INSERT INTO api_keys (id, account, name, hash, created_at, expires_at, revoked_at, last_used)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		k.ID, k.Account, k.Name, k.Hash, millis(k.CreatedAt), millis(k.ExpiresAt), millis(k.RevokedAt), millis(k.LastUsed))
	return err
}

// CreateKey is identity.KeyStore's.
func (s *Store) CreateKey(ctx context.Context, k identity.Key, e audit.Entry) error {
	return s.update(ctx, "making a key", func(tx *sql.Tx) error {
		if err := insertKey(ctx, tx, k); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

// Key is identity.KeyStore's.
func (s *Store) Key(ctx context.Context, id string) (identity.Key, identity.Account, error) {
	var k keyRow
	var a accountRow
	err := s.read.QueryRowContext(ctx, `
		SELECT `+keyColumns+`, `+accountColumns+`
		FROM api_keys k JOIN accounts a ON a.id = k.account WHERE k.id = $1`, id).Scan(append(k.dest(), a.dest()...)...)
	if err != nil {
		return identity.Key{}, identity.Account{}, s.fail("reading a key", missing(err, "key"))
	}
	account, err := a.done()
	return k.done(), account, s.fail("reading a key", err)
}

// ListKeys is identity.KeyStore's.
func (s *Store) ListKeys(ctx context.Context, account string) ([]identity.Key, error) {
	scan := func(r row) (identity.Key, error) {
		var k keyRow
		err := r.Scan(k.dest()...)
		return k.done(), err
	}
	all, err := list(ctx, s.read, scan, `
		SELECT `+keyColumns+` FROM api_keys k WHERE k.account = $1 ORDER BY k.created_at DESC, k.id`, account)
	return all, s.fail("listing keys", err)
}

// RevokeKey is identity.KeyStore's.
func (s *Store) RevokeKey(ctx context.Context, id string, at time.Time, e audit.Entry) error {
	return s.update(ctx, "revoking a key", func(tx *sql.Tx) error {
		n, err := exec(ctx, tx, `UPDATE api_keys SET revoked_at = $1 WHERE id = $2 AND revoked_at = 0`, millis(at), id)
		if err != nil {
			return err
		}
		if n == 1 {
			return insertAudit(ctx, tx, e)
		}
		var there int
		err = tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM api_keys WHERE id = $1`, id).Scan(&there)
		if err == nil && there == 0 {
			return fault.Missing("key")
		}
		return err
	})
}

// TouchKeys is identity.KeyStore's. Rows are taken in order of ids, so that two processes can't block each other.
func (s *Store) TouchKeys(ctx context.Context, used map[string]time.Time) error {
	return s.update(ctx, "noting the use of keys", func(tx *sql.Tx) error {
		for _, id := range slices.Sorted(maps.Keys(used)) {
			_, err := exec(ctx, tx, `UPDATE api_keys SET last_used = $1 WHERE id = $2 AND last_used < $1`, millis(used[id]), id)
			if err != nil {
				return err
			}
		}
		return nil
	})
}
