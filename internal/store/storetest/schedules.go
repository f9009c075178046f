package storetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/schedules"
	"github.com/roadstead/roadstead/internal/store"
)

func schedule(tenant, name string) schedules.Schedule {
	return schedules.Schedule{
		ID: "sch_" + store.NewID(), Tenant: tenant, Name: name, Owner: "ann", Revision: 1, CreatedAt: at(), ChangedAt: at(),
		Plan: schedules.Plan{
			Rule: "@hourly", Zone: "UTC", Overlap: schedules.Skip, Refused: schedules.Drop, Spread: time.Minute,
			CatchUp: schedules.CatchUp{Policy: schedules.All, Max: 3, MaxAge: time.Hour}, Template: json.RawMessage(`{"command":["true"]}`),
		},
		Shape:   schedules.Shape{Pool: "default", Slots: 2, Duration: time.Minute},
		Instant: at(), Due: at().Add(time.Second),
	}
}

func fireOf(d schedules.Schedule, instant time.Time) schedules.Fire {
	return schedules.Fire{
		Schedule: d.ID, Instant: instant, Due: instant.Add(time.Second), State: schedules.Pending, TryAt: at().Add(30 * time.Second),
		Until: instant.Add(time.Hour), ClaimedAt: at(), Order: schedules.Order{Tenant: d.Tenant, Name: d.Name, Owner: d.Owner, Template: d.Plan.Template},
	}
}

func sameSchedule(t *testing.T, got, want schedules.Schedule) {
	t.Helper()
	equal(t, string(got.Plan.Template), string(want.Plan.Template))
	equal(t, got.Plan.CatchUp, want.Plan.CatchUp)
	got.Plan, want.Plan = schedules.Plan{Rule: got.Plan.Rule, Zone: got.Plan.Zone, Spread: got.Plan.Spread}, schedules.Plan{Rule: want.Plan.Rule, Zone: want.Plan.Zone, Spread: want.Plan.Spread}
	equal(t, text(got), text(want))
}

func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// schedulesKept: a schedule is made once under its name, replaced at its revision, and listed where it belongs.
func schedulesKept(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	w, other := newWorld(t, a, "acme"), newWorld(t, a, "other")
	d := schedule(w.tenant.ID, "nightly")
	_, err := a.Schedule(ctx, d.Tenant, d.Name)
	refused(t, err, fault.NotFound)
	ok(t, a.PutSchedule(ctx, d, 0, 2, entry()))
	got, err := b.Schedule(ctx, d.Tenant, d.Name)
	ok(t, err)
	sameSchedule(t, got, d)
	refused(t, b.PutSchedule(ctx, schedule(w.tenant.ID, "nightly"), 0, 2, entry()), fault.AlreadyExists)
	ok(t, b.PutSchedule(ctx, schedule(w.tenant.ID, "weekly"), 0, 2, entry()))
	refused(t, b.PutSchedule(ctx, schedule(w.tenant.ID, "yearly"), 0, 2, entry()), fault.CapacityExceeded)
	refused(t, b.PutSchedule(ctx, schedule("nobody", "x"), 0, 2, entry()), fault.NotFound)
	ok(t, b.PutSchedule(ctx, schedule(other.tenant.ID, "nightly"), 0, 2, entry()))

	own, err := b.ListSchedules(ctx, w.tenant.ID, "", 10)
	ok(t, err)
	equal(t, len(own), 2)
	own, err = b.ListSchedules(ctx, w.tenant.ID, "nightly", 10)
	ok(t, err)
	equal(t, len(own) == 1 && own[0].Name == "weekly", true)
	onPool, err := a.SchedulesOnPool(ctx, "default", "", 10)
	ok(t, err)
	equal(t, len(onPool), 3)
	onPool, err = a.SchedulesOnPool(ctx, "other", "", 10)
	ok(t, err)
	equal(t, len(onPool), 0)

	d.Revision, d.Paused, d.Instant, d.Due, d.Plan.Rule = 2, true, time.Time{}, time.Time{}, "@daily"
	ok(t, a.PutSchedule(ctx, d, 1, 2, entry()))
	refused(t, a.PutSchedule(ctx, d, 1, 2, entry()), fault.RevisionMismatch)
	got, err = b.Schedule(ctx, d.Tenant, d.Name)
	ok(t, err)
	sameSchedule(t, got, d)
	active, err := a.ActiveSchedules(ctx, "", 10)
	ok(t, err)
	equal(t, len(active), 2)

	stale := d
	stale.Revision = 1
	refused(t, a.DeleteSchedule(ctx, stale, entry()), fault.RevisionMismatch)
	ok(t, a.DeleteSchedule(ctx, d, entry()))
	refused(t, a.DeleteSchedule(ctx, d, entry()), fault.NotFound)
}

// scheduleRace: of two changes of one revision, or two makers of one name, one is stored.
func scheduleRace(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	w := newWorld(t, a, "acme")
	both := [2]schedules.Schedule{schedule(w.tenant.ID, "x"), schedule(w.tenant.ID, "x")}
	won := both[oneWins(t, together(a, b, func(i int, s *store.Store) error {
		return s.PutSchedule(ctx, both[i], 0, 10, entry())
	}), fault.AlreadyExists)]
	for n := int64(1); n <= 10; n++ {
		oneWins(t, together(a, b, func(i int, s *store.Store) error {
			d := won
			d.Owner, d.Revision = []string{"ann", "bob"}[i], n+1
			return s.PutSchedule(ctx, d, n, 10, entry())
		}), fault.RevisionMismatch)
	}
}

