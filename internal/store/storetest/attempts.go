package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/attempts"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/runs"
	"github.com/roadstead/roadstead/internal/store"
)

// attemptSteps: an Attempt goes through its states one by one, a step taken twice is one step, and nobody but its runner
// at its fence takes any.
func attemptSteps(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	run := y.submit(order()).ID
	h := y.assign(run)
	_, err := a.LaunchAttempt(ctx, h, at())
	refused(t, err, fault.Conflict)
	_, err = a.AppendLogs(ctx, h, 1, nil, nil)
	refused(t, err, fault.Conflict)
	for range 2 {
		got, r, spec, err := a.StartAttempt(ctx, h, at())
		ok(t, err)
		equal(t, got.State == lifecycle.Starting && r.ID == run && spec.Timeout == 60, true)
	}
	for i := range 2 {
		got, err := b.LaunchAttempt(ctx, h, at().Add(time.Duration(i)*time.Hour))
		ok(t, err)
		equal(t, got.State == lifecycle.Running && got.StartedAt.Equal(at()), true)
	}
	equal(t, y.now(run).StartedAt, at())
	_, _, _, err = a.StartAttempt(ctx, h, at())
	refused(t, err, fault.Conflict)
	for _, stranger := range strangers(h) {
		y.isLost(stranger)
	}
	_, spec, err := b.LiveAttempt(ctx, h)
	ok(t, err)
	equal(t, spec.Timeout, 60)
	equal(t, y.kinds(run), "submitted assigned starting running")

	// A conflict where the Attempt is not what the ending takes it for.
	for _, wrong := range []func(e *runs.Ending){
		func(e *runs.Ending) { e.Fence = 7 }, func(e *runs.Ending) { e.From = []lifecycle.Attempt{lifecycle.Assigned} },
		func(e *runs.Ending) { e.State, e.Reason = lifecycle.AttemptSucceeded, lifecycle.Done }, // nothing succeeds unverified
	} {
		e := ending(h, lifecycle.AttemptFailed, lifecycle.ExitCode)
		wrong(&e)
		_, err = a.EndAttempt(ctx, e)
		refused(t, err, fault.Conflict)
	}
	_, err = a.EndAttempt(ctx, ending(attempts.Holder{Attempt: "att_x"}, lifecycle.AttemptFailed, lifecycle.ExitCode))
	refused(t, err, fault.NotFound)
	y.end(h, lifecycle.AttemptFailed, lifecycle.ExitCode)
	y.isLost(h)
	_, err = a.EndAttempt(ctx, ending(h, lifecycle.AttemptFailed, lifecycle.ExitCode))
	refused(t, err, fault.Conflict)
}

// strangers are those who are not the holder.
func strangers(h attempts.Holder) []attempts.Holder {
	return []attempts.Holder{{Runner: "rnr_x", Attempt: h.Attempt, Fence: h.Fence}, {Runner: h.Runner, Attempt: h.Attempt, Fence: h.Fence + 1},
		{Runner: h.Runner, Attempt: h.Attempt, Fence: h.Fence - 1}, {Runner: h.Runner, Attempt: "att_x", Fence: h.Fence}}
}

// isLost fails unless every call of the holder is refused and changes nothing.
func (y *yard) isLost(h attempts.Holder) {
	y.t.Helper()
	ctx := y.t.Context()
	for name, call := range map[string]func() error{
		"start":  func() error { _, _, _, err := y.a.StartAttempt(ctx, h, at()); return err },
		"launch": func() error { _, err := y.a.LaunchAttempt(ctx, h, at()); return err },
		"live":   func() error { _, _, err := y.a.LiveAttempt(ctx, h); return err },
		"logs": func() error {
			_, err := y.a.AppendLogs(ctx, h, 1, []api.JobLine{{Text: "x"}}, &api.Progress{Fraction: 1})
			return err
		},
		"report": func() error { _, _, err := y.a.ReportAttempt(ctx, h, "late", at()); return err },
		"grant": func() error {
			_, err := y.a.NewGrant(ctx, h, attempts.Grant{ID: store.NewID(), Attempt: h.Attempt, Kind: "result", Hash: store.NewID()})
			return err
		},
	} {
		if err := call(); !fault.Is(err, fault.Conflict) {
			y.t.Fatalf("%s of %+v: %v", name, h, err)
		}
	}
	held, err := y.a.Held(ctx, y.runner, []api.HeldLease{{Attempt: h.Attempt, Fence: h.Fence}})
	ok(y.t, err)
	if h.Runner == y.runner {
		equal(y.t, text(held.Lost), text([]string{h.Attempt}))
	}
}

