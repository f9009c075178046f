// Package storetest says what a store is: one suite that every engine passes.
package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/store"
)

// Pair opens the same empty database twice, as two processes would, and closes both when the test ends.
type Pair func(t *testing.T) (a, b *store.Store)

// Run proves an engine.
func Run(t *testing.T, open Pair) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, a, b *store.Store)
	}{
		{"Bootstrap", bootstrap},
		{"BootstrapUndelivered", bootstrapUndelivered},
		{"Accounts", accounts},
		{"AccountRace", accountRace},
		{"Keys", keys},
		{"Grants", grants},
		{"Repositories", repositories},
		{"Files", files},
		{"ListFiles", listFiles},
		{"PutRace", putRace},
		{"ConditionRace", conditionRace},
		{"DeleteRepositoryRace", deleteRepositoryRace},
		{"Digests", digests},
		{"Links", links},
		{"Uploads", uploads},
		{"FinishRace", finishRace},
		{"TicketKey", ticketKey},
		{"QueueMark", queueMark},
		{"Settings", downloadSettings},
		{"SettingsRace", downloadSettingsRace},
		{"Journal", journal},
		{"Packages", packages},
		{"PackageStates", packageStates},
		{"PackageRights", packageRights},
		{"PublishRace", publishRace},
		{"PackageInbox", packageInbox},
		{"Secrets", secretRows},
		{"SecretRaces", secretRaces},
		{"Schedules", schedulesKept},
		{"ScheduleRace", scheduleRace},
		{"Fires", fires},
		{"FireRace", fireRace},
		{"Submit", submitKept},
		{"SubmitKeys", submitKeys},
		{"SubmitKeyRace", submitKeyRace},
		{"SubmitBounds", submitBounds},
		{"SubmitRace", submitRace},
		{"ListRuns", listRuns},
		{"Dependencies", dependencies},
		{"DependenciesOnArrays", dependenciesOnArrays},
		{"DependencyRace", dependencyRace},
		{"Lanes", lanes},
		{"LaneRace", laneRace},
		{"Cancels", cancels},
		{"WaitsTooLong", waitsTooLong},
		{"Assigns", assigns},
		{"Owners", owners},
		{"TakeoverRace", takeoverRace},
		{"BudgetRace", budgetRace},
		{"AttemptSteps", attemptSteps},
		{"Retries", retries},
		{"EndRace", endRace},
		{"Reports", reports},
		{"LogLines", logLines},
		{"Heartbeats", heartbeats},
		{"RunGrants", runGrants},
		{"Pools", poolRows},
		{"PoolShares", poolShares},
		{"Budgets", budgets},
		{"Runners", runnerRows},
		{"Census", census},
		{"Loads", loads},
		{"Cancelled", cancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := open(t)
			c.test(t, a, b)
		})
	}
}

// at is a fixed instant for rows whose time doesn't matter.
func at() time.Time { return time.Date(2027, 3, 1, 12, 0, 0, int(7*time.Millisecond), time.UTC) }

func entry() audit.Entry {
	return audit.Entry{ID: store.NewID(), At: at(), Tenant: "t", Actor: "a", Action: "test.done", Target: "x", Detail: "y"}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if !fault.Is(err, code) {
		t.Fatalf("got %v, want the fault %s", err, code)
	}
}

func equal[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
}

// together runs f for both stores at the same moment and returns both errors.
func together(a, b *store.Store, f func(i int, s *store.Store) error) [2]error {
	var errs [2]error
	var ready, done sync.WaitGroup
	ready.Add(2)
	for i, s := range []*store.Store{a, b} {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			errs[i] = f(i, s)
		})
	}
	done.Wait()
	return errs
}

// oneWins fails unless exactly one of the two succeeded and the other was refused with the code.
func oneWins(t *testing.T, errs [2]error, code fault.Code) (winner int) {
	t.Helper()
	for i, err := range errs {
		if err == nil && fault.Is(errs[1-i], code) {
			return i
		}
	}
	t.Fatalf("one should win and the other get %s: %v", code, errs)
	return 0
}

// world is a tenant with a user and a service account.
type world struct {
	tenant        identity.Tenant
	user, service identity.Account
}

