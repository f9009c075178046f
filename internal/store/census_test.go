package store

import (
	"path/filepath"
	"testing"
	"time"
)

// Drift of holds against living Attempts is found whichever of the two is missing: rows that no method of the
// store can leave behind are written by hand.
func TestCensusFindsDrift(t *testing.T) {
	s, err := OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, query := range []string{
		`INSERT INTO holds (attempt, kind, account, amount) VALUES ('att_gone', 'money', 'acme', 5), ('att_ended', 'slots', 'p/acme', 1), ('att_fine', 'slots', 'p/acme', 1)`,
		`INSERT INTO attempts (id, run, tenant, pool, runner, number, fence, state, reason, detail, sequence, beats, lease_until, resources,
			assigned_at, started_at, ended_at, decision, report, cost)
		VALUES ('att_ended', 'r1', 'acme', 'p', 'x', 1, 1, 'failed', '', '', 1, 0, 0, '{}', 1, 1, 1, '', '', 0),
			('att_fine', 'r2', 'acme', 'p', 'x', 1, 1, 'running', '', '', 1, 0, 0, '{}', 1, 1, 0, '', '', 0),
			('att_bare', 'r3', 'acme', 'p', 'x', 1, 1, 'finalizing', '', '', 1, 0, 0, '{}', 1, 1, 0, '', '', 0)`,
	} {
		if _, err := s.write.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	c, err := s.Census(t.Context(), time.UnixMilli(1))
	if err != nil {
		t.Fatal(err)
	}
	if c.Drift["money"] != 1 || c.Drift["slots"] != 1 || c.Drift["missing"] != 1 || c.Drifted() != 3 || c.Overdue != 1 {
		t.Errorf("%+v", c)
	}
}
