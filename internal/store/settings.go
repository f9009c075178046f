package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/settings"
)

// DownloadSettings is settings.Store's.
func (s *Store) DownloadSettings(ctx context.Context) (settings.Stored, error) {
	got, err := readSettings(ctx, s.read)
	return got, s.fail("reading the download settings", err)
}

func readSettings(ctx context.Context, q querier) (got settings.Stored, err error) {
	var at int64
	err = q.QueryRowContext(ctx, `
		SELECT revision, record, changed_at, changed_by, changed_by_name FROM download_settings WHERE id = 1`).
		Scan(&got.Revision, &got.Record, &at, &got.By, &got.ByName)
	if errors.Is(err, sql.ErrNoRows) {
		return settings.Stored{Record: "{}"}, nil
	}
	got.At = instant(at)
	return got, err
}

// ChangeDownloadSettings is settings.Store's (D-9.5). The one statement makes the row, or changes it at the expected
// revision; of two writers the second finds another revision.
func (s *Store) ChangeDownloadSettings(ctx context.Context, next settings.Stored, fields []string, e audit.Entry) error {
	return s.update(ctx, "changing the download settings", func(tx *sql.Tx) error {
		n, err := exec(ctx, tx, `
			INSERT INTO download_settings (id, revision, record, changed_at, changed_by, changed_by_name)
			SELECT 1, CAST($1 AS BIGINT), $2, CAST($3 AS BIGINT), $4, $5
			WHERE CAST($1 AS BIGINT) = 1 OR EXISTS (SELECT 1 FROM download_settings)
			ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, record = excluded.record,
				changed_at = excluded.changed_at, changed_by = excluded.changed_by, changed_by_name = excluded.changed_by_name
			WHERE download_settings.revision = excluded.revision - 1`,
			next.Revision, next.Record, millis(next.At), next.By, next.ByName)
		if err != nil {
			return err
		}
		if n == 0 {
			now, err := readSettings(ctx, tx)
			if err != nil {
				return err
			}
			return identity.RevisionMismatch("record of settings", now.Revision)
		}
		if _, err := exec(ctx, tx, `
			INSERT INTO download_settings_history (revision, record, fields, changed_at, changed_by, changed_by_name)
			VALUES ($1, $2, $3, $4, $5, $6)`,
			next.Revision, next.Record, strings.Join(fields, ","), millis(next.At), next.By, next.ByName); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

// DownloadSettingsHistory is settings.Store's.
func (s *Store) DownloadSettingsHistory(ctx context.Context, before int64, limit int) ([]settings.Change, error) {
	scan := func(r row) (c settings.Change, err error) {
		var at int64
		var fields string
		err = r.Scan(&c.Revision, &c.Record, &fields, &at, &c.By, &c.ByName)
		c.At = instant(at)
		if fields != "" {
			c.Fields = strings.Split(fields, ",")
		}
		return c, err
	}
	all, err := list(ctx, s.read, scan, `
		SELECT revision, record, fields, changed_at, changed_by, changed_by_name FROM download_settings_history
		WHERE CAST($1 AS BIGINT) = 0 OR revision < CAST($1 AS BIGINT) ORDER BY revision DESC LIMIT $2`, before, limit)
	return all, s.fail("listing the history of the download settings", err)
}
