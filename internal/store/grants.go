package store

import (
	"context"
	"database/sql"

	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// Role is identity.GrantStore's.
func (s *Store) Role(ctx context.Context, account, repository string) (identity.Role, string, error) {
	var role, tenant string
	err := s.read.QueryRowContext(ctx, `
		SELECT COALESCE(g.role, ''), r.tenant
		FROM repositories r LEFT JOIN grants g ON g.repository = r.id AND g.account = $1
		WHERE r.name = $2`, account, repository).Scan(&role, &tenant)
	return identity.Role(role), tenant, s.fail("reading a role", missing(err, "repository"))
}

// SetGrant is identity.GrantStore's.
func (s *Store) SetGrant(ctx context.Context, g identity.Grant, e audit.Entry) error {
	return s.update(ctx, "setting a grant", func(tx *sql.Tx) error {
		n, err := exec(ctx, tx, `
			INSERT INTO grants (repository, account, role)
			SELECT r.id, a.id, $1 FROM repositories r JOIN accounts a ON a.tenant = r.tenant
			WHERE r.name = $2 AND a.id = $3
			ON CONFLICT (repository, account) DO UPDATE SET role = excluded.role`, string(g.Role), g.Repository, g.Account)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.Missing("account")
		}
		return insertAudit(ctx, tx, e)
	})
}

// RemoveGrant is identity.GrantStore's.
func (s *Store) RemoveGrant(ctx context.Context, repository, account string, e audit.Entry) error {
	return s.update(ctx, "removing a grant", func(tx *sql.Tx) error {
		n, err := exec(ctx, tx, `
			DELETE FROM grants WHERE account = $1 AND repository = (SELECT id FROM repositories WHERE name = $2)`, account, repository)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.Missing("grant")
		}
		return insertAudit(ctx, tx, e)
	})
}

// ListGrants is identity.GrantStore's.
func (s *Store) ListGrants(ctx context.Context, repository, after string, limit int) ([]identity.Grant, error) {
	scan := func(r row) (g identity.Grant, err error) {
		var role string
		err = r.Scan(&g.Repository, &g.Account, &role)
		g.Role = identity.Role(role)
		return g, err
	}
	all, err := list(ctx, s.read, scan, `
		SELECT r.name, g.account, g.role FROM grants g JOIN repositories r ON r.id = g.repository
		WHERE r.name = $1 AND g.account > $2 ORDER BY g.account LIMIT $3`, repository, after, limit)
	return all, s.fail("listing grants", err)
}
