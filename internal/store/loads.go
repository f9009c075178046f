package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/plan"
	"github.com/roadstead/roadstead/internal/runs"
)

var _ plan.Measures = (*Store)(nil)

// How much of the past is looked at, the newest first.
const (
	countedRuns = 200_000
	sampledRuns = 20_000
)

// Loads is plan.Measures'.
func (s *Store) Loads(ctx context.Context, pool, tenant string, since time.Time) (plan.Loads, error) {
	out := plan.Loads{Runs: map[string]int64{}}
	var looked int64
	var oldest time.Time
	_, err := list(ctx, s.read, func(r row) (none struct{}, err error) {
		var class string
		var n, all, first, reach int64
		if err = r.Scan(&class, &n, &all, &first, &reach); err != nil {
			return none, err
		}
		looked += all
		if n > 0 {
			out.Runs[class] = n
		}
		out.First, oldest = earlier(out.First, instant(first)), earlier(oldest, instant(reach))
		return none, nil
	}, `
		SELECT r.class, COALESCE(SUM(CASE WHEN CAST($3 AS TEXT) = '' OR r.tenant = CAST($3 AS TEXT) THEN 1 ELSE 0 END), 0), COUNT(*),
			COALESCE(MIN(CASE WHEN CAST($3 AS TEXT) = '' OR r.tenant = CAST($3 AS TEXT) THEN r.inserted END), 0), MIN(r.inserted)
		FROM (SELECT class, tenant, inserted FROM runs WHERE pool = $1 AND inserted >= $2 ORDER BY inserted DESC LIMIT $4) r GROUP BY r.class`,
		pool, millis(since), tenant, countedRuns)
	if err != nil {
		return out, s.fail("counting Runs", err)
	}
	if looked == countedRuns {
		out.CutAt = oldest
	}
	out.Samples, err = list(ctx, s.read, scanSample, `
		SELECT r.class, a.ended_at - a.assigned_at, a.resources, a.report
		FROM (SELECT id, class, tenant FROM runs WHERE pool = $1 AND inserted >= $2 ORDER BY inserted DESC LIMIT $4) r JOIN attempts a ON a.run = r.id
		WHERE a.state IN ('succeeded', 'failed', 'interrupted', 'cancelled') AND (CAST($3 AS TEXT) = '' OR r.tenant = CAST($3 AS TEXT))`,
		pool, millis(since), tenant, sampledRuns)
	return out, s.fail("reading Attempts that ended", err)
}

// earlier is the earlier of two instants; the zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func scanSample(r row) (out plan.Sample, err error) {
	var took int64
	var resources, report string
	if err := r.Scan(&out.Class, &took, &resources, &report); err != nil {
		return out, err
	}
	var asked api.Resources
	if err := json.Unmarshal([]byte(resources), &asked); err != nil {
		return out, fmt.Errorf("reading resources: %w", err)
	}
	out.Slots, out.Asked = asked.Slots, plan.Amounts{MilliCPU: asked.MilliCPU, MemoryBytes: asked.MemoryBytes, DiskBytes: asked.DiskBytes}
	if parsed, ok := runs.ParseReport(report); ok {
		out.Memory, out.Log = parsed.Usage.MemoryBytes, parsed.Usage.LogBytes
		if wall := parsed.Usage.WallMillis; wall > 0 {
			out.CPU = float64(parsed.Usage.CPUMillis) / float64(wall)
		}
	}
	out.Took = time.Duration(max(0, took)) * time.Millisecond
	return out, nil
}
