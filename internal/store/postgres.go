package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/roadstead/roadstead/internal/fault"
)

const postgresConns = 16

// OpenPostgres connects by a connection string (URL or key=value) and brings the tables up to date.
func OpenPostgres(ctx context.Context, conn string) (*Store, error) {
	cfg, err := pgx.ParseConfig(conn)
	if err != nil {
		// pgx takes passwords out of what it prints of the string.
		return nil, fmt.Errorf("reading the PostgreSQL connection string: %w", err)
	}
	db := sql.OpenDB(stdlib.GetConnector(*cfg))
	db.SetMaxOpenConns(postgresConns)
	db.SetMaxIdleConns(postgresConns)
	s := &Store{write: db, read: db, engine: engine{
		name: "postgres", lockRow: " FOR UPDATE", elements: "json_array_elements(CAST($1 AS json)) AS e(value)", text: "value #>> '{}'",
		migrating: postgresMigrating, classify: postgresCode, transient: postgresTransient,
	}}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("opening PostgreSQL: %w", err), s.Close())
	}
	return s, nil
}

// postgresMigrating holds other migrators off until the transaction ends, and makes the type of keys that are listed
// in order: byte order, whatever the database's own collation, as in SQLite.
const postgresMigrating = `
SELECT pg_advisory_xact_lock(7230198461);
DO $$ BEGIN
	IF to_regtype('keytext') IS NULL THEN
		CREATE DOMAIN keytext AS text COLLATE "C";
	END IF;
END $$`

func postgresCode(err error) fault.Code {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case e.Code == "23505": // unique_violation
			return fault.AlreadyExists
		case e.Code == "23503": // foreign_key_violation
			return fault.NotFound
		case e.Code == "22021": // character_not_in_repertoire: NUL or broken UTF-8
			return fault.InvalidInput
		case e.Code == "53100": // disk_full
			return fault.CapacityExceeded
		case e.Code[:2] == "53" || e.Code[:2] == "57" || e.Code == "55P03": // resources, shutdown, lock not available
			return fault.Busy
		}
		return fault.Internal
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok || pgconn.SafeToRetry(err) {
		return fault.Busy
	}
	return fault.Internal
}

func postgresTransient(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "40001" || e.Code == "40P01") // serialization_failure, deadlock_detected
}
