package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/runs"
	"github.com/roadstead/roadstead/internal/store"
)

// dependencies: who waits is freed by the right end and dropped by another one, down the line.
func dependencies(t *testing.T, a, b *store.Store) {
	y := newYard(t, a, b)
	first, second := y.submit(order()).ID, y.submit(order(func(n *runs.NewRecord) { n.Spec.Retry.Failures = 0 })).ID
	both := y.submit(order(after(first, "ok"), after(second, "any"))).ID
	failed := y.submit(order(after(second, "fail"))).ID
	doomed := y.submit(order(after(second, "ok"))).ID
	below := y.submit(order(after(doomed, "ok"))).ID
	anyway := y.submit(order(after(doomed, "any"))).ID
	equal(t, y.now(both).WaitsFor, 2)

	ended := y.succeed(y.launch(first))
	equal(t, len(ended.Freed)+len(ended.Dropped), 0)
	equal(t, y.now(both).WaitsFor, 1)
	ended = y.end(y.launch(second), lifecycle.AttemptFailed, lifecycle.ExitCode)
	slices.Sort(ended.Freed)
	equal(t, text(ended.Freed), text([]string{both, failed, anyway}))
	equal(t, text(ended.Dropped), text([]string{doomed, below}))
	for _, id := range []string{both, failed, anyway} {
		r := y.now(id)
		equal(t, r.State == lifecycle.Queued && r.WaitsFor == 0, true)
		equal(t, r.EligibleAt, at().Add(time.Minute)) // it waits for its turn from here on
		equal(t, y.kinds(id), "submitted dependency_met")
	}
	y.is(doomed, lifecycle.Cancelled, lifecycle.DependencyFailed)
	y.is(below, lifecycle.Cancelled, lifecycle.DependencyFailed)
	equal(t, y.kinds(below), "submitted cancelled")

	// Those who come later find an end.
	equal(t, y.submit(order(after(first, "ok"), after(second, "fail"))).WaitsFor, 0)
	late := y.submit(order(after(first, "fail")))
	equal(t, late.State, lifecycle.Cancelled)
	y.is(late.ID, lifecycle.Cancelled, lifecycle.DependencyFailed)
	early := y.submit(order(after(first, "ok"), func(n *runs.NewRecord) { n.Run.NextEligible = at().Add(time.Hour) }))
	equal(t, y.now(early.ID).NextEligible, at().Add(time.Hour))
}

// dependenciesOnArrays: every element counts, named by the array or by itself, and once.
func dependenciesOnArrays(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	array := []runs.NewRecord{order(element("arr_1", 0)), order(element("arr_1", 1), func(n *runs.NewRecord) { n.Spec.Retry.Failures = 0 }), order(element("arr_1", 2))}
	join, strict := order(after("arr_1", "any")), order(after("arr_1", "ok"))
	y.submit(append(array, join, strict)...) // of the same submission
	twice := y.submit(order(after("arr_1", "any"), after(array[0].Run.ID, "ok")))
	equal(t, twice.WaitsFor, 3)
	equal(t, y.now(join.Run.ID).WaitsFor, 3)

	_, err := a.SubmitRuns(ctx, submission(order(after(array[0].Run.ID, "ok"), after(array[0].Run.ID, "fail"))))
	refused(t, err, fault.InvalidInput)
	_, err = a.SubmitRuns(ctx, submission(order(after("arr_1", "fail"))))
	refused(t, err, fault.InvalidInput)
	_, err = a.SubmitRuns(ctx, submission(order(after("run_x", "ok"))))
	refused(t, err, fault.InvalidInput)
	foreign := submission(order(after("arr_1", "ok"), func(n *runs.NewRecord) { n.Run.Tenant = "t-other" }))
	foreign.Tenant = "t-other"
	_, err = a.SubmitRuns(ctx, foreign)
	refused(t, err, fault.InvalidInput)

	y.succeed(y.launch(array[0].Run.ID))
	y.end(y.launch(array[1].Run.ID), lifecycle.AttemptFailed, lifecycle.ExitCode)
	y.is(strict.Run.ID, lifecycle.Cancelled, lifecycle.DependencyFailed)
	equal(t, y.now(join.Run.ID).WaitsFor, 1)
	ended, err := b.CancelRun(ctx, runs.Cancellation{Run: array[2].Run.ID, Reason: lifecycle.CancelRequested, At: at()}, entry())
	ok(t, err)
	slices.Sort(ended.Freed)
	equal(t, text(ended.Freed), text([]string{join.Run.ID, twice.ID}))
}

// dependencyRace: an end and a submit that waits for it, at once: whoever comes first, nobody waits for ever.
func dependencyRace(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	for range 20 {
		h := y.launch(y.submit(order(element("arr_"+store.NewID(), 0))).ID)
		_, _, err := a.ReportAttempt(ctx, h, "{}", at())
		ok(t, err)
		r, _, err := a.LiveAttempt(ctx, h)
		ok(t, err)
		array := y.now(r.Run).Array
		waiting := []runs.NewRecord{order(after(array, "ok")), order(after(r.Run, "any"))}
		errs := together(a, b, func(i int, s *store.Store) error {
			if i == 0 {
				_, err := s.EndAttempt(ctx, ending(h, lifecycle.AttemptSucceeded, lifecycle.Done))
				return err
			}
			_, err := s.SubmitRuns(ctx, submission(waiting...))
			return err
		})
		ok(t, errs[0])
		ok(t, errs[1])
		for _, n := range waiting {
			equal(t, y.now(n.Run.ID).WaitsFor, 0)
		}
	}
}

