package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
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
		done, err := list(ctx, tx, func(r row) (version int64, err error) { return version, r.Scan(&version) },
			`SELECT version FROM schema_migrations ORDER BY version`)
		if err != nil {
			return fmt.Errorf("reading the table of migrations: %w", err)
		}
		known := make([]int64, len(files))
		for i, file := range files {
			if known[i], err = versionOf(file); err != nil {
				return fmt.Errorf("migration %s: %w", file, err)
			}
		}
		if len(done) > 0 && done[len(done)-1] > known[len(known)-1] {
			return fmt.Errorf("the database is at version %d, this program knows %d: use a newer program", done[len(done)-1], known[len(known)-1])
		}
		for i, file := range files {
			if slices.Contains(done, known[i]) {
				continue
			}
			if err := apply(ctx, tx, file, known[i]); err != nil {
				return fmt.Errorf("migration %s: %w", file, err)
			}
		}
		return nil
	})
}

// versionOf reads the number in a migration's name.
func versionOf(file string) (int64, error) {
	number, _, found := strings.Cut(strings.TrimPrefix(file, "migrations/"), "_")
	version, err := strconv.ParseInt(number, 10, 64)
	if !found || err != nil {
		return 0, errors.New("the name must be NNNN_words.sql")
	}
	return version, nil
}

func apply(ctx context.Context, tx *sql.Tx, file string, version int64) error {
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
