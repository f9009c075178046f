package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/secrets"
)

var _ secrets.Records = (*Store)(nil)

const secretColumns = `s.id, s.tenant, s.name, s.packages, s.version, s.created_at, s.created_by, s.rotated_at, s.rotated_by`

// secretRow holds a secret, and where asked a value, while they are scanned.
type secretRow struct {
	secret           secrets.Secret
	value            secrets.Sealed
	packages         string
	created, rotated int64
	text             string
}

func (r *secretRow) dest() []any {
	s := &r.secret
	return []any{&s.ID, &s.Tenant, &s.Name, &r.packages, &s.Version, &r.created, &s.CreatedBy, &r.rotated, &s.RotatedBy}
}

func (r *secretRow) done() (secrets.Secret, error) {
	s := r.secret
	s.CreatedAt, s.RotatedAt = instant(r.created), instant(r.rotated)
	err := json.Unmarshal([]byte(r.packages), &s.Packages)
	return s, err
}

func scanSecret(r row) (secrets.Secret, error) {
	var s secretRow
	if err := r.Scan(s.dest()...); err != nil {
		return secrets.Secret{}, err
	}
	return s.done()
}

const sealedColumns = `v.secret, s.tenant, s.name, v.version, v.key_id, v.sealed`

func (r *secretRow) sealed() []any {
	v := &r.value
	return []any{&v.Secret, &v.Tenant, &v.Name, &v.Version, &v.Key, &r.text}
}

func (r *secretRow) opened() (v secrets.Sealed, err error) {
	v = r.value
	v.Text, err = base64.StdEncoding.DecodeString(r.text)
	return v, err
}

func scanSealed(r row) (secrets.Sealed, error) {
	var s secretRow
	if err := r.Scan(s.sealed()...); err != nil {
		return secrets.Sealed{}, err
	}
	return s.opened()
}

func packagesText(packages []string) (string, error) {
	if len(packages) == 0 {
		return "[]", nil
	}
	text, err := json.Marshal(packages)
	return string(text), err
}

func insertSealed(ctx context.Context, tx *sql.Tx, v secrets.Sealed) error {
	_, err := exec(ctx, tx, `INSERT INTO secret_versions (secret, version, key_id, sealed) VALUES ($1, $2, $3, $4)`,
		v.Secret, v.Version, v.Key, base64.StdEncoding.EncodeToString(v.Text))
	return err
}

