package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/fault"
)

// CreateUpload is artifacts.UploadRecords's. The bound is not exact on PostgreSQL when one caller starts many at the
// very same moment: it bounds disk use, and being off by a few costs nothing.
func (s *Store) CreateUpload(ctx context.Context, u artifacts.Upload, limit int) error {
	return s.update(ctx, "starting an upload", func(tx *sql.Tx) error {
		var open int
		err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM uploads WHERE created_by = $1 AND revision = 0`, u.CreatedBy).Scan(&open)
		if err != nil {
			return err
		}
		if open >= limit {
			return fault.Later(fault.RateLimited, "uploads_limit", time.Minute,
				"you have %d unfinished uploads, the most allowed; finish or delete some", open)
		}
		_, err = exec(ctx, tx, `
			INSERT INTO uploads (id, repository, path, media_type, size, digest, if_match, if_none_match, created_at, created_by, expires_at, revision)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0)`,
			u.ID, u.Repository, u.Path, u.MediaType, u.Size, u.Digest, u.IfMatch, u.IfNoneMatch,
			millis(u.CreatedAt), u.CreatedBy, millis(u.ExpiresAt))
		return err
	})
}

// Upload is artifacts.UploadRecords's.
func (s *Store) Upload(ctx context.Context, id string) (artifacts.Upload, error) {
	var u artifacts.Upload
	var created, expires int64
	err := s.read.QueryRowContext(ctx, `
		SELECT id, repository, path, media_type, size, digest, if_match, if_none_match, created_at, created_by, expires_at, revision
		FROM uploads WHERE id = $1`, id).Scan(
		&u.ID, &u.Repository, &u.Path, &u.MediaType, &u.Size, &u.Digest, &u.IfMatch, &u.IfNoneMatch,
		&created, &u.CreatedBy, &expires, &u.Revision)
	u.CreatedAt, u.ExpiresAt = instant(created), instant(expires)
	return u, s.fail("reading an upload", missing(err, "upload"))
}

// ExtendUpload is artifacts.UploadRecords's.
func (s *Store) ExtendUpload(ctx context.Context, id string, expires time.Time) error {
	return s.update(ctx, "extending an upload", func(tx *sql.Tx) error {
		n, err := exec(ctx, tx, `UPDATE uploads SET expires_at = $1 WHERE id = $2 AND revision = 0`, millis(expires), id)
		if err == nil && n == 0 {
			return fault.Missing("upload")
		}
		return err
	})
}

// FinishUpload is artifacts.UploadRecords's.
func (s *Store) FinishUpload(ctx context.Context, id string, w artifacts.FileWrite, check func(*artifacts.File) error) (f artifacts.File, created bool, err error) {
	err = s.update(ctx, "finishing an upload", func(tx *sql.Tx) (err error) {
		if f, created, err = putRevision(ctx, tx, w, false, check); err != nil {
			return err
		}
		n, err := exec(ctx, tx, `UPDATE uploads SET revision = $1 WHERE id = $2 AND revision = 0`, f.Revision, id)
		if err == nil && n == 0 {
			return fault.New(fault.Conflict, "the upload was finished or dropped meanwhile")
		}
		return err
	})
	return f, created, err
}

// DeleteUpload is artifacts.UploadRecords's.
func (s *Store) DeleteUpload(ctx context.Context, id string) error {
	return s.update(ctx, "dropping an upload", func(tx *sql.Tx) error {
		_, err := exec(ctx, tx, `DELETE FROM uploads WHERE id = $1`, id)
		return err
	})
}

// ExpiredUploads is artifacts.UploadRecords's.
func (s *Store) ExpiredUploads(ctx context.Context, before time.Time, limit int) ([]string, error) {
	scan := func(r row) (id string, err error) {
		err = r.Scan(&id)
		return id, err
	}
	ids, err := list(ctx, s.read, scan, `
		SELECT id FROM uploads WHERE expires_at < $1 ORDER BY expires_at LIMIT $2`, millis(before), limit)
	return ids, s.fail("listing expired uploads", err)
}
