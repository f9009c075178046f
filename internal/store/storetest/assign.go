package storetest

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/attempts"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/dispatcher"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/pools"
	"github.com/roadstead/roadstead/internal/runs"
	"github.com/roadstead/roadstead/internal/store"
)

// budget gives the tenant money, at the revision after the one it has.
func (y *yard) budget(micro int64) {
	y.t.Helper()
	was, err := y.a.Budget(y.t.Context(), acme)
	ok(y.t, err)
	ok(y.t, y.a.SetBudget(y.t.Context(), pools.Budget{Tenant: acme, Limit: micro, Revision: was.Revision + 1}, entry()))
}

// money fails unless the tenant's budget has exactly this spent and held.
func (y *yard) money(spent, held int64) {
	y.t.Helper()
	got, err := y.b.Budget(y.t.Context(), acme)
	ok(y.t, err)
	if got.Spent != spent || got.Held != held {
		y.t.Fatalf("spent %d and held %d, want %d and %d", got.Spent, got.Held, spent, held)
	}
	left, limited, err := y.b.BudgetLeft(y.t.Context(), acme)
	ok(y.t, err)
	equal(y.t, limited && left == got.Limit-spent-held, true)
}

// assigns: of a batch each decision wins or says why not, and only winners leave anything.
func assigns(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	y.budget(10)
	var all []dispatcher.Assignment
	add := func(want dispatcher.Loss, n runs.NewRecord, edit func(d *dispatcher.Assignment)) {
		t.Helper()
		one := assignment(y.submit(n), y.runner)
		if edit(&one); want == "" {
			one.Decision = "won"
		}
		all = append(all, one)
	}
	costs := func(micro int64) func(d *dispatcher.Assignment) {
		return func(d *dispatcher.Assignment) { d.HoldMicro = micro }
	}
	add("", order(), costs(7))
	add(dispatcher.LossBudget, order(), costs(4))
	add("", order(), costs(3))
	add("", order(), costs(0)) // what costs nothing needs no budget
	add("", order(lane("k", "queue")), costs(0))
	add(dispatcher.LossLane, order(lane("k", "queue")), costs(0))
	add(dispatcher.LossChanged, order(), func(d *dispatcher.Assignment) { d.Fence = 1 })
	add(dispatcher.LossChanged, order(), func(d *dispatcher.Assignment) { d.Run = "run_x" })
	add(dispatcher.LossChanged, order(after(all[0].Run, "ok")), costs(0))
	add(dispatcher.LossChanged, order(func(n *runs.NewRecord) { n.Run.NextEligible = at().Add(2 * time.Hour) }), costs(0))
	add(dispatcher.LossRunner, order(lane("l", "queue")), func(d *dispatcher.Assignment) { d.Runner = "rnr_gone" })
	add("", order(lane("l", "queue")), costs(0)) // the one before holds nothing
	out, err := a.Assign(ctx, y.owner, all)
	ok(t, err)
	want := []dispatcher.Loss{"", dispatcher.LossBudget, "", "", "", dispatcher.LossLane, dispatcher.LossChanged, dispatcher.LossChanged, dispatcher.LossChanged,
		dispatcher.LossChanged, dispatcher.LossRunner, ""}
	live := 0
	for i := range all {
		if out[i].Loss != want[i] || out[i].Won != (want[i] == "") {
			t.Errorf("%d: %+v, want %q", i, out[i], want[i])
		}
		if want[i] == "" {
			live++
			y.is(all[i].Run, lifecycle.Active, "")
		}
	}
	y.money(0, 10)
	y.assigned(all[0], live)
	again, err := a.Assign(ctx, y.owner, all[:1])
	ok(t, err)
	equal(t, again[0].Loss, dispatcher.LossChanged)

	// A tenant that owes starts what costs nothing, and only that.
	y.budget(5)
	one, two := assignment(y.submit(order()), y.runner), assignment(y.submit(order()), y.runner)
	one.HoldMicro = 1
	out, err = a.Assign(ctx, y.owner, []dispatcher.Assignment{one, two})
	ok(t, err)
	equal(t, out[0].Loss == dispatcher.LossBudget && out[1].Won, true)
}

// assigned fails unless the decision is stored, among so many that live.
func (y *yard) assigned(d dispatcher.Assignment, live int) {
	y.t.Helper()
	ctx, t := y.t.Context(), y.t
	rows, err := y.b.LiveRows(ctx, "p")
	ok(t, err)
	equal(t, len(rows), live)
	for _, row := range rows {
		if row.Attempt.ID != d.Attempt {
			continue
		}
		want := runs.Attempt{
			ID: d.Attempt, Run: d.Run, Tenant: acme, Pool: "p", Runner: y.runner, Number: 1, Fence: 1, State: lifecycle.Assigned, Sequence: 1,
			LeaseUntil: d.LeaseUntil, Resources: api.Resources{Slots: 1}, AssignedAt: d.At,
		}
		equal(t, text(row.Attempt), text(want))
		equal(t, row.Decision == d.Decision && row.Row.Run.ID == d.Run && row.Row.Spec.Timeout == 60, true)
	}
	beats, err := y.b.Beats(ctx, "p")
	ok(t, err)
	equal(t, len(beats), live)
	all, err := y.b.Runners(ctx, "p")
	ok(t, err)
	equal(t, all[0].Attempts == live && all[0].Used.Slots == int64(live), true)
}