// fires: a claim moves the schedule and writes its fires at once; a fire there was is not made again; what came of one is
// kept until it is pruned (R02).
func fires(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	w := newWorld(t, a, "acme")
	d := schedule(w.tenant.ID, "nightly")
	ok(t, a.PutSchedule(ctx, d, 0, 10, entry()))
	due, err := b.DueSchedules(ctx, d.Due.Add(-time.Millisecond), 10)
	ok(t, err)
	equal(t, len(due), 0)
	due, err = b.DueSchedules(ctx, d.Due, 10)
	ok(t, err)
	equal(t, len(due), 1)

	next := d.Instant.Add(time.Hour)
	c := schedules.Claim{Schedule: d.ID, Revision: 1, From: d.Instant, Instant: next, Due: next.Add(time.Second),
		Fires: []schedules.Fire{fireOf(d, d.Instant.Add(-time.Hour)), fireOf(d, d.Instant)}}
	wrong := c
	wrong.Revision = 2
	won, err := b.ClaimFires(ctx, []schedules.Claim{wrong})
	ok(t, err)
	equal(t, len(won), 0)
	won, err = b.ClaimFires(ctx, []schedules.Claim{c})
	ok(t, err)
	equal(t, text(won), text(c.Fires))
	won, err = b.ClaimFires(ctx, []schedules.Claim{c})
	ok(t, err)
	equal(t, len(won), 0)
	back := schedules.Claim{Schedule: d.ID, Revision: 1, From: next, Instant: next, Due: next, Fires: c.Fires}
	won, err = a.ClaimFires(ctx, []schedules.Claim{back})
	ok(t, err)
	equal(t, len(won), 0)
	settling(t, a, b, d, c.Fires)
}

func settling(t *testing.T, a, b *store.Store, d schedules.Schedule, made []schedules.Fire) {
	ctx := t.Context()
	pending, err := a.PendingFires(ctx, at(), at().Add(time.Hour), 10)
	ok(t, err)
	equal(t, len(pending), 0)
	pending, err = a.PendingFires(ctx, made[0].TryAt, at().Add(time.Hour), 10)
	ok(t, err)
	equal(t, text(pending), text(made))
	pending, err = a.PendingFires(ctx, at().Add(-10*time.Hour), at().Add(-9*time.Hour), 10) // of a clock that was ahead
	ok(t, err)
	equal(t, len(pending), 2)

	settled := made[1]
	settled.State, settled.Run, settled.SettledAt, settled.Tries = schedules.Submitted, "run_1", at(), 1
	ok(t, a.SettleFire(ctx, settled))
	again := settled
	again.State, again.Run = schedules.Dropped, ""
	ok(t, b.SettleFire(ctx, again)) // changes nothing
	later := made[0]
	later.Tries, later.Reason, later.TryAt = 1, "busy", at().Add(2*time.Hour)
	ok(t, b.SettleFire(ctx, later))
	all, err := b.ListFires(ctx, d.ID, time.Time{}, 10)
	ok(t, err)
	settled.Order, settled.TryAt = schedules.Order{}, time.Time{}
	equal(t, text(all), text([]schedules.Fire{settled, later}))
	all, err = b.ListFires(ctx, d.ID, d.Instant, 10)
	ok(t, err)
	equal(t, len(all), 1)

	d.Revision, d.Paused, d.Instant, d.Due = 2, true, time.Time{}, time.Time{}
	ok(t, a.PutSchedule(ctx, d, 1, 10, entry()))
	all, err = b.ListFires(ctx, d.ID, made[1].Instant, 10)
	ok(t, err)
	equal(t, all[0].State, schedules.Dropped)
	later.State, later.Run, later.SettledAt = schedules.Submitted, "run_0", at() // there was a Run before it was given up
	ok(t, b.SettleFire(ctx, later))
	all, err = b.ListFires(ctx, d.ID, made[1].Instant, 10)
	ok(t, err)
	equal(t, all[0].State == schedules.Submitted && all[0].Run == "run_0", true)

	n, err := a.PruneFires(ctx, at().Add(time.Millisecond), 10)
	ok(t, err)
	equal(t, n, 2)
	ok(t, a.DeleteSchedule(ctx, d, entry()))
}

// fireRace: of two who claim one fire, or try one again, one does (R02, two connections).
func fireRace(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	w := newWorld(t, a, "acme")
	d, e := schedule(w.tenant.ID, "one"), schedule(w.tenant.ID, "two")
	ok(t, a.PutSchedule(ctx, d, 0, 10, entry()))
	ok(t, a.PutSchedule(ctx, e, 0, 10, entry()))
	for range 20 {
		next := d.Instant.Add(time.Hour)
		var won [2][]schedules.Fire
		claim := func(d schedules.Schedule) schedules.Claim {
			return schedules.Claim{Schedule: d.ID, Revision: 1, From: d.Instant, Instant: next, Due: next, Fires: []schedules.Fire{fireOf(d, d.Instant)}}
		}
		errs := together(a, b, func(i int, s *store.Store) (err error) {
			claims := []schedules.Claim{claim(d), claim(e)}
			if i == 1 {
				claims[0], claims[1] = claims[1], claims[0] // in the other order: nobody waits for somebody who waits
			}
			won[i], err = s.ClaimFires(ctx, claims)
			return err
		})
		ok(t, errs[0])
		ok(t, errs[1])
		equal(t, len(won[0])+len(won[1]), 2)
		f := fireOf(d, d.Instant)
		var taken [2]bool
		errs = together(a, b, func(i int, s *store.Store) (err error) {
			taken[i], err = s.TakeFire(ctx, f, f.TryAt.Add(time.Minute))
			return err
		})
		ok(t, errs[0])
		ok(t, errs[1])
		equal(t, taken[0] != taken[1], true)
		d.Instant, e.Instant = next, next
	}
}
