package store

import (
	"context"
	"database/sql"

	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// Bootstrap is identity.AccountStore's. The tenant's unique name decides between two starters.
func (s *Store) Bootstrap(ctx context.Context, first identity.First, deliver func() error) (created bool, err error) {
	err = s.update(ctx, "making the first account", func(tx *sql.Tx) error {
		created = false
		n, err := exec(ctx, tx, `
			INSERT INTO tenants (id, name, created_at)
			SELECT $1, $2, $3 WHERE NOT EXISTS (SELECT 1 FROM tenants)
			ON CONFLICT (name) DO NOTHING`,
			first.Tenant.ID, first.Tenant.Name, millis(first.Tenant.CreatedAt))
		if err != nil || n == 0 {
			return err
		}
		if err := insertAccount(ctx, tx, first.Account); err != nil {
			return err
		}
		if err := insertKey(ctx, tx, first.Key); err != nil {
			return err
		}
		if err := insertAudit(ctx, tx, first.Entry); err != nil {
			return err
		}
		created = true
		return deliver()
	})
	return created && err == nil, err
}

// CreateTenant is identity.AccountStore's.
func (s *Store) CreateTenant(ctx context.Context, t identity.Tenant, e audit.Entry) error {
	return s.update(ctx, "making tenant "+t.Name, func(tx *sql.Tx) error {
		_, err := exec(ctx, tx, `INSERT INTO tenants (id, name, created_at) VALUES ($1, $2, $3)`, t.ID, t.Name, millis(t.CreatedAt))
		if err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

// ListTenants is identity.AccountStore's.
func (s *Store) ListTenants(ctx context.Context, only, after string, limit int) ([]identity.Tenant, error) {
	all, err := list(ctx, s.read, scanTenant, `
		SELECT id, name, created_at FROM tenants
		WHERE name > $1 AND ($2 = '' OR id = $2) ORDER BY name LIMIT $3`, after, only, limit)
	return all, s.fail("listing tenants", err)
}

func scanTenant(r row) (t identity.Tenant, err error) {
	var created int64
	err = r.Scan(&t.ID, &t.Name, &created)
	t.CreatedAt = instant(created)
	return t, err
}

// CreateAccount is identity.AccountStore's.
func (s *Store) CreateAccount(ctx context.Context, a identity.Account, e audit.Entry) error {
	return s.update(ctx, "making account "+a.Name, func(tx *sql.Tx) error {
		if err := insertAccount(ctx, tx, a); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

func insertAccount(ctx context.Context, tx *sql.Tx, a identity.Account) error {
	_, err := exec(ctx, tx, `
		INSERT INTO accounts (id, tenant, kind, name, class, operator, disabled, tenant_role, revision, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		a.ID, a.Tenant, string(a.Kind), a.Name, a.Class.String(), a.Operator, a.Disabled, string(a.Role), a.Revision, millis(a.CreatedAt))
	return err
}

const accountColumns = `a.id, a.tenant, a.kind, a.name, a.class, a.operator, a.disabled, a.tenant_role, a.revision, a.created_at`

// accountRow holds an account while it is scanned.
type accountRow struct {
	account     identity.Account
	kind, class string
	created     int64
}

func (r *accountRow) dest() []any {
	a := &r.account
	return []any{&a.ID, &a.Tenant, &r.kind, &a.Name, &r.class, &a.Operator, &a.Disabled, &a.Role, &a.Revision, &r.created}
}

func (r *accountRow) done() (a identity.Account, err error) {
	a = r.account
	a.Kind = identity.Kind(r.kind)
	a.CreatedAt = instant(r.created)
	a.Class, err = class.Parse("class", r.class)
	return a, err
}

func scanAccount(r row) (identity.Account, error) {
	var a accountRow
	if err := r.Scan(a.dest()...); err != nil {
		return identity.Account{}, err
	}
	return a.done()
}

// Account is identity.AccountStore's.
func (s *Store) Account(ctx context.Context, id string) (identity.Account, error) {
	a, err := scanAccount(s.read.QueryRowContext(ctx, `SELECT `+accountColumns+` FROM accounts a WHERE a.id = $1`, id))
	return a, s.fail("reading an account", missing(err, "account"))
}

// ListAccounts is identity.AccountStore's.
func (s *Store) ListAccounts(ctx context.Context, tenant, after string, limit int) ([]identity.Account, error) {
	all, err := list(ctx, s.read, scanAccount, `
		SELECT `+accountColumns+` FROM accounts a
		WHERE a.tenant = $1 AND a.name > $2 ORDER BY a.name LIMIT $3`, tenant, after, limit)
	return all, s.fail("listing accounts", err)
}

// ChangeAccount is identity.AccountStore's (D-4.3).
func (s *Store) ChangeAccount(ctx context.Context, a identity.Account, expected int64, e audit.Entry) error {
	return s.update(ctx, "changing account "+a.Name, func(tx *sql.Tx) error {
		n, err := exec(ctx, tx, `
			UPDATE accounts SET class = $1, disabled = $2, tenant_role = $3, revision = $4 WHERE id = $5 AND revision = $6`,
			a.Class.String(), a.Disabled, string(a.Role), a.Revision, a.ID, expected)
		if err != nil {
			return err
		}
		if n == 0 {
			var now int64
			if err := tx.QueryRowContext(ctx, `SELECT revision FROM accounts WHERE id = $1`, a.ID).Scan(&now); err != nil {
				return missing(err, "account")
			}
			return fault.New(fault.RevisionMismatch, "the account was changed meanwhile and is now at revision %d; read it again, then repeat", now)
		}
		return insertAudit(ctx, tx, e)
	})
}
