package store

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/fault"
)

const fileColumns = `v.path, v.revision, v.digest, v.size, v.media_type, v.deleted, v.created_at, v.created_by`

// fileIn scans files of one repository.
func fileIn(repository string) func(row) (artifacts.File, error) {
	return func(r row) (artifacts.File, error) {
		f := artifacts.File{Repository: repository}
		var created int64
		err := r.Scan(&f.Path, &f.Revision, &f.Digest, &f.Size, &f.MediaType, &f.Deleted, &created, &f.CreatedBy)
		f.CreatedAt = instant(created)
		return f, err
	}
}

// PutFile is artifacts.FileRecords's.
func (s *Store) PutFile(ctx context.Context, w artifacts.FileWrite, check func(*artifacts.File) error) (f artifacts.File, created bool, err error) {
	err = s.update(ctx, "writing a file", func(tx *sql.Tx) (err error) {
		f, created, err = putRevision(ctx, tx, w, false, check)
		return err
	})
	return f, created, err
}

// DeleteFile is artifacts.FileRecords's.
func (s *Store) DeleteFile(ctx context.Context, repository, path string, at time.Time, by string, check func(*artifacts.File) error) (f artifacts.File, err error) {
	w := artifacts.FileWrite{Repository: repository, Path: path, At: at, By: by}
	err = s.update(ctx, "deleting a file", func(tx *sql.Tx) (err error) {
		f, _, err = putRevision(ctx, tx, w, true, func(current *artifacts.File) error {
			if current == nil {
				return fault.Missing("file")
			}
			return check(current)
		})
		return err
	})
	return f, err
}

// putRevision makes the next revision of a path if the current one still is what check saw; else errLost.
func putRevision(ctx context.Context, tx *sql.Tx, w artifacts.FileWrite, deleted bool, check func(*artifacts.File) error) (f artifacts.File, created bool, err error) {
	id, err := repositoryID(ctx, tx, w.Repository, "")
	if err != nil {
		return f, false, err
	}
	current, err := fileIn(w.Repository)(tx.QueryRowContext(ctx, `
		SELECT `+fileColumns+` FROM files f
		JOIN revisions v ON v.repository = f.repository AND v.path = f.path AND v.revision = f.revision
		WHERE f.repository = $1 AND f.path = $2`, id, w.Path))
	known := err == nil
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return f, false, err
	}
	live := &current
	if !known || current.Deleted {
		live = nil
	}
	if err := check(live); err != nil {
		return f, false, err
	}
	var n int64
	if known {
		n, err = exec(ctx, tx, `
			UPDATE files SET revision = $1, deleted = $2 WHERE repository = $3 AND path = $4 AND revision = $5`,
			current.Revision+1, deleted, id, w.Path, current.Revision)
	} else {
		n, err = exec(ctx, tx, `
			INSERT INTO files (repository, path, revision, deleted) VALUES ($1, $2, 1, $3)
			ON CONFLICT (repository, path) DO NOTHING`, id, w.Path, deleted)
	}
	if err != nil {
		return f, false, err
	}
	if n == 0 {
		return f, false, errLost
	}
	f = artifacts.File{
		Repository: w.Repository, Path: w.Path, Revision: current.Revision + 1, Digest: w.Digest, Size: w.Size,
		MediaType: w.MediaType, CreatedAt: w.At, CreatedBy: w.By, Deleted: deleted,
	}
	_, err = exec(ctx, tx, `
		INSERT INTO revisions (repository, path, revision, digest, size, media_type, deleted, created_at, created_by)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		id, f.Path, f.Revision, f.Digest, f.Size, f.MediaType, f.Deleted, millis(f.CreatedAt), f.CreatedBy)
	return f, live == nil, err
}

// File is artifacts.FileRecords's.
func (s *Store) File(ctx context.Context, repository, path string) (artifacts.File, error) {
	f, err := fileIn(repository)(s.read.QueryRowContext(ctx, `
		SELECT `+fileColumns+` FROM repositories r
		JOIN files f ON f.repository = r.id
		JOIN revisions v ON v.repository = f.repository AND v.path = f.path AND v.revision = f.revision
		WHERE r.name = $1 AND f.path = $2 AND NOT f.deleted`, repository, path))
	return f, s.fail("reading a file", missing(err, "file"))
}

// FileByDigest is artifacts.FileRecords's.
func (s *Store) FileByDigest(ctx context.Context, repository, digest string) (artifacts.File, error) {
	f, err := fileIn(repository)(s.read.QueryRowContext(ctx, `
		SELECT `+fileColumns+` FROM repositories r
		JOIN revisions v ON v.repository = r.id AND v.digest = $2
		JOIN files f ON f.repository = r.id AND f.path = v.path AND NOT f.deleted
		WHERE r.name = $1 ORDER BY v.created_at DESC, v.path, v.revision DESC LIMIT 1`, repository, digest))
	return f, s.fail("reading an object", missing(err, "object"))
}

// ListFiles is artifacts.FileRecords's.
func (s *Store) ListFiles(ctx context.Context, repository, prefix, after string, limit int) ([]artifacts.File, error) {
	page, err := list(ctx, s.read, fileIn(repository), `
		SELECT `+fileColumns+` FROM repositories r
		JOIN files f ON f.repository = r.id
		JOIN revisions v ON v.repository = f.repository AND v.path = f.path AND v.revision = f.revision
		WHERE r.name = $1 AND f.path > $2 AND f.path >= $3 AND f.path < $4 AND NOT f.deleted
		ORDER BY f.path LIMIT $5`, repository, after, prefix, pastPrefix(prefix), limit)
	return page, s.fail("listing files", err)
}

// pastPrefix is a bound above every text that begins with prefix and below every greater one. Byte order of UTF-8 is
// the order of code points, so the last rune that can be raised is.
func pastPrefix(prefix string) string {
	for prefix != "" {
		r, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		switch {
		case r == utf8.MaxRune:
			continue
		case r == 0xd7ff: // the surrogates are no code points of a text
			return prefix + "\ue000"
		}
		return prefix + string(r+1)
	}
	return strings.Repeat(string(utf8.MaxRune), artifacts.MaxPath/utf8.UTFMax+1)
}

// ListRevisions is artifacts.FileRecords's.
func (s *Store) ListRevisions(ctx context.Context, repository, path string, before int64, limit int) ([]artifacts.File, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	page, err := list(ctx, s.read, fileIn(repository), `
		SELECT `+fileColumns+` FROM repositories r
		JOIN revisions v ON v.repository = r.id
		WHERE r.name = $1 AND v.path = $2 AND v.revision < $3 ORDER BY v.revision DESC LIMIT $4`, repository, path, before, limit)
	return page, s.fail("listing revisions", err)
}