// retries: losses and failures are counted apart, waits grow, holds and costs are settled each time (R-2.1, R14).
func retries(t *testing.T, a, b *store.Store) {
	y := newYard(t, a, b)
	y.budget(1000)
	run := y.submit(order(lane("k", "queue"))).ID
	step := func(state lifecycle.Attempt, reason lifecycle.Reason, cost int64) runs.Run {
		t.Helper()
		h := y.launch(run)
		e := ending(h, state, reason)
		e.CostMicro = cost
		ended, err := a.EndAttempt(t.Context(), e)
		ok(t, err)
		equal(t, text(ended.Run), text(y.now(run)))
		return ended.Run
	}
	r := step(lifecycle.AttemptFailed, lifecycle.ExitCode, 5)
	equal(t, r.State == lifecycle.Queued && r.Failures == 1 && r.SpentMicro == 5 && r.Fence == 1 && r.Reason == "", true)
	equal(t, r.NextEligible, at().Add(time.Minute+10*time.Second))
	equal(t, r.EligibleAt, r.NextEligible)
	equal(t, r.Inserted, at().Add(time.Minute).UnixMilli()) // the dispatcher sees it as new
	y.money(5, 0)
	r = step(lifecycle.AttemptInterrupted, lifecycle.NotStarted, 0)
	equal(t, r.State == lifecycle.Queued && r.Losses == 0, true)
	r = step(lifecycle.AttemptInterrupted, lifecycle.LeaseLost, 7)
	equal(t, r.State == lifecycle.Queued && r.Losses == 1 && r.SpentMicro == 12, true)
	r = step(lifecycle.AttemptFailed, lifecycle.ExitCode, 1)
	equal(t, r.State == lifecycle.Failed && r.Reason == lifecycle.ExitCode && r.Failures == 2, true)
	equal(t, r.EndedAt, at().Add(time.Minute))
	y.money(13, 0)
	all, err := b.RunAttempts(t.Context(), run)
	ok(t, err)
	equal(t, len(all), 4)
	for i, one := range all {
		equal(t, one.Number == i+1 && one.Fence == int64(i+1) && one.State.Ended(), true)
	}
	equal(t, all[2].CostMicro == 7 && all[2].Reason == lifecycle.LeaseLost, true)
	equal(t, y.kinds(run), "submitted assigned starting running retry assigned starting running retry assigned starting running retry assigned starting running failed")
	later := y.submit(order(lane("k", "queue"))).ID
	y.assign(later) // the lane is free again
}

// endRace: two who end one Attempt at once: one does, and it is booked once.
func endRace(t *testing.T, a, b *store.Store) {
	y := newYard(t, a, b)
	y.budget(1000)
	for i := range 20 {
		h := y.launch(y.submit(order()).ID)
		oneWins(t, together(a, b, func(i int, s *store.Store) error {
			e := ending(h, []lifecycle.Attempt{lifecycle.AttemptFailed, lifecycle.AttemptInterrupted}[i], lifecycle.LeaseLost)
			e.CostMicro = 3
			_, err := s.EndAttempt(t.Context(), e)
			return err
		}), fault.Conflict)
		y.money(int64(3*(i+1)), 0)
	}
}