// owners: one decides for a pool; who was deposed commits nothing any more.
func owners(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	deposed := func(err error) {
		t.Helper()
		refused(t, err, fault.Conflict)
		equal(t, fault.From(err).Reason, dispatcher.ReasonDeposed)
	}
	ok(t, a.KeepPool(ctx, y.owner, `{"v":1}`))
	clock, err := b.PoolClock(ctx, "p")
	ok(t, err)
	equal(t, clock, `{"v":1}`)
	clock, err = b.PoolClock(ctx, "q")
	ok(t, err)
	equal(t, clock, "")
	_, err = b.TakePool(ctx, "p", "owner-2", 0)
	deposed(err)
	_, err = b.TakePool(ctx, "q", "owner-2", 3)
	deposed(err)
	next, err := b.TakePool(ctx, "p", "owner-2", y.owner.Epoch)
	ok(t, err)
	equal(t, next, dispatcher.Owner{Pool: "p", ID: "owner-2", Epoch: 2})
	clock, err = b.PoolClock(ctx, "p")
	ok(t, err)
	equal(t, clock, `{"v":1}`) // the virtual times outlive their owner

	deposed(a.KeepPool(ctx, y.owner, "{}"))
	r := y.submit(order())
	_, err = a.Assign(ctx, y.owner, []dispatcher.Assignment{assignment(r, y.runner)})
	deposed(err)
	y.is(r.ID, lifecycle.Queued, "")
	states, err := a.PoolStates(ctx)
	ok(t, err)
	equal(t, len(states) == 1 && states[0].Owner == "owner-2" && states[0].Epoch == 2 && states[0].Beats == 2 && states[0].Policy.MaxAge > 0, true)

	for epoch := int64(2); epoch < 12; epoch++ {
		var took [2]dispatcher.Owner
		winner := oneWins(t, together(a, b, func(i int, s *store.Store) (err error) {
			took[i], err = s.TakePool(ctx, "p", fmt.Sprint("owner-", i), epoch)
			return err
		}), fault.Conflict)
		equal(t, took[winner].Epoch, epoch+1)
	}
}

// takeoverRace: an owner that decides while another takes the pool over: its decision is committed before, or not at all.
func takeoverRace(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	o := y.owner
	for range 20 {
		r := y.submit(order())
		one := [2]dispatcher.Assignment{assignment(r, y.runner), assignment(r, y.runner)}
		var next dispatcher.Owner
		var out [2][]dispatcher.Assigned
		errs := together(a, b, func(i int, s *store.Store) (err error) {
			if i == 0 {
				out[0], err = s.Assign(ctx, o, one[:1])
				return err
			}
			if next, err = s.TakePool(ctx, "p", "owner-2", o.Epoch); err == nil {
				out[1], err = s.Assign(ctx, next, one[1:])
			}
			return err
		})
		ok(t, errs[1])
		first := errs[0] == nil && out[0][0].Won
		if first == out[1][0].Won {
			t.Fatalf("one of the two must have started the Run: %v, %+v", errs[0], out)
		}
		all, err := a.RunAttempts(ctx, r.ID)
		ok(t, err)
		equal(t, len(all), 1)
		o = next
	}
}

// budgetRace: a budget worth 10, claimed 64 times at once by the owners of two pools: exactly 10 win, and when they have
// ended nothing is held. ROADSTEAD_BUDGET_REPEATS says how often; 10 times without it.
func budgetRace(t *testing.T, a, b *store.Store) {
	ctx, y := t.Context(), newYard(t, a, b)
	owners := [2]dispatcher.Owner{y.owner, y.pool("q")}
	runners := [2]string{y.runner, y.newRunner("q")}
	stores := [2]*store.Store{a, b}
	const claims, worth, cost = 64, 10, 5
	for round := range repeats(t, "ROADSTEAD_BUDGET_REPEATS", 10) {
		y.budget(worth * cost * int64(round+1)) // what was spent before stays spent
		var all []runs.NewRecord
		for i := range claims {
			all = append(all, order(func(n *runs.NewRecord) { n.Run.Pool = []string{"p", "q"}[i%2] }))
		}
		y.submit(all...)
		var won [claims]attempts.Holder
		var errs [claims]error
		inParallel(claims, func(i int) {
			one := assignment(all[i].Run, runners[i%2])
			one.HoldMicro = cost
			out, err := stores[i%2].Assign(ctx, owners[i%2], []dispatcher.Assignment{one})
			if errs[i] = err; err == nil && out[0].Won {
				won[i] = attempts.Holder{Runner: one.Runner, Attempt: one.Attempt, Fence: 1}
			} else if err == nil && out[0].Loss != dispatcher.LossBudget {
				errs[i] = fmt.Errorf("lost by %s", out[0].Loss)
			}
		})
		wins := 0
		for i := range claims {
			ok(t, errs[i])
			if won[i].Attempt != "" {
				wins++
			}
		}
		equal(t, wins, worth)
		y.money(worth*cost*int64(round), worth*cost)
		inParallel(claims, func(i int) {
			if won[i].Attempt == "" {
				_, errs[i] = stores[i%2].CancelRun(ctx, runs.Cancellation{Run: all[i].Run.ID, Reason: lifecycle.CancelRequested, At: at()}, entry())
				return
			}
			e := ending(won[i], lifecycle.AttemptCancelled, lifecycle.CancelRequested)
			e.CostMicro = cost
			_, errs[i] = stores[i%2].EndAttempt(ctx, e)
		})
		for i := range claims {
			ok(t, errs[i])
		}
		y.money(worth*cost*int64(round+1), 0)
	}
}

// inParallel calls f for 0 to n-1 at the same moment and waits for all.
func inParallel(n int, f func(i int)) {
	var ready, done sync.WaitGroup
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			f(i)
		})
	}
	done.Wait()
}

// repeats is how often a race is run: as the environment says, or fewer times.
func repeats(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s: must be a number from 1 on, not %q", name, text)
	}
	return n
}
