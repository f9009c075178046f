package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate applies the numbered migrations the database lacks, all in one transaction that admits one migrator at a
// time: of two starters one does the work and the other finds it done, and a crash leaves all of it or nothing. A
// database of a newer program is refused and left as it is.
func (s *Store) migrate(ctx context.Context) error {
	files, err := fs.Glob(migrations, "migrations/*.sql") // sorted by name
	if err != nil {
		return err
	}
	return s.once(ctx, func(tx *sql.Tx) error {
		if s.engine.migrating != "" {
			if _, err := tx.ExecContext(ctx, s.engine.migrating); err != nil {
				return fmt.Errorf("locking out other migrators: %w", err)
			}
		}
		const table = `CREATE TABLE IF NOT EXISTS schema_migrations (version BIGINT PRIMARY KEY, applied_at BIGINT NOT NULL)`
		if _, err := tx.ExecContext(ctx, table); err != nil {
			return fmt.Errorf("making the table of migrations: %w", err)
		}
		var done int64
		if err := tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(version), 0) FROM schema_migrations`).Scan(&done); err != nil {
			return fmt.Errorf("reading the table of migrations: %w", err)
		}
		if done > int64(len(files)) {
			return fmt.Errorf("the database is at version %d, this program knows %d: use a newer program", done, len(files))
		}
		for _, file := range files[done:] {
			if err := apply(ctx, tx, file); err != nil {
				return fmt.Errorf("migration %s: %w", file, err)
			}
		}
		return nil
	})
}

func apply(ctx context.Context, tx *sql.Tx, file string) error {
	number, _, found := strings.Cut(strings.TrimPrefix(file, "migrations/"), "_")
	version, err := strconv.ParseInt(number, 10, 64)
	if !found || err != nil {
		return errors.New("the name must be NNNN_words.sql")
	}
	text, err := migrations.ReadFile(file)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, string(text)); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO schema_migrations (version, applied_at) VALUES ($1, $2)`, version, time.Now().UnixMilli())
	return err
}