// CreateSecret is secrets.SecretRecords's.
func (s *Store) CreateSecret(ctx context.Context, n secrets.Secret, v secrets.Sealed, e audit.Entry) error {
	return s.update(ctx, "making secret "+n.Name, func(tx *sql.Tx) error {
		packages, err := packagesText(n.Packages)
		if err != nil {
			return err
		}
		if _, err := exec(ctx, tx, `
			INSERT INTO secrets (id, tenant, name, packages, version, created_at, created_by, rotated_at, rotated_by)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			n.ID, n.Tenant, n.Name, packages, n.Version, millis(n.CreatedAt), n.CreatedBy, millis(n.RotatedAt), n.RotatedBy); err != nil {
			return err
		}
		if err := insertSealed(ctx, tx, v); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

// Secret is secrets.SecretRecords's.
func (s *Store) Secret(ctx context.Context, tenant, name string) (secrets.Secret, error) {
	got, err := scanSecret(s.read.QueryRowContext(ctx, `
		SELECT `+secretColumns+` FROM secrets s WHERE s.tenant = $1 AND s.name = $2`, tenant, name))
	return got, s.fail("reading a secret", missing(err, "secret"))
}

// ListSecrets is secrets.SecretRecords's.
func (s *Store) ListSecrets(ctx context.Context, tenant, after string, limit int) ([]secrets.Secret, error) {
	page, err := list(ctx, s.read, scanSecret, `
		SELECT `+secretColumns+` FROM secrets s WHERE s.tenant = $1 AND s.name > $2 ORDER BY s.name LIMIT $3`, tenant, after, limit)
	return page, s.fail("listing secrets", err)
}

// RotateSecret is secrets.SecretRecords's.
func (s *Store) RotateSecret(ctx context.Context, n secrets.Secret, v secrets.Sealed, keep int64, e audit.Entry) error {
	return s.update(ctx, "rotating secret "+n.Name, func(tx *sql.Tx) error {
		changed, err := exec(ctx, tx, `
			UPDATE secrets SET version = $1, rotated_at = $2, rotated_by = $3 WHERE id = $4 AND version = $5`,
			v.Version, millis(n.RotatedAt), n.RotatedBy, n.ID, v.Version-1)
		if err != nil {
			return err
		}
		if changed == 0 {
			var now int64
			if err := tx.QueryRowContext(ctx, `SELECT version FROM secrets WHERE id = $1`, n.ID).Scan(&now); err != nil {
				return missing(err, "secret")
			}
			return identity.RevisionMismatch("secret", now)
		}
		if err := insertSealed(ctx, tx, v); err != nil {
			return err
		}
		if _, err := exec(ctx, tx, `DELETE FROM secret_versions WHERE secret = $1 AND version <= $2`, n.ID, v.Version-keep); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

// ScopeSecret is secrets.SecretRecords's.
func (s *Store) ScopeSecret(ctx context.Context, n secrets.Secret, e audit.Entry) error {
	return s.update(ctx, "scoping secret "+n.Name, func(tx *sql.Tx) error {
		packages, err := packagesText(n.Packages)
		if err != nil {
			return err
		}
		changed, err := exec(ctx, tx, `UPDATE secrets SET packages = $1 WHERE id = $2`, packages, n.ID)
		if err != nil {
			return err
		}
		if changed == 0 {
			return fault.Missing("secret")
		}
		return insertAudit(ctx, tx, e)
	})
}

// DeleteSecret is secrets.SecretRecords's. The secret's row goes first: a rotation under way has it, or finds it gone, so
// no value is left behind.
func (s *Store) DeleteSecret(ctx context.Context, n secrets.Secret, e audit.Entry) error {
	return s.update(ctx, "deleting secret "+n.Name, func(tx *sql.Tx) error {
		gone, err := exec(ctx, tx, `DELETE FROM secrets WHERE id = $1`, n.ID)
		if err != nil {
			return err
		}
		if gone == 0 {
			return fault.Missing("secret")
		}
		if _, err := exec(ctx, tx, `DELETE FROM secret_versions WHERE secret = $1`, n.ID); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

// SealedSecrets is secrets.SealedRecords's.
func (s *Store) SealedSecrets(ctx context.Context, tenant string, names []string) (known []secrets.Secret, values []secrets.Sealed, err error) {
	rowsOf := make([][1]string, len(names)) // each a row of one column, which both engines take apart alike
	for i, name := range names {
		rowsOf[i][0] = name
	}
	wanted, err := json.Marshal(rowsOf)
	if err != nil {
		return nil, nil, fmt.Errorf("reading sealed secrets: %w", err)
	}
	rows, err := list(ctx, s.read, func(r row) (got secretRow, err error) {
		return got, r.Scan(append(got.dest(), got.sealed()...)...)
	}, `
		SELECT `+secretColumns+`, `+sealedColumns+` FROM secrets s
		JOIN secret_versions v ON v.secret = s.id AND v.version = s.version
		WHERE s.tenant = $2 AND s.name IN (SELECT value ->> 0 FROM `+s.engine.elements+`) ORDER BY s.name`, string(wanted), tenant)
	if err != nil {
		return nil, nil, s.fail("reading sealed secrets", err)
	}
	for i := range rows {
		secret, err := rows[i].done()
		if err != nil {
			return nil, nil, s.fail("reading sealed secrets", err)
		}
		value, err := rows[i].opened()
		if err != nil {
			return nil, nil, s.fail("reading sealed secrets", err)
		}
		known, values = append(known, secret), append(values, value)
	}
	return known, values, nil
}

// SealedVersion is secrets.SealedRecords's.
func (s *Store) SealedVersion(ctx context.Context, secret string, version int64) (secrets.Sealed, error) {
	v, err := scanSealed(s.read.QueryRowContext(ctx, `
		SELECT `+sealedColumns+` FROM secret_versions v JOIN secrets s ON s.id = v.secret
		WHERE v.secret = $1 AND v.version = $2`, secret, version))
	return v, s.fail("reading a sealed secret", missing(err, "secret"))
}

// NoteGiven is secrets.SealedRecords's.
func (s *Store) NoteGiven(ctx context.Context, entries []audit.Entry) error {
	return s.update(ctx, "noting who got secrets", func(tx *sql.Tx) error {
		for _, e := range entries {
			if err := insertAudit(ctx, tx, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// NoteKeyRotation is secrets.SealedRecords's.
func (s *Store) NoteKeyRotation(ctx context.Context, e audit.Entry) error {
	return s.update(ctx, "noting the rotation of the key", func(tx *sql.Tx) error { return insertAudit(ctx, tx, e) })
}

// SealedUnderOther is secrets.SealedRecords's.
func (s *Store) SealedUnderOther(ctx context.Context, key, afterSecret string, afterVersion int64, limit int) ([]secrets.Sealed, error) {
	page, err := list(ctx, s.read, scanSealed, `
		SELECT `+sealedColumns+` FROM secret_versions v JOIN secrets s ON s.id = v.secret
		WHERE v.key_id <> $1 AND (v.secret > $2 OR v.secret = $2 AND v.version > $3)
		ORDER BY v.secret, v.version LIMIT $4`, key, afterSecret, afterVersion, limit)
	return page, s.fail("listing sealed secrets", err)
}

// Reseal is secrets.SealedRecords's.
func (s *Store) Reseal(ctx context.Context, v secrets.Sealed, from string) (done bool, err error) {
	err = s.update(ctx, "sealing a secret anew", func(tx *sql.Tx) error {
		n, err := exec(ctx, tx, `
			UPDATE secret_versions SET key_id = $1, sealed = $2 WHERE secret = $3 AND version = $4 AND key_id = $5`,
			v.Key, base64.StdEncoding.EncodeToString(v.Text), v.Secret, v.Version, from)
		done = n == 1
		return err
	})
	return done && err == nil, err
}
