package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/roadstead/roadstead/internal/fault"
)

const sqliteReaders = 8

// OpenSQLite opens or makes the database file and brings its tables up to date. Commits are flushed to the disk before
// they are acknowledged. Only the owner can read a new file, whatever its directory allows: it holds the key that signs
// tickets. SQLite gives the log beside it the same mode.
func OpenSQLite(ctx context.Context, file string) (*Store, error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("opening database %s: %w", file, err)
	}
	write, err := sql.Open("sqlite", sqliteDSN(file, "_txlock=immediate"))
	if err != nil {
		return nil, fmt.Errorf("opening database %s: %w", file, err)
	}
	write.SetMaxOpenConns(1)
	s := &Store{write: write, read: write, engine: engine{
		name: "sqlite", elements: "jsonb_each($1)", text: "value", classify: sqliteCode, transient: func(error) bool { return false },
	}}
	// The writer makes the file and sets WAL before any reader opens it.
	if err := s.migrateSQLite(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("opening database %s: %w", file, err), s.Close())
	}
	read, err := sql.Open("sqlite", sqliteDSN(file, "_pragma=query_only(1)"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening database %s: %w", file, err), s.Close())
	}
	read.SetMaxOpenConns(sqliteReaders)
	read.SetMaxIdleConns(sqliteReaders)
	s.read = read
	return s, nil
}

// migrateSQLite migrates, and again while another process does: making a new file's log is the one step at which
// SQLite reports a lock at once instead of waiting for it.
func (s *Store) migrateSQLite(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := s.migrate(ctx)
		if err == nil || sqliteCode(err) != fault.Busy {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// sqliteDSN names the file and what each connection sets. synchronous=FULL flushes the log at each commit; with WAL's
// usual NORMAL an acknowledged commit could be lost with the power.
func sqliteDSN(file, extra string) string {
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: file}).EscapedPath()}
	u.RawQuery = "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)&" + extra
	return u.String()
}

func sqliteCode(err error) fault.Code {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return fault.Internal
	}
	switch e.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return fault.AlreadyExists
	case sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
		return fault.NotFound
	}
	switch e.Code() & 0xff { // the low byte is the primary code
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fault.Busy
	case sqlite3.SQLITE_FULL:
		return fault.CapacityExceeded
	}
	return fault.Internal
}
