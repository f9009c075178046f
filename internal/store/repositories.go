package store

import (
	"context"
	"database/sql"

	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// CreateRepository is artifacts.RepositoryRecords's.
func (s *Store) CreateRepository(ctx context.Context, r artifacts.Repository, maker string, e audit.Entry) error {
	return s.update(ctx, "making repository "+r.Name, func(tx *sql.Tx) error {
		_, err := exec(ctx, tx, `
			INSERT INTO repositories (id, name, tenant, created_at) VALUES ($1, $2, $3, $4)`, r.ID, r.Name, r.Tenant, millis(r.CreatedAt))
		if err != nil {
			return err
		}
		_, err = exec(ctx, tx, `INSERT INTO grants (repository, account, role) VALUES ($1, $2, $3)`, r.ID, maker, string(identity.Admin))
		if err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

func scanRepository(r row) (artifacts.Repository, error) {
	var repo artifacts.Repository
	var created int64
	var role string
	err := r.Scan(&repo.ID, &repo.Name, &repo.Tenant, &created, &role)
	repo.CreatedAt, repo.Role = instant(created), identity.Role(role)
	return repo, err
}

// Repository is artifacts.RepositoryRecords's.
func (s *Store) Repository(ctx context.Context, name, account string) (artifacts.Repository, error) {
	r, err := scanRepository(s.read.QueryRowContext(ctx, `
		SELECT r.id, r.name, r.tenant, r.created_at, COALESCE(g.role, '')
		FROM repositories r LEFT JOIN grants g ON g.repository = r.id AND g.account = $1
		WHERE r.name = $2`, account, name))
	return r, s.fail("reading a repository", missing(err, "repository"))
}

// ListRepositories is artifacts.RepositoryRecords's.
func (s *Store) ListRepositories(ctx context.Context, account string, all bool, after string, limit int) ([]artifacts.Repository, error) {
	join := `JOIN`
	if all {
		join = `LEFT JOIN`
	}
	page, err := list(ctx, s.read, scanRepository, `
		SELECT r.id, r.name, r.tenant, r.created_at, COALESCE(g.role, '')
		FROM repositories r `+join+` grants g ON g.repository = r.id AND g.account = $1
		WHERE r.name > $2 ORDER BY r.name LIMIT $3`, account, after, limit)
	return page, s.fail("listing repositories", err)
}

// DeleteRepository is artifacts.RepositoryRecords's. The row is locked first: writers of files hold a share of it, so
// the look at the files sees all that were written before, and none is written after.
func (s *Store) DeleteRepository(ctx context.Context, name string, e audit.Entry) error {
	return s.update(ctx, "deleting repository "+name, func(tx *sql.Tx) error {
		id, err := repositoryID(ctx, tx, name, s.engine.lockRow)
		if err != nil {
			return err
		}
		var live bool
		err = tx.QueryRowContext(ctx, `
			SELECT EXISTS (SELECT 1 FROM files WHERE repository = $1 AND NOT deleted)`, id).Scan(&live)
		if err != nil {
			return err
		}
		if live {
			return fault.New(fault.Conflict, "repository %s still has files; delete them first", name)
		}
		if _, err := exec(ctx, tx, `DELETE FROM repositories WHERE id = $1`, id); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

func repositoryID(ctx context.Context, q querier, name, suffix string) (id string, err error) {
	err = q.QueryRowContext(ctx, `SELECT id FROM repositories WHERE name = $1`+suffix, name).Scan(&id)
	return id, missing(err, "repository")
}
