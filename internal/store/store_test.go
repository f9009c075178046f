package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/roadstead/roadstead/internal/store"
	"github.com/roadstead/roadstead/internal/store/storetest"
)

func TestSQLite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) (a, b *store.Store) {
		file := filepath.Join(t.TempDir(), "with space & 100%?.db")
		return openBoth(t, func() (*store.Store, error) { return store.OpenSQLite(t.Context(), file) })
	})
}

// PostgreSQL passes the same suite as SQLite: two makers of the ticket key get one key (D-8.3), settings go by
// compare-and-set (D-9.5).
func TestPostgres(t *testing.T) {
	t.Parallel()
	cluster := storetest.StartPostgres(t)
	storetest.Run(t, func(t *testing.T) (a, b *store.Store) {
		conn := cluster.Database(t)
		return openBoth(t, func() (*store.Store, error) { return store.OpenPostgres(t.Context(), conn) })
	})
}

// openBoth opens twice at the same moment: each time the tables are made by two starters at once.
func openBoth(t *testing.T, open func() (*store.Store, error)) (a, b *store.Store) {
	t.Helper()
	var got [2]*store.Store
	var errs [2]error
	var both sync.WaitGroup
	for i := range got {
		both.Go(func() { got[i], errs[i] = open() })
	}
	both.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := got[i].Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return got[0], got[1]
}

func TestSQLiteIsTheOwnersOnly(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := store.OpenSQLite(t.Context(), filepath.Join(dir, "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, name := range []string{"x.db", "x.db-wal", "x.db-shm"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
}

func TestNewIDsSort(t *testing.T) {
	last := ""
	for range 1000 {
		id := store.NewID()
		if id <= last {
			t.Fatalf("%s was made after %s", id, last)
		}
		last = id
	}
}

// What was acknowledged outlives a crash, the key of tickets among it (D-8.3).
func TestSQLiteKeepsWhatItAcknowledged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.db")
	s, err := store.OpenSQLite(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	key, err := s.TicketKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// What a killed process leaves: the files as they are, the log not folded in.
	copied := filepath.Join(t.TempDir(), "x.db")
	for _, suffix := range []string{"", "-wal"} {
		text, err := os.ReadFile(file + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied+suffix, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := store.OpenSQLite(t.Context(), copied)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	got, err := again.TicketKey(t.Context())
	if err != nil || string(got) != string(key) {
		t.Fatalf("the key changed over a crash: %x, %x, %v", key, got, err)
	}
}

func TestOpenSQLiteSaysWhichFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "none", "x.db")
	if _, err := store.OpenSQLite(t.Context(), file); err == nil || !strings.Contains(err.Error(), file) {
		t.Fatalf("got %v", err)
	}
}
