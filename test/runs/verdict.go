package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the database is read as it is, not as the server tells it

	"github.com/roadstead/roadstead/internal/core/lifecycle"
)

// verdict is what the rows say and what the jobs said, laid side by side.
type verdict struct {
	kills   int
	orders  []order
	settled time.Duration

	attempts  int
	lost      int // Attempts that were taken for lost
	startsOf  map[string]int
	twice     int // Attempt ids that started more than once
	strangers int // that started and are in no row
	overlaps  int
	again     int // Runs without retries that started more than once
	unended   int // Runs and Attempts
	mute      int // ended without a reason
	many      int // Attempts beyond what the retry policy allows
	unproven  int // succeeded without exactly the result of the Attempt that succeeded
	missing   int // Runs that were answered and are not there
	holds     int
	slowest   time.Duration // longest that an Attempt stayed after its lease ended
	survivors int           // jobs of which something lives after everything ended
	ends      map[string]int
}

// attempt is a row of one.
type attempt struct {
	id, run, state, reason string
	ended, lease           int64
}

func (v *verdict) look(ctx context.Context, w *world) error {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.dir, "data", "roadstead.db")+"?mode=ro")
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := v.readAttempts(ctx, db)
	if err != nil {
		return err
	}
	v.judgeLives(w.heard.all(), rows)
	if err := v.judgeRuns(ctx, db, rows); err != nil {
		return err
	}
	return db.QueryRowContext(ctx, `SELECT COUNT(*) FROM holds`).Scan(&v.holds)
}

func (v *verdict) readAttempts(ctx context.Context, db *sql.DB) (map[string]attempt, error) {
	rows, err := db.QueryContext(ctx, `SELECT id, run, state, reason, ended_at, lease_until FROM attempts`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]attempt{}
	for rows.Next() {
		var a attempt
		if err := rows.Scan(&a.id, &a.run, &a.state, &a.reason, &a.ended, &a.lease); err != nil {
			return nil, err
		}
		all[a.id] = a
		v.attempts++
		switch {
		case !lifecycle.Attempt(a.state).Ended():
			v.unended++
		case a.reason == "":
			v.mute++
		case a.reason == string(lifecycle.LeaseLost):
			v.lost++
			v.slowest = max(v.slowest, time.Duration(a.ended-a.lease)*time.Millisecond)
		}
	}
	return all, rows.Err()
}

// judgeLives looks at what the jobs said.
func (v *verdict) judgeLives(lives []life, rows map[string]attempt) {
	v.startsOf = map[string]int{}
	ofRun := map[string][]life{}
	for _, l := range lives {
		if v.startsOf[l.attempt]++; v.startsOf[l.attempt] == 2 {
			v.twice++
			say("started twice: %s", l.attempt)
		}
		if _, known := rows[l.attempt]; !known {
			v.strangers++
		}
		if l.end.IsZero() {
			v.survivors++
			l.end = time.Now()
		}
		ofRun[l.run] = append(ofRun[l.run], l)
	}
	for run, all := range ofRun {
		slices.SortFunc(all, func(a, b life) int { return a.start.Compare(b.start) })
		for i := 1; i < len(all); i++ {
			if all[i].start.Before(all[i-1].end) {
				v.overlaps++
				say("overlap in %s: %s until %s, %s from %s", run, all[i-1].attempt, all[i-1].end.Format("15:04:05.000"), all[i].attempt, all[i].start.Format("15:04:05.000"))
			}
		}
	}
	for _, o := range v.orders {
		if o.never && len(ofRun[o.id]) > 1 {
			v.again++
			say("no retries, and started %d times: %s", len(ofRun[o.id]), o.id)
		}
	}
}

// judgeRuns looks at how the Runs ended.
func (v *verdict) judgeRuns(ctx context.Context, db *sql.DB, rows map[string]attempt) error {
	v.ends = map[string]int{}
	ended := map[string][]attempt{}
	for _, a := range rows {
		ended[a.run] = append(ended[a.run], a)
	}
	for _, o := range v.orders {
		var state, reason string
		err := db.QueryRowContext(ctx, `SELECT state, reason FROM runs WHERE id = $1`, o.id).Scan(&state, &reason)
		if err == sql.ErrNoRows {
			v.missing++
			continue
		}
		if err != nil {
			return err
		}
		v.ends[state+" "+reason]++
		switch {
		case !lifecycle.Run(state).Ended():
			v.unended++
			say("not ended: %s is %s", o.id, state)
		case reason == "":
			v.mute++
		}
		tries := 0
		for _, a := range ended[o.id] {
			if a.reason != string(lifecycle.NotStarted) {
				tries++
			}
		}
		if tries > 1+o.retries.Failures+o.retries.Losses {
			v.many++
		}
		if state == string(lifecycle.Succeeded) {
			if err := v.proven(ctx, db, o.id, ended[o.id]); err != nil {
				return err
			}
		}
	}
	return nil
}

// proven wants one result: that of the one Attempt that succeeded, with the bytes that it wrote.
func (v *verdict) proven(ctx context.Context, db *sql.DB, run string, all []attempt) error {
	rows, err := db.QueryContext(ctx, `SELECT attempt, digest FROM run_results WHERE run = $1`, run)
	if err != nil {
		return err
	}
	defer rows.Close()
	var results []string
	for rows.Next() {
		var of, digest string
		if err := rows.Scan(&of, &digest); err != nil {
			return err
		}
		results = append(results, of+" "+digest)
	}
	var want []string
	for _, a := range all {
		if a.state == string(lifecycle.AttemptSucceeded) {
			sum := sha256.Sum256([]byte(a.id + "\n"))
			want = append(want, a.id+" sha256:"+hex.EncodeToString(sum[:]))
		}
	}
	if len(want) != 1 || strings.Join(results, ",") != want[0] {
		v.unproven++
		say("%s succeeded with %v, not %v", run, results, want)
	}
	return rows.Err()
}

func (v *verdict) measures() []measure {
	started := 0
	for range v.startsOf {
		started++
	}
	say("%d Runs, %d Attempts, %d started, %d lost; ends: %v", len(v.orders), v.attempts, started, v.lost, v.ends)
	none := func(name string, n int) measure { return atMost(name, float64(n), 0) }
	return []measure{
		atLeast("kills", float64(v.kills), 1),
		atLeast("succeeded", float64(v.ends["succeeded done"]), 1),
		none("attempts_started_twice", v.twice), none("attempts_unknown", v.strangers), none("overlaps", v.overlaps),
		none("never_retried_started_twice", v.again), none("over_retry_policy", v.many), none("not_ended", v.unended), none("ended_without_reason", v.mute),
		none("accepted_and_missing", v.missing), none("success_unproven", v.unproven), none("holds_left", v.holds), none("jobs_left", v.survivors),
		atMost("settle_seconds", v.settled.Seconds(), settleLimit.Seconds()),
		atMost("lost_after_lease_seconds", v.slowest.Seconds(), lostLimit.Seconds()),
	}
}

// lostLimit bounds how long after its lease an Attempt may stand: a server that was new just before the end gives it lease
// and grace anew, and each that dies meanwhile does so again; in the worst stretch of kills servers die for a while.
const lostLimit = 45 * time.Second