func newWorld(t *testing.T, s *store.Store, name string) world {
	t.Helper()
	w := world{tenant: identity.Tenant{ID: store.NewID(), Name: name, CreatedAt: at()}}
	ok(t, s.CreateTenant(t.Context(), w.tenant, entry()))
	w.user = identity.Account{
		ID: store.NewID(), Kind: identity.User, Tenant: w.tenant.ID, Name: "ann", Class: class.Interactive, Revision: 1, CreatedAt: at(),
	}
	w.service = identity.Account{
		ID: store.NewID(), Kind: identity.Service, Tenant: w.tenant.ID, Name: "ci", Class: class.Release, Revision: 1, CreatedAt: at(),
	}
	ok(t, s.CreateAccount(t.Context(), w.user, entry()))
	ok(t, s.CreateAccount(t.Context(), w.service, entry()))
	return w
}

func first() identity.First {
	tenant := identity.Tenant{ID: store.NewID(), Name: "default", CreatedAt: at()}
	operator := identity.Account{
		ID: store.NewID(), Kind: identity.User, Tenant: tenant.ID, Name: "operator", Class: class.Interactive,
		Operator: true, Revision: 1, CreatedAt: at(),
	}
	key := identity.Key{ID: store.NewID(), Account: operator.ID, Name: "first", Hash: "h", CreatedAt: at()}
	return identity.First{Tenant: tenant, Account: operator, Key: key, Entry: entry()}
}

func bootstrap(t *testing.T, a, b *store.Store) {
	var mu sync.Mutex
	delivered, made := 0, 0
	errs := together(a, b, func(_ int, s *store.Store) error {
		created, err := s.Bootstrap(t.Context(), first(), func() error {
			mu.Lock()
			defer mu.Unlock()
			delivered++
			return nil
		})
		mu.Lock()
		defer mu.Unlock()
		if created {
			made++
		}
		return err
	})
	ok(t, errors.Join(errs[:]...))
	equal(t, made, 1)
	equal(t, delivered, 1)
	tenants, err := b.ListTenants(t.Context(), "", "", 10)
	ok(t, err)
	equal(t, len(tenants), 1)
	created, err := a.Bootstrap(t.Context(), first(), func() error { t.Error("delivered twice"); return nil })
	ok(t, err)
	equal(t, created, false)
}

func bootstrapUndelivered(t *testing.T, a, b *store.Store) {
	lost := errors.New("no room for the key")
	if created, err := a.Bootstrap(t.Context(), first(), func() error { return lost }); created || !errors.Is(err, lost) {
		t.Fatalf("got %v, %v", created, err)
	}
	created, err := b.Bootstrap(t.Context(), first(), func() error { return nil })
	ok(t, err)
	equal(t, created, true)
}

func accounts(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	w := newWorld(t, a, "acme")
	other := newWorld(t, b, "other")
	got, err := b.Account(ctx, w.service.ID)
	ok(t, err)
	equal(t, got, w.service)
	_, err = a.Account(ctx, "nobody")
	refused(t, err, fault.NotFound)

	same := w.user
	same.ID = store.NewID()
	refused(t, a.CreateAccount(ctx, same, entry()), fault.AlreadyExists)
	refused(t, a.CreateTenant(ctx, identity.Tenant{ID: store.NewID(), Name: "acme"}, entry()), fault.AlreadyExists)
	stray := same
	stray.Tenant = "nowhere"
	refused(t, a.CreateAccount(ctx, stray, entry()), fault.NotFound)

	page, err := a.ListAccounts(ctx, w.tenant.ID, "", 1)
	ok(t, err)
	equal(t, len(page), 1)
	equal(t, page[0], w.user)
	page, err = a.ListAccounts(ctx, w.tenant.ID, page[0].Name, 5)
	ok(t, err)
	equal(t, len(page), 1)
	equal(t, page[0], w.service)
	tenants, err := a.ListTenants(ctx, other.tenant.ID, "", 5)
	ok(t, err)
	equal(t, len(tenants), 1)
	equal(t, tenants[0], other.tenant)
}