// reports: the first report counts, the same again is answered, another one is a conflict; results come with success.
func reports(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	run := y.submit(order(element("arr_1", 4))).ID
	h := y.launch(run)
	got, repeated, err := a.ReportAttempt(ctx, h, "first", at())
	ok(t, err)
	equal(t, !repeated && got.State == lifecycle.Finalizing && got.Report == "first", true)
	open, err := b.Unfinished(ctx, "", 10)
	ok(t, err)
	equal(t, len(open) == 1 && open[0].Attempt.ID == h.Attempt && open[0].Spec.Timeout == 60, true)
	open, err = b.Unfinished(ctx, h.Attempt, 10)
	ok(t, err)
	equal(t, len(open), 0)
	e := ending(h, lifecycle.AttemptSucceeded, lifecycle.Done)
	e.Results = []api.Result{{Name: "b", Digest: "sha256:b", Size: 2, MediaType: "text/csv"}, {Name: "a", Digest: "sha256:a", Size: 1, MediaType: "image/svg+xml"}}
	again := func() {
		t.Helper()
		_, repeated, err := b.ReportAttempt(ctx, h, "first", at())
		ok(t, err)
		equal(t, repeated, true)
		_, _, err = b.ReportAttempt(ctx, h, "second", at())
		refused(t, err, fault.Conflict)
		equal(t, fault.From(err).Reason, "report_differs")
		for _, stranger := range strangers(h) {
			_, _, err = b.ReportAttempt(ctx, stranger, "first", at())
			refused(t, err, fault.Conflict)
		}
	}
	again()
	_, err = a.EndAttempt(ctx, e)
	ok(t, err)
	again()
	y.is(run, lifecycle.Succeeded, lifecycle.Done)
	details, err := b.RunDetails(ctx, run)
	ok(t, err)
	equal(t, len(details.Results) == 2 && details.Results[0].Name == "a" && details.Results[0].Path == api.PathRuns+run+"/results/a", true)
	for id, index := range map[string]int{run: -1, "arr_1": 4} {
		results, err := b.Results(ctx, id)
		ok(t, err)
		equal(t, len(results) == 2 && results[0].Index == index && results[1].Result.Digest == "sha256:b", true)
	}
	equal(t, y.kinds(run), "submitted assigned starting running finalizing succeeded")
	took, err := b.RecentDurations(ctx, "p", 10)
	ok(t, err)
	equal(t, len(took) == 1 && took[0].Took == 59*time.Second, true)

	// Of one that could not be started the runner reports too.
	h = y.assign(y.submit(order()).ID)
	got, _, err = a.ReportAttempt(ctx, h, "can't start", at())
	ok(t, err)
	equal(t, got.State, lifecycle.Finalizing)
}

// logLines: pieces follow each other without gaps, however often they come, and are paged by lines over all Attempts.
func logLines(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	run := y.submit(order()).ID
	send := func(h attempts.Holder, first int64, n int) error {
		var lines []api.JobLine
		for i := range n {
			lines = append(lines, api.JobLine{At: at(), Stream: "stdout", Text: fmt.Sprint(first + int64(i))})
		}
		_, err := a.AppendLogs(ctx, h, first, lines, nil)
		return err
	}
	h := y.launch(run)
	ok(t, send(h, 1, 5))
	ok(t, send(h, 1, 5)) // again
	ok(t, send(h, 3, 5)) // and two more
	ok(t, send(h, 2, 1))
	ok(t, send(h, 8, 0))
	refused(t, send(h, 9, 1), fault.InvalidInput)
	ok(t, send(h, 8, 1))
	y.end(h, lifecycle.AttemptInterrupted, lifecycle.LeaseLost)
	refused(t, send(h, 9, 1), fault.Conflict)
	next := y.launch(run)
	ok(t, send(next, 1, 3))
	for _, limit := range []int{1, 2, 4, 100} {
		var got []string
		for seq := int64(0); ; {
			page, err := b.RunLogs(ctx, run, seq, limit)
			ok(t, err)
			if len(page) == 0 {
				break
			}
			equal(t, len(page) <= limit, true)
			for _, l := range page {
				equal(t, l.Seq > seq, true)
				seq = l.Seq
				got = append(got, l.Text)
				equal(t, l.Attempt, map[bool]string{true: h.Attempt, false: next.Attempt}[len(got) <= 8])
			}
		}
		equal(t, fmt.Sprint(got), "[1 2 3 4 5 6 7 8 1 2 3]")
	}
	progress := api.Progress{Fraction: 0.5, Message: "half", At: at()}
	for _, f := range []float64{0.25, 0.5} {
		progress.Fraction = f
		_, err := a.AppendLogs(ctx, next, 4, nil, &progress)
		ok(t, err)
	}
	details, err := b.RunDetails(ctx, run)
	ok(t, err)
	equal(t, *details.Progress, progress)
}

