package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/schedules"
)

var _ schedules.Store = (*Store)(nil)

const scheduleColumns = `id, tenant, name, owner, plan, shape, paused, revision, instant, due, created_at, changed_at`

func scanSchedule(r row) (d schedules.Schedule, err error) {
	var plan, shape string
	var instantAt, due, created, changed int64
	err = r.Scan(&d.ID, &d.Tenant, &d.Name, &d.Owner, &plan, &shape, &d.Paused, &d.Revision, &instantAt, &due, &created, &changed)
	if err != nil {
		return d, err
	}
	d.Instant, d.Due, d.CreatedAt, d.ChangedAt = instant(instantAt), instant(due), instant(created), instant(changed)
	return d, errors.Join(json.Unmarshal([]byte(plan), &d.Plan), json.Unmarshal([]byte(shape), &d.Shape))
}

// Schedule is schedules.Records'.
func (s *Store) Schedule(ctx context.Context, tenant, name string) (schedules.Schedule, error) {
	d, err := scanSchedule(s.read.QueryRowContext(ctx, `SELECT `+scheduleColumns+` FROM schedules WHERE tenant = $1 AND name = $2`, tenant, name))
	return d, s.fail("reading a schedule", missing(err, "schedule"))
}

// ListSchedules is schedules.Records'.
func (s *Store) ListSchedules(ctx context.Context, tenant, after string, limit int) ([]schedules.Schedule, error) {
	all, err := list(ctx, s.read, scanSchedule, `
		SELECT `+scheduleColumns+` FROM schedules WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3`, tenant, after, limit)
	return all, s.fail("listing schedules", err)
}

// SchedulesOnPool is schedules.Records'.
func (s *Store) SchedulesOnPool(ctx context.Context, pool, after string, limit int) ([]schedules.Schedule, error) {
	all, err := list(ctx, s.read, scanSchedule, `
		SELECT `+scheduleColumns+` FROM schedules WHERE pool = $1 AND id > $2 AND due > 0 ORDER BY id LIMIT $3`, pool, after, limit)
	return all, s.fail("listing the schedules on a pool", err)
}

// ActiveSchedules is schedules.Records'.
func (s *Store) ActiveSchedules(ctx context.Context, after string, limit int) ([]schedules.Schedule, error) {
	all, err := list(ctx, s.read, scanSchedule, `
		SELECT `+scheduleColumns+` FROM schedules WHERE id > $1 AND due > 0 ORDER BY id LIMIT $2`, after, limit)
	return all, s.fail("listing active schedules", err)
}