// accountRace: of two changes of the same revision one wins, and only its line is in the audit (D-4.3).
func accountRace(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	w := newWorld(t, a, "acme")
	before, err := a.ListAudit(ctx, "", 100)
	ok(t, err)
	const rounds = 10
	for n := int64(1); n <= rounds; n++ {
		errs := together(a, b, func(i int, s *store.Store) error {
			change := w.service
			change.Class = class.Bulk + class.Class(i)
			change.Revision = n + 1
			e := entry()
			e.Detail = change.Class.String()
			return s.ChangeAccount(ctx, change, n, e)
		})
		winner := oneWins(t, errs, fault.RevisionMismatch)
		got, err := b.Account(ctx, w.service.ID)
		ok(t, err)
		equal(t, got.Revision, n+1)
		equal(t, got.Class, class.Bulk+class.Class(winner))
	}
	after, err := b.ListAudit(ctx, "", 100)
	ok(t, err)
	equal(t, len(after)-len(before), rounds)
	gone := w.service
	gone.ID = "nobody"
	refused(t, a.ChangeAccount(ctx, gone, 1, entry()), fault.NotFound)
}

func keys(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	w := newWorld(t, a, "acme")
	k := identity.Key{ID: "K1", Account: w.service.ID, Name: "ci", Hash: "abc", CreatedAt: at(), ExpiresAt: at().Add(time.Hour)}
	ok(t, a.CreateKey(ctx, k, entry()))
	got, account, err := b.Key(ctx, "K1")
	ok(t, err)
	equal(t, got, k)
	equal(t, account, w.service)
	_, _, err = b.Key(ctx, "K2")
	refused(t, err, fault.NotFound)
	refused(t, a.CreateKey(ctx, identity.Key{ID: "K2", Account: "nobody"}, entry()), fault.NotFound)

	ok(t, b.TouchKeys(ctx, map[string]time.Time{"K1": at().Add(2 * time.Second), "gone": at()}))
	ok(t, a.TouchKeys(ctx, map[string]time.Time{"K1": at().Add(time.Second)}))
	listed, err := a.ListKeys(ctx, w.service.ID)
	ok(t, err)
	equal(t, len(listed), 1)
	equal(t, listed[0].LastUsed, at().Add(2*time.Second))

	before, err := a.ListAudit(ctx, "", 100)
	ok(t, err)
	errs := together(a, b, func(i int, s *store.Store) error {
		return s.RevokeKey(ctx, "K1", at().Add(time.Duration(i+1)*time.Minute), entry())
	})
	ok(t, errors.Join(errs[:]...))
	after, err := a.ListAudit(ctx, "", 100)
	ok(t, err)
	equal(t, len(after)-len(before), 1)
	if got, _, err = a.Key(ctx, "K1"); err != nil || got.RevokedAt.IsZero() {
		t.Fatalf("not revoked: %+v, %v", got, err)
	}
	refused(t, a.RevokeKey(ctx, "K2", at(), entry()), fault.NotFound)
}

func ticketKey(t *testing.T, a, b *store.Store) {
	var got [2][]byte
	errs := together(a, b, func(i int, s *store.Store) (err error) {
		got[i], err = s.TicketKey(t.Context())
		return err
	})
	ok(t, errors.Join(errs[:]...))
	if len(got[0]) != 32 || !slices.Equal(got[0], got[1]) {
		t.Fatalf("two creators, two keys (D-8.3): %x, %x", got[0], got[1])
	}
	again, err := b.TicketKey(t.Context())
	ok(t, err)
	equal(t, slices.Equal(again, got[0]), true)
}

func queueMark(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	mark, err := a.QueueMark(ctx)
	ok(t, err)
	equal(t, mark, false)
	for _, want := range []bool{true, true, false} {
		ok(t, a.SetQueueMark(ctx, want))
		mark, err = b.QueueMark(ctx)
		ok(t, err)
		equal(t, mark, want)
	}
}

// cancelled: the end of the caller's context is told as such, not as a fault of ours.
func cancelled(t *testing.T, a, _ *store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := a.Account(ctx, "x")
	equal(t, errors.Is(err, context.Canceled), true)
	equal(t, errors.Is(a.SetQueueMark(ctx, true), context.Canceled), true)
}
