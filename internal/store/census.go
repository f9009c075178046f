package store

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/roadstead/roadstead/internal/attempts"
)

var _ attempts.Registrar = (*Store)(nil)

// Collectors tell how busy the database's connections are: who waits for one, how often and how long.
func (s *Store) Collectors() []prometheus.Collector {
	all := []prometheus.Collector{collectors.NewDBStatsCollector(s.write, "write")}
	if s.read != s.write {
		all = append(all, collectors.NewDBStatsCollector(s.read, "read"))
	}
	return all
}

// Census is attempts.Registrar's. It is one statement, so that no Attempt ends between two counts. Holds are as many as
// living Attempts, which have an index; of grants, the newest 20,000 are looked at.
func (s *Store) Census(ctx context.Context, overdue time.Time) (attempts.Census, error) {
	out := attempts.Census{Drift: map[string]int64{}}
	_, err := list(ctx, s.read, func(r row) (none struct{}, err error) {
		var what string
		var n, bytes int64
		if err = r.Scan(&what, &n, &bytes); err != nil {
			return none, err
		}
		switch what {
		case "overdue":
			out.Overdue = n
		case "orphans":
			out.Orphans, out.Bytes = n, bytes
		default:
			out.Drift[what] = n
		}
		return none, nil
	}, `
		SELECT h.kind, COUNT(*), 0 FROM holds h
			WHERE NOT EXISTS (SELECT 1 FROM attempts a WHERE a.id = h.attempt AND `+living+`) GROUP BY h.kind
		UNION ALL SELECT 'missing', COUNT(*), 0 FROM attempts a
			WHERE `+living+` AND NOT EXISTS (SELECT 1 FROM holds h WHERE h.attempt = a.id AND h.kind = 'slots')
		UNION ALL SELECT 'overdue', COUNT(*), 0 FROM attempts a
			WHERE a.state IN ('assigned', 'starting', 'running') AND `+living+` AND a.lease_until < $1
		UNION ALL SELECT 'orphans', COUNT(*), COALESCE(SUM(g.size), 0)
			FROM (SELECT id, attempt, run, name, kind, size, done_at FROM run_grants ORDER BY id DESC LIMIT 20000) g
			JOIN attempts a ON a.id = g.attempt
			WHERE g.done_at > 0 AND g.kind = 'result' AND a.state IN ('succeeded', 'failed', 'interrupted', 'cancelled')
				AND NOT EXISTS (SELECT 1 FROM run_results r WHERE r.run = g.run AND r.name = g.name AND r.attempt = g.attempt)`, millis(overdue))
	return out, s.fail("counting holds and leases", err)
}
