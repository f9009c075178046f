package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/fault"
)

const linkColumns = `l.id, l.hash, r.name, l.path, l.revision, l.created_at, l.created_by, l.expires_at, l.revoked_at`

// linkRow holds a link while it is scanned.
type linkRow struct {
	link                      artifacts.ShareLink
	created, expires, revoked int64
}

func (r *linkRow) dest() []any {
	l := &r.link
	return []any{&l.ID, &l.Hash, &l.Repository, &l.Path, &l.Revision, &r.created, &l.CreatedBy, &r.expires, &r.revoked}
}

func (r *linkRow) done() artifacts.ShareLink {
	l := r.link
	l.CreatedAt, l.ExpiresAt, l.RevokedAt = instant(r.created), instant(r.expires), instant(r.revoked)
	return l
}

// CreateLink is artifacts.LinkRecords's.
func (s *Store) CreateLink(ctx context.Context, l artifacts.ShareLink, e audit.Entry) error {
	return s.update(ctx, "making a link", func(tx *sql.Tx) error {
		id, err := repositoryID(ctx, tx, l.Repository, "")
		if err != nil {
			return err
		}
		_, err = exec(ctx, tx, `
			INSERT INTO links (id, hash, repository, path, revision, created_at, created_by, expires_at, revoked_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			l.ID, l.Hash, id, l.Path, l.Revision, millis(l.CreatedAt), l.CreatedBy, millis(l.ExpiresAt), millis(l.RevokedAt))
		if err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

// LinkByHash is artifacts.LinkRecords's.
func (s *Store) LinkByHash(ctx context.Context, hash string) (l artifacts.ShareLink, tenant string, f artifacts.File, err error) {
	var lr linkRow
	var created int64
	dest := append(lr.dest(), &tenant,
		&f.Path, &f.Revision, &f.Digest, &f.Size, &f.MediaType, &f.Deleted, &created, &f.CreatedBy)
	err = s.read.QueryRowContext(ctx, `
		SELECT `+linkColumns+`, r.tenant, `+fileColumns+` FROM links l
		JOIN repositories r ON r.id = l.repository
		JOIN files f ON f.repository = l.repository AND f.path = l.path AND NOT f.deleted
		JOIN revisions v ON v.repository = l.repository AND v.path = l.path AND v.revision = l.revision
		WHERE l.hash = $1`, hash).Scan(dest...)
	if err != nil {
		return artifacts.ShareLink{}, "", artifacts.File{}, s.fail("reading a link", missing(err, "link"))
	}
	l = lr.done()
	f.Repository, f.CreatedAt = l.Repository, instant(created)
	return l, tenant, f, nil
}

// ListLinks is artifacts.LinkRecords's.
func (s *Store) ListLinks(ctx context.Context, repository, after string, limit int) ([]artifacts.ShareLink, error) {
	scan := func(r row) (artifacts.ShareLink, error) {
		var l linkRow
		err := r.Scan(l.dest()...)
		return l.done(), err
	}
	page, err := list(ctx, s.read, scan, `
		SELECT `+linkColumns+` FROM repositories r JOIN links l ON l.repository = r.id
		WHERE r.name = $1 AND l.id > $2 ORDER BY l.id LIMIT $3`, repository, after, limit)
	return page, s.fail("listing links", err)
}

// RevokeLink is artifacts.LinkRecords's.
func (s *Store) RevokeLink(ctx context.Context, repository, id string, at time.Time, e audit.Entry) error {
	return s.update(ctx, "revoking a link", func(tx *sql.Tx) error {
		repo, err := repositoryID(ctx, tx, repository, "")
		if err != nil {
			return err
		}
		n, err := exec(ctx, tx, `
			UPDATE links SET revoked_at = $1 WHERE id = $2 AND repository = $3 AND revoked_at = 0`, millis(at), id, repo)
		if err != nil {
			return err
		}
		if n == 1 {
			return insertAudit(ctx, tx, e)
		}
		var there int
		err = tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM links WHERE id = $1 AND repository = $2`, id, repo).Scan(&there)
		if err == nil && there == 0 {
			return fault.Missing("link")
		}
		return err
	})
}
