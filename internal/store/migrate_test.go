package store

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
)

func TestNewerDatabaseIsLeftAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.db")
	s, err := OpenSQLite(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.update(t.Context(), "test", func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT INTO schema_migrations (version, applied_at) VALUES (9999, 0)`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSQLite(t.Context(), file); err == nil || !strings.Contains(err.Error(), "newer program") {
		t.Fatalf("got %v", err)
	}
}

func TestPastPrefix(t *testing.T) {
	for prefix, want := range map[string]string{
		"a": "b", "a/": "a0", "\u007f": "\u0080", "\ud7ff": "\ue000", "a\U0010ffff": "b", "я": "ѐ",
	} {
		if got := pastPrefix(prefix); got != want {
			t.Errorf("%q: got %q, want %q", prefix, got, want)
		}
	}
	if all := pastPrefix(""); all != pastPrefix("\U0010ffff") || all <= strings.Repeat("\U0010ffff", 256) {
		t.Error("the bound of everything must be above every path")
	}
}