// PutSchedule is schedules.Records'. Of two that make one name the second finds it taken; of two that replace one revision
// the second finds another.
func (s *Store) PutSchedule(ctx context.Context, d schedules.Schedule, expected int64, most int, e audit.Entry) error {
	plan, err := json.Marshal(d.Plan)
	if err != nil {
		return s.fail("writing a schedule", err)
	}
	shape, err := json.Marshal(d.Shape)
	if err != nil {
		return s.fail("writing a schedule", err)
	}
	return s.update(ctx, "writing a schedule", func(tx *sql.Tx) error {
		if expected == 0 {
			err = insertSchedule(ctx, tx, d, string(plan), string(shape), most)
		} else {
			err = replaceSchedule(ctx, tx, d, string(plan), string(shape), expected)
		}
		if err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

func insertSchedule(ctx context.Context, tx *sql.Tx, d schedules.Schedule, plan, shape string, most int) error {
	n, err := exec(ctx, tx, `
		INSERT INTO schedules (id, tenant, name, owner, pool, plan, shape, paused, revision, instant, due, created_at, changed_at)
		SELECT $1, $2, $3, $4, $5, $6, $7, CAST($8 AS BOOLEAN), CAST($9 AS BIGINT), CAST($10 AS BIGINT), CAST($11 AS BIGINT),
			CAST($12 AS BIGINT), CAST($13 AS BIGINT)
		WHERE (SELECT COUNT(*) FROM schedules WHERE tenant = $2) < CAST($14 AS BIGINT)`,
		d.ID, d.Tenant, d.Name, d.Owner, d.Shape.Pool, plan, shape, d.Paused, d.Revision, millis(d.Instant), millis(d.Due),
		millis(d.CreatedAt), millis(d.ChangedAt), most)
	if err != nil {
		return err
	}
	if n == 0 {
		return fault.New(fault.CapacityExceeded, "the tenant has %d schedules, as many as it may: remove one first", most)
	}
	return nil
}

func replaceSchedule(ctx context.Context, tx *sql.Tx, d schedules.Schedule, plan, shape string, expected int64) error {
	n, err := exec(ctx, tx, `
		UPDATE schedules SET owner = $1, pool = $2, plan = $3, shape = $4, paused = $5, revision = $6, instant = $7, due = $8, changed_at = $9
		WHERE id = $10 AND revision = $11`,
		d.Owner, d.Shape.Pool, plan, shape, d.Paused, d.Revision, millis(d.Instant), millis(d.Due), millis(d.ChangedAt), d.ID, expected)
	if err != nil {
		return err
	}
	if n == 0 {
		return otherRevision(ctx, tx, d.ID)
	}
	if d.Paused {
		_, err = exec(ctx, tx, `
			UPDATE schedule_fires SET state = 'dropped', reason = 'the schedule was paused', what = '', try_at = 0, settled_at = $1
			WHERE schedule = $2 AND state = 'pending'`, millis(d.ChangedAt), d.ID)
	}
	return err
}

// otherRevision says why a change found no row.
func otherRevision(ctx context.Context, tx *sql.Tx, id string) error {
	var now int64
	if err := tx.QueryRowContext(ctx, `SELECT revision FROM schedules WHERE id = $1`, id).Scan(&now); err != nil {
		return missing(err, "schedule")
	}
	return identity.RevisionMismatch("schedule", now)
}

// DeleteSchedule is schedules.Records'.
func (s *Store) DeleteSchedule(ctx context.Context, d schedules.Schedule, e audit.Entry) error {
	return s.update(ctx, "removing a schedule", func(tx *sql.Tx) error {
		n, err := exec(ctx, tx, `DELETE FROM schedules WHERE id = $1 AND revision = $2`, d.ID, d.Revision)
		if err != nil {
			return err
		}
		if n == 0 {
			return otherRevision(ctx, tx, d.ID)
		}
		if _, err := exec(ctx, tx, `DELETE FROM schedule_fires WHERE schedule = $1`, d.ID); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

// DueSchedules is schedules.Fires'.
func (s *Store) DueSchedules(ctx context.Context, now time.Time, limit int) ([]schedules.Schedule, error) {
	all, err := list(ctx, s.read, scanSchedule, `
		SELECT `+scheduleColumns+` FROM schedules WHERE due > 0 AND due <= $1 ORDER BY due, id LIMIT $2`, millis(now), limit)
	return all, s.fail("listing due schedules", err)
}

// ClaimFires is schedules.Fires'. Of two processes that claim one fire the second finds the schedule moved; of two clocks
// that come to one instant the second finds the fire made.
func (s *Store) ClaimFires(ctx context.Context, claims []schedules.Claim) (won []schedules.Fire, err error) {
	claims = slices.SortedFunc(slices.Values(claims), func(a, b schedules.Claim) int { return cmp.Compare(a.Schedule, b.Schedule) }) // rows are locked in one order
	err = s.update(ctx, "claiming fires", func(tx *sql.Tx) error {
		won = nil
		for _, c := range claims {
			n, err := exec(ctx, tx, `
				UPDATE schedules SET instant = $1, due = $2 WHERE id = $3 AND revision = $4 AND instant = $5 AND due > 0`,
				millis(c.Instant), millis(c.Due), c.Schedule, c.Revision, millis(c.From))
			if err != nil {
				return err
			}
			if n == 0 {
				continue
			}
			for _, f := range c.Fires {
				fresh, err := insertFire(ctx, tx, f)
				if err != nil {
					return err
				}
				if fresh {
					won = append(won, f)
				}
			}
		}
		return nil
	})
	return won, err
}

func insertFire(ctx context.Context, tx *sql.Tx, f schedules.Fire) (fresh bool, err error) {
	what := []byte{}
	if f.State == schedules.Pending {
		if what, err = json.Marshal(f.Order); err != nil {
			return false, err
		}
	}
	n, err := exec(ctx, tx, `
		INSERT INTO schedule_fires (schedule, instant, due, what, state, run, reason, tries, try_at, until, claimed_at, settled_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (schedule, instant) DO NOTHING`,
		f.Schedule, millis(f.Instant), millis(f.Due), string(what), string(f.State), f.Run, f.Reason, f.Tries, millis(f.TryAt),
		millis(f.Until), millis(f.ClaimedAt), millis(f.SettledAt))
	return n == 1, err
}

const fireColumns = `schedule, instant, due, what, state, run, reason, tries, try_at, until, claimed_at, settled_at`

func scanFire(r row) (f schedules.Fire, err error) {
	var what, state string
	var at, due, try, until, claimed, settled int64
	err = r.Scan(&f.Schedule, &at, &due, &what, &state, &f.Run, &f.Reason, &f.Tries, &try, &until, &claimed, &settled)
	f.State, f.Instant, f.Due, f.TryAt = schedules.State(state), instant(at), instant(due), instant(try)
	f.Until, f.ClaimedAt, f.SettledAt = instant(until), instant(claimed), instant(settled)
	if err == nil && what != "" {
		err = json.Unmarshal([]byte(what), &f.Order)
	}
	return f, err
}

// PendingFires is schedules.Fires'.
func (s *Store) PendingFires(ctx context.Context, now, beyond time.Time, limit int) ([]schedules.Fire, error) {
	all, err := list(ctx, s.read, scanFire, `
		SELECT `+fireColumns+` FROM schedule_fires
		WHERE state = 'pending' AND (try_at <= $1 OR try_at > $2) ORDER BY try_at, schedule, instant LIMIT $3`, millis(now), millis(beyond), limit)
	return all, s.fail("listing pending fires", err)
}

// TakeFire is schedules.Fires'.
func (s *Store) TakeFire(ctx context.Context, f schedules.Fire, tryAt time.Time) (taken bool, err error) {
	err = s.update(ctx, "taking a fire", func(tx *sql.Tx) error {
		n, err := exec(ctx, tx, `
			UPDATE schedule_fires SET try_at = $1 WHERE schedule = $2 AND instant = $3 AND state = 'pending' AND try_at = $4`,
			millis(tryAt), f.Schedule, millis(f.Instant), millis(f.TryAt))
		taken = n == 1
		return err
	})
	return taken, err
}

// SettleFire is schedules.Fires'.
func (s *Store) SettleFire(ctx context.Context, f schedules.Fire) error {
	return s.update(ctx, "settling a fire", func(tx *sql.Tx) error {
		if f.State == schedules.Pending {
			_, err := exec(ctx, tx, `
				UPDATE schedule_fires SET reason = $1, tries = $2, try_at = $3 WHERE schedule = $4 AND instant = $5 AND state = 'pending'`,
				f.Reason, f.Tries, millis(f.TryAt), f.Schedule, millis(f.Instant))
			return err
		}
		_, err := exec(ctx, tx, `
			UPDATE schedule_fires SET state = $1, run = $2, reason = $3, tries = $4, try_at = 0, what = '', settled_at = $5
			WHERE schedule = $6 AND instant = $7 AND (state = 'pending' OR state = 'dropped' AND $1 = 'submitted')`,
			string(f.State), f.Run, f.Reason, f.Tries, millis(f.SettledAt), f.Schedule, millis(f.Instant))
		return err
	})
}

// ListFires is schedules.Fires'.
func (s *Store) ListFires(ctx context.Context, schedule string, before time.Time, limit int) ([]schedules.Fire, error) {
	all, err := list(ctx, s.read, scanFire, `
		SELECT `+fireColumns+` FROM schedule_fires
		WHERE schedule = $1 AND (CAST($2 AS BIGINT) = 0 OR instant < CAST($2 AS BIGINT)) ORDER BY instant DESC LIMIT $3`,
		schedule, millis(before), limit)
	return all, s.fail("listing the fires of a schedule", err)
}

// PruneFires is schedules.Fires'.
func (s *Store) PruneFires(ctx context.Context, before time.Time, limit int) (removed int64, err error) {
	err = s.update(ctx, "removing old fires", func(tx *sql.Tx) error {
		removed, err = exec(ctx, tx, `
			DELETE FROM schedule_fires WHERE (schedule, instant) IN (
				SELECT schedule, instant FROM schedule_fires
				WHERE settled_at > 0 AND settled_at < $1 AND instant < $1 ORDER BY settled_at LIMIT $2)`, millis(before), limit)
		return err
	})
	return removed, err
}