// heartbeats: a beat renews what the runner holds and tells what it lost; nothing else renews anything.
func heartbeats(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	one, two := y.launch(y.submit(order()).ID), y.assign(y.submit(order()).ID)
	beat := attempts.Beat{
		Runner: y.runner, Acknowledged: 2, At: at().Add(time.Second), LeaseUntil: at().Add(time.Hour), Capacity: &api.Resources{Slots: 9},
		Holds: []api.HeldLease{{Attempt: two.Attempt, Fence: 7}, {Attempt: "att_x", Fence: 1}, {Attempt: one.Attempt, Fence: one.Fence}},
	}
	held, err := a.Beat(ctx, beat)
	ok(t, err)
	equal(t, held.Latest, 2)
	equal(t, text(held.Lost), text([]string{two.Attempt, "att_x"}))
	equal(t, len(held.Live) == 2 && held.Live[0].Attempt.ID == one.Attempt && held.Live[1].Attempt.ID == two.Attempt, true)
	beats, err := b.Beats(ctx, "p")
	ok(t, err)
	for _, x := range beats {
		equal(t, x.Beats == 1, x.Attempt == one.Attempt)
	}
	r, err := b.Runner(ctx, y.runner)
	ok(t, err)
	equal(t, r.Beats == 1 && r.SeenAt.Equal(beat.At) && r.Capacity.Slots == 9, true)
	rows, err := b.RunnerRows(ctx, "p")
	ok(t, err)
	equal(t, len(rows) == 1 && rows[0].Beats == 1 && rows[0].Labels["zone"] == "a", true)
	again, err := b.Held(ctx, y.runner, beat.Holds)
	ok(t, err)
	equal(t, text(again), text(held))
	stranger := beat
	stranger.Runner = "rnr_x"
	_, err = a.Beat(ctx, stranger)
	refused(t, err, fault.NotFound)
	beats, err = b.Beats(ctx, "p")
	ok(t, err)
	equal(t, beats[0].Beats+beats[1].Beats, 1)
}

// runGrants: leave to upload is for one object of one living Attempt, for a while (design section 5).
func runGrants(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	run := y.submit(order()).ID
	h := y.launch(run)
	g := attempts.Grant{
		ID: "g1", Attempt: h.Attempt, Run: run, Tenant: acme, Kind: "checkpoint", Name: "c", Digest: "sha256:1", Size: 3, Hash: "h1", ExpiresAt: at().Add(time.Hour),
	}
	made, err := a.NewGrant(ctx, h, g)
	ok(t, err)
	equal(t, made, g)
	used, err := b.UseGrant(ctx, "h1", at())
	ok(t, err)
	equal(t, used, g)
	_, err = b.UseGrant(ctx, "h1", g.ExpiresAt)
	refused(t, err, fault.NotFound)
	_, found, err := b.LastCheckpoint(ctx, run, 9)
	ok(t, err)
	equal(t, found, false)
	refused(t, b.FinishGrant(ctx, "g1", g.ExpiresAt), fault.Conflict)
	ok(t, b.FinishGrant(ctx, "g1", at()))

	// Asked for again it has a new secret, and is still done; of another size it is refused.
	again := g
	again.ID, again.Hash = "g2", "h2"
	made, err = a.NewGrant(ctx, h, again)
	ok(t, err)
	equal(t, made.ID == "g1" && made.Hash == "h2" && made.DoneAt.Equal(at()), true)
	_, err = b.UseGrant(ctx, "h1", at())
	refused(t, err, fault.NotFound)
	again.Size = 4
	_, err = a.NewGrant(ctx, h, again)
	refused(t, err, fault.InvalidInput)
	other := g
	other.ID, other.Kind, other.Hash = "g3", "result", "h3"
	_, err = a.NewGrant(ctx, h, other)
	ok(t, err)
	done, err := b.AttemptGrants(ctx, h.Attempt)
	ok(t, err)
	equal(t, len(done) == 1 && done[0].ID == "g1", true)

	// With the report, and with the Attempt's end, leave ends; the checkpoint is the next Attempt's.
	_, _, err = a.ReportAttempt(ctx, h, "{}", at())
	ok(t, err)
	_, err = b.UseGrant(ctx, "h3", at())
	refused(t, err, fault.NotFound)
	refused(t, b.FinishGrant(ctx, "g3", at()), fault.Conflict)
	_, err = a.NewGrant(ctx, h, other)
	refused(t, err, fault.Conflict)
	y.end(h, lifecycle.AttemptInterrupted, lifecycle.LeaseLost)
	last, found, err := b.LastCheckpoint(ctx, run, 2)
	ok(t, err)
	equal(t, found && last.ID == "g1", true)
	_, found, err = b.LastCheckpoint(ctx, run, 1)
	ok(t, err)
	equal(t, found, false)
}
