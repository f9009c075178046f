// Package store keeps what must not be forgotten in SQLite or PostgreSQL, with one SQL text for both.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/downloads"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// Store is a database. Every public method is one transaction; a change names the state it replaces in its WHERE, so
// that of two writers at once one loses, in one process or in several. Instants are Unix milliseconds passed in as
// parameters (0 for none), so the database's own clock never counts.
type Store struct {
	write  *sql.DB // SQLite: one connection, so writers queue here and not at a lock
	read   *sql.DB
	engine engine
}

// engine is what differs between the databases.
type engine struct {
	name      string
	lockRow   string                     // suffix of a SELECT that locks the row it reads until the transaction ends
	elements  string                     // the elements of the JSON array $1, as rows with the column value
	text      string                     // such a value, of an array of strings, as text
	migrating string                     // run first in a migrating transaction: admits one migrator at a time
	classify  func(err error) fault.Code // code of a driver's error; Internal for one that is no refusal
	transient func(err error) bool       // the transaction lost to another one and may simply be run again
}

var (
	_ identity.Store    = (*Store)(nil)
	_ artifacts.Records = (*Store)(nil)
	_ downloads.Journal = (*Store)(nil)
)

// NewID makes a unique id; ids made later sort later (RFC 9562, version 7).
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// Engine names the database: "sqlite" or "postgres".
func (s *Store) Engine() string { return s.engine.name }

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	return s.fail("asking the database", s.read.QueryRowContext(ctx, `SELECT 1`).Scan(&one))
}

// Close closes the database; it waits for running transactions.
func (s *Store) Close() error {
	err := s.write.Close()
	if s.read != s.write {
		err = errors.Join(err, s.read.Close())
	}
	return err
}

// errLost says that the state a change names was replaced meanwhile: the transaction is run again on the new state.
var errLost = errors.New("lost to another writer")

const maxTries = 20

// update runs f in a writing transaction, again if another writer was faster. It says what was attempted when it fails.
func (s *Store) update(ctx context.Context, what string, f func(tx *sql.Tx) error) error {
	var err error
	for range maxTries {
		err = s.once(ctx, f)
		if !errors.Is(err, errLost) && (err == nil || !s.engine.transient(err)) {
			return s.fail(what, err)
		}
	}
	return &fault.Error{
		Code: fault.Busy, RetryAfter: time.Second, Message: what + ": too many writers at once", Err: err,
	}
}

func (s *Store) once(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		// What f reports matters; a rollback that fails too ends with the connection.
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

// fail gives an error its code. Refusals and the end of the context pass as they are.
func (s *Store) fail(what string, err error) error {
	var refusal *fault.Error
	switch {
	case err == nil, errors.As(err, &refusal):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", what, err)
	}
	switch code := s.engine.classify(err); code {
	case fault.AlreadyExists:
		return fault.Wrap(code, err, "%s: the name is taken", what)
	case fault.NotFound:
		return fault.Wrap(code, err, "%s: what it refers to was not found", what)
	case fault.InvalidInput:
		return fault.Wrap(code, err, "%s: a text has characters that can't be stored", what)
	case fault.CapacityExceeded:
		return fault.Wrap(code, err, "%s: the database's disk is full", what)
	case fault.Busy:
		return &fault.Error{Code: code, RetryAfter: 2 * time.Second, Message: what + ": the database is busy or away", Err: err}
	default:
		return fault.Wrap(fault.Internal, fmt.Errorf("%s: %w", what, err), "internal error")
	}
}

// missing turns "no row" into the fault that names the thing.
func missing(err error, what string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fault.Missing(what)
	}
	return err
}

// exec runs a statement and says how many rows it changed.
func exec(ctx context.Context, tx *sql.Tx, query string, args ...any) (int64, error) {
	res, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// row is what both *sql.Row and *sql.Rows can do.
type row interface{ Scan(dest ...any) error }

// querier is what both *sql.DB and *sql.Tx can do.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// list scans all rows of a query.
func list[T any](ctx context.Context, q querier, scan func(row) (T, error), query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err below tells of failures
	var all []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// millis is an instant as it is stored; the zero time is 0.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// instant is the time of a stored instant.
func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
