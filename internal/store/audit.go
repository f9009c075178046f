package store

import (
	"context"
	"database/sql"

	"github.com/roadstead/roadstead/internal/audit"
)

// insertAudit writes the line of a change in the change's own transaction.
func insertAudit(ctx context.Context, tx *sql.Tx, e audit.Entry) error {
	_, err := exec(ctx, tx, `
		INSERT INTO audit (id, at, tenant, actor, action, target, detail) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		e.ID, millis(e.At), e.Tenant, e.Actor, e.Action, e.Target, e.Detail)
	return err
}

// ListAudit lists the audit by id, which follows time, past after.
func (s *Store) ListAudit(ctx context.Context, after string, limit int) ([]audit.Entry, error) {
	all, err := list(ctx, s.read, scanAudit, `
		SELECT id, at, tenant, actor, action, target, detail FROM audit WHERE id > $1 ORDER BY id LIMIT $2`, after, limit)
	return all, s.fail("listing the audit", err)
}

func scanAudit(r row) (e audit.Entry, err error) {
	var at int64
	err = r.Scan(&e.ID, &at, &e.Tenant, &e.Actor, &e.Action, &e.Target, &e.Detail)
	e.At = instant(at)
	return e, err
}