// lanes: what the policy of a concurrency key does with those before, and with the new one.
func lanes(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	active, queued := y.submit(order(lane("k", "queue"))).ID, y.submit(order(lane("k", "queue"))).ID
	h := y.launch(active)
	waits := y.submit(order(after(queued, "any"))).ID
	dropped := y.submit(order(after(queued, "ok"))).ID

	skipped := y.submit(order(lane("k", "skip")))
	equal(t, skipped.State == lifecycle.Cancelled && skipped.Reason == lifecycle.Skipped, true)
	y.is(skipped.ID, lifecycle.Cancelled, lifecycle.Skipped)
	y.is(y.submit(order(lane("other", "skip"))).ID, lifecycle.Queued, "")
	foreign := submission(order(lane("k", "replace"), func(n *runs.NewRecord) { n.Run.Tenant = "t-other" }))
	foreign.Tenant = "t-other"
	_, err := a.SubmitRuns(ctx, foreign)
	ok(t, err)
	y.is(queued, lifecycle.Queued, "")

	out, err := a.SubmitRuns(ctx, submission(order(lane("k", "replace"))))
	ok(t, err)
	equal(t, text(out.Touched), text([]string{active, queued, waits, dropped}))
	y.is(queued, lifecycle.Cancelled, lifecycle.Replaced)
	y.is(dropped, lifecycle.Cancelled, lifecycle.DependencyFailed)
	equal(t, y.now(waits).WaitsFor, 0)
	r := y.now(active)
	equal(t, r.State == lifecycle.Active && r.Cancel, true)
	y.end(h, lifecycle.AttemptCancelled, lifecycle.CancelRequested)
	y.is(active, lifecycle.Cancelled, lifecycle.Replaced)
	y.is(out.Runs[0].ID, lifecycle.Queued, "")
}

// laneRace: of two that give up if another is there, submitted at once, one is taken.
func laneRace(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	newYard(t, a, b)
	for range 20 {
		key := store.NewID()
		var out [2]runs.Outcome
		errs := together(a, b, func(i int, s *store.Store) (err error) {
			sub := submission(order(lane(key, "skip")))
			sub.Bounds = []runs.Bounds{{Pool: "p", TenantDepth: 1000}}
			out[i], err = s.SubmitRuns(ctx, sub)
			return err
		})
		ok(t, errs[0])
		ok(t, errs[1])
		equal(t, out[0].Runs[0].State != out[1].Runs[0].State, true)
	}
}

// cancels: what waits ends at once, what runs is told, what has ended stays (design section 5).
func cancels(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	cancel := func(id string) runs.Ended {
		t.Helper()
		ended, err := a.CancelRun(ctx, runs.Cancellation{Run: id, Reason: lifecycle.CancelRequested, Detail: "by ann", At: at()}, entry())
		ok(t, err)
		return ended
	}
	audited := func() int {
		t.Helper()
		all, err := b.ListAudit(ctx, "", 1000)
		ok(t, err)
		return len(all)
	}
	before := audited()
	queued := y.submit(order()).ID
	equal(t, cancel(queued).Run.State, lifecycle.Cancelled)
	y.is(queued, lifecycle.Cancelled, lifecycle.CancelRequested)
	equal(t, cancel(queued).Run.State, lifecycle.Cancelled)
	equal(t, audited(), before+1)
	equal(t, y.kinds(queued), "submitted cancelled")
	_, err := a.CancelRun(ctx, runs.Cancellation{Run: "run_x"}, entry())
	refused(t, err, fault.NotFound)

	// Nothing starts of a Run that was cancelled meanwhile, and no retry follows.
	active := y.submit(order()).ID
	h := y.assign(active)
	equal(t, cancel(active).Run.Cancel, true)
	equal(t, cancel(active).Run.State, lifecycle.Active)
	_, _, _, err = a.StartAttempt(ctx, h, at())
	refused(t, err, fault.Conflict)
	held, err := a.Held(ctx, y.runner, nil)
	ok(t, err)
	equal(t, len(held.Live) == 1 && held.Live[0].Cancel, true)
	y.end(h, lifecycle.AttemptInterrupted, lifecycle.LeaseLost)
	y.is(active, lifecycle.Cancelled, lifecycle.CancelRequested)
	equal(t, y.kinds(active), "submitted assigned cancel_requested cancelled")

	// Results that were accepted before win.
	done := y.submit(order()).ID
	h = y.launch(done)
	cancel(done)
	y.succeed(h)
	y.is(done, lifecycle.Succeeded, lifecycle.Done)
}

// waitsTooLong: a Run that never gets its turn ends at the version that was looked at, and no other.
func waitsTooLong(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	r := y.submit(order())
	below := y.submit(order(after(r.ID, "ok"))).ID
	_, err := a.EndQueuedRun(ctx, r.ID, r.Version+1, lifecycle.Expired, lifecycle.TooOld, "", at())
	refused(t, err, fault.Conflict)
	ended, err := a.EndQueuedRun(ctx, r.ID, r.Version, lifecycle.Expired, lifecycle.TooOld, "waited a week", at())
	ok(t, err)
	equal(t, text(ended.Dropped), text([]string{below}))
	equal(t, text(ended.Run), text(y.now(r.ID)))
	y.is(r.ID, lifecycle.Expired, lifecycle.TooOld)
	_, err = a.EndQueuedRun(ctx, r.ID, r.Version+1, lifecycle.Expired, lifecycle.TooOld, "", at())
	refused(t, err, fault.Conflict)
	_, err = a.EndQueuedRun(ctx, "run_x", 1, lifecycle.Expired, lifecycle.TooOld, "", at())
	refused(t, err, fault.NotFound)
}
