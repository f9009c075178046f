package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/runs"
)

const (
	pageSize   = 100
	pageRounds = 101
	listed     = "tnt_listed"
)

// pages measures the last page of many Runs of one tenant beside the first one: of all of them, of a state that one in
// five is in, and of one that one in ten thousand is in.
func (b *bench) pages(ctx context.Context, rows int) error {
	y, err := openYard(ctx, b.dir, "pages.db", 1)
	if err != nil {
		return err
	}
	defer func() { _ = y.Close() }() // the folder goes next
	took, err := timed(func() error { return fill(ctx, filepath.Join(b.dir, "pages.db"), rows) })
	if err != nil {
		return err
	}
	fmt.Printf("# %d Runs were made in %v\n", rows, took.Round(time.Second))
	for _, one := range []struct {
		name   string
		states []lifecycle.Run
		end    int // number of the Run that the last page comes behind
	}{
		{"all", nil, pageSize},
		{"failed", []lifecycle.Run{lifecycle.Failed}, 5 * pageSize},
		{"cancelled", []lifecycle.Run{lifecycle.Cancelled, lifecycle.Expired}, 10_000*pageSize/2 + 1},
	} {
		first := runs.Filter{Tenant: listed, States: one.states, Limit: pageSize}
		last := first
		last.After, last.AfterAt = rowID(min(one.end, rows)), rowTime(min(one.end, rows))
		var r ratios
		var own, base []time.Duration
		for range pageRounds {
			lo, err := y.page(ctx, first)
			if err != nil {
				return err
			}
			hi, err := y.page(ctx, last)
			if err != nil {
				return err
			}
			r.add(hi, lo)
			own, base = append(own, hi), append(base, lo)
		}
		b.atMost("runs_last_page_vs_first_"+one.name, r.median(), 1.5)
		fmt.Printf("# the last page of %d takes %v, the first %v\n", pageSize, median(own).Round(time.Microsecond), median(base).Round(time.Microsecond))
	}
	return nil
}

// page reads a page, which must be a whole one.
func (y *yard) page(ctx context.Context, f runs.Filter) (time.Duration, error) {
	return timed(func() error {
		all, err := y.ListRuns(ctx, f)
		if err == nil && len(all) < f.Limit*4/5 {
			err = fmt.Errorf("a page has %d Runs", len(all))
		}
		return err
	})
}

// The Runs are numbered from 0, the oldest, and one comes each millisecond.
func rowID(n int) string      { return fmt.Sprintf("run_%036d", n) }
func rowTime(n int) time.Time { return time.UnixMilli(rowsBegin + int64(n)) }

const rowsBegin = 1_700_000_000_000

// fill makes the rows of many Runs that are over: one in five failed, a few in ten thousand were cancelled.
func fill(ctx context.Context, file string, rows int) (err error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=synchronous(OFF)&_pragma=busy_timeout(10000)&_pragma=cache_size(-200000)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	const piece = 50_000
	for from := 0; from < rows; from += piece {
		_, err := db.ExecContext(ctx, `
			WITH RECURSIVE n(i) AS (SELECT $1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $2)
			INSERT INTO runs (id, tenant, pool, state, reason, fence, version, created_at, created_by, created_name, next_eligible, eligible_at,
				priority, class, package, array_id, array_index, lane, waits_for, failures, losses, cancel, cancel_reason, started_at, ended_at, spent, inserted)
			SELECT printf('run_%036d', i), '`+listed+`', '`+poolName+`',
				CASE WHEN i % 10000 = 1 THEN 'cancelled' WHEN i % 10000 = 5001 THEN 'expired' WHEN i % 5 = 0 THEN 'failed' ELSE 'succeeded' END,
				'', 1, 5, $3 + i, 'acc_0000', 'bench', $3 + i, $3 + i, 0, 'background', 'prices@1.2.3', '', 0, '', 0, 0, 0, 0, '', $3 + i, $3 + i, 1000, $3 + i FROM n`,
			from, min(from+piece, rows), rowsBegin)
		if err != nil {
			return err
		}
	}
	return nil
}
