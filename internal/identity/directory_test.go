package identity_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/store"
)

// hand is a clock moved by hand.
type hand struct {
	mu   sync.Mutex
	wall time.Time
}

func (h *hand) Now() clock.Mono { return 0 }
func (h *hand) Wall() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.wall
}
func (h *hand) advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wall = h.wall.Add(d)
}

// house is a bootstrapped installation on a real store.
type house struct {
	*identity.Directory
	t        *testing.T
	store    *store.Store
	clock    *hand
	operator identity.Principal
}

func newHouse(t *testing.T) *house {
	t.Helper()
	s, err := store.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "x.db"))
	ok(t, err)
	t.Cleanup(func() { ok(t, s.Close()) })
	h := &house{t: t, store: s, clock: &hand{wall: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}}
	h.Directory, err = identity.New(identity.Config{NewID: store.NewID}, s, h.clock)
	ok(t, err)
	var secret string
	created, err := h.Bootstrap(t.Context(), func(s string) error { secret = s; return nil })
	ok(t, err)
	if !created {
		t.Fatal("not created")
	}
	h.operator, err = h.Authenticate(t.Context(), secret)
	ok(t, err)
	return h
}

// account makes an account and signs it in.
func (h *house) account(tenant string, kind identity.Kind, name string) identity.Principal {
	h.t.Helper()
	a, err := h.CreateAccount(h.t.Context(), h.operator, identity.NewAccount{Tenant: tenant, Kind: kind, Name: name})
	ok(h.t, err)
	_, secret, err := h.CreateKey(h.t.Context(), h.operator, a.ID, "test", time.Time{})
	ok(h.t, err)
	p, err := h.Authenticate(h.t.Context(), secret)
	ok(h.t, err)
	return p
}

func (h *house) repository(owner identity.Principal, name string) {
	h.t.Helper()
	r := artifacts.Repository{ID: store.NewID(), Name: name, Tenant: owner.Tenant}
	ok(h.t, h.store.CreateRepository(h.t.Context(), r, owner.ID, audit.Entry{ID: store.NewID()}))
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

func field(t *testing.T, err error, name string) {
	t.Helper()
	refused(t, err, fault.InvalidInput)
	if d := fault.From(err).Details; len(d) != 1 || d[0].Field != name {
		t.Fatalf("got %v, want the field %s", err, name)
	}
}

func TestBootstrap(t *testing.T) {
	h := newHouse(t)
	if h.operator.Name != "operator" || !h.operator.Operator || h.operator.Ceiling != class.Interactive {
		t.Errorf("got %+v", h.operator)
	}
	created, err := h.Bootstrap(t.Context(), func(string) error { return errors.New("asked again") })
	if created || err != nil {
		t.Errorf("a second start: %v, %v", created, err)
	}
}

// TestCeilings: people are interactive, service accounts release or what their policy says below (D-4.1, D-4.3).
func TestCeilings(t *testing.T) {
	h := newHouse(t)
	if p := h.account("", identity.User, "ann"); p.Ceiling != class.Interactive || p.Kind != identity.User {
		t.Errorf("a person: %+v", p)
	}
	if p := h.account("", identity.Service, "ci"); p.Ceiling != class.Release || p.Kind != identity.Service {
		t.Errorf("a service account: %+v", p)
	}
	for _, c := range []struct {
		kind  identity.Kind
		class class.Class
		ok    bool
	}{
		{identity.User, class.Interactive, true}, {identity.User, class.Bulk, false}, {identity.Service, class.Interactive, false},
		{identity.Service, class.Release, true}, {identity.Service, class.Background, true}, {identity.Service, class.Count, false},
	} {
		_, err := h.CreateAccount(t.Context(), h.operator, identity.NewAccount{
			Kind: c.kind, Name: "x-" + string(c.kind) + c.class.String(), Class: &c.class,
		})
		if c.ok {
			ok(t, err)
		} else {
			field(t, err, "class")
		}
	}
}

func TestChangeAccount(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	ci := h.account("", identity.Service, "ci")
	bulk, interactive, yes := class.Bulk, class.Interactive, true
	a, err := h.ChangeAccount(ctx, h.operator, ci.ID, 1, identity.AccountChange{Class: &bulk})
	ok(t, err)
	if a.Revision != 2 || a.Class != class.Bulk {
		t.Errorf("got %+v", a)
	}
	_, err = h.ChangeAccount(ctx, h.operator, ci.ID, 1, identity.AccountChange{Class: &bulk})
	refused(t, err, fault.RevisionMismatch)
	_, err = h.ChangeAccount(ctx, h.operator, ci.ID, 2, identity.AccountChange{Class: &interactive})
	field(t, err, "class")
	_, err = h.ChangeAccount(ctx, ci, ci.ID, 2, identity.AccountChange{Class: &bulk})
	refused(t, err, fault.Forbidden)
	_, err = h.ChangeAccount(ctx, h.operator, h.operator.ID, 1, identity.AccountChange{Disabled: &yes})
	refused(t, err, fault.Conflict)
	_, err = h.ChangeAccount(ctx, h.operator, "nobody", 1, identity.AccountChange{Disabled: &yes})
	refused(t, err, fault.NotFound)
	entries, err := h.store.ListAudit(ctx, "", 100)
	ok(t, err)
	last := entries[len(entries)-1]
	if last.Action != "account.changed" || last.Actor != h.operator.ID || last.Target != ci.ID || !strings.Contains(last.Detail, "release -> bulk") {
		t.Errorf("audit: %+v", last)
	}
}

func TestKeys(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	ann, ci := h.account("", identity.User, "ann"), h.account("", identity.Service, "ci")
	expires := h.clock.Wall().Add(time.Hour)
	k, secret, err := h.CreateKey(ctx, ann, ann.ID, "laptop", expires)
	ok(t, err)
	if strings.Contains(k.Hash, secret) || len(k.Hash) != 64 {
		t.Errorf("stored: %q", k.Hash)
	}
	_, err = h.Authenticate(ctx, secret)
	ok(t, err)

	wrong := secret[:len(secret)-1] + string('A'+(secret[len(secret)-1]-'A'+1)%2)
	other := secret[:4] + strings.Repeat("A", 16) + secret[20:]
	for _, bad := range []string{"", "rsk_", wrong, other, strings.ToLower(secret), secret + "A", " " + secret, secret[4:]} {
		_, err := h.Authenticate(ctx, bad)
		refused(t, err, fault.Unauthorized)
	}
	h.clock.advance(time.Hour)
	_, err = h.Authenticate(ctx, secret)
	refused(t, err, fault.Unauthorized)

	for name, expires := range map[string]time.Time{"name": {}, "expiresAt": h.clock.Wall()} {
		_, _, err := h.CreateKey(ctx, ann, ann.ID, map[bool]string{true: "", false: "x"}[name == "name"], expires)
		field(t, err, name)
	}
	_, _, err = h.CreateKey(ctx, ann, ann.ID, "a\nb", time.Time{})
	field(t, err, "name")
	_, _, err = h.CreateKey(ctx, ann, ci.ID, "x", time.Time{})
	refused(t, err, fault.NotFound)
	_, _, err = h.CreateKey(ctx, ci, ci.ID, "x", time.Time{})
	refused(t, err, fault.Forbidden)
	_, err = h.ListKeys(ctx, ci, ann.ID)
	refused(t, err, fault.NotFound)

	k, secret, err = h.CreateKey(ctx, ann, ann.ID, "phone", time.Time{})
	ok(t, err)
	refused(t, h.RevokeKey(ctx, ci, k.ID), fault.NotFound)
	ok(t, h.RevokeKey(ctx, ann, k.ID))
	ok(t, h.RevokeKey(ctx, h.operator, k.ID))
	_, err = h.Authenticate(ctx, secret)
	refused(t, err, fault.Unauthorized)
	all, err := h.ListKeys(ctx, ann, ann.ID)
	ok(t, err)
	if len(all) != 3 {
		t.Errorf("%d keys", len(all))
	}
}

func TestDisabledAccountsKeysStop(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	a, err := h.CreateAccount(ctx, h.operator, identity.NewAccount{Kind: identity.Service, Name: "ci"})
	ok(t, err)
	_, secret, err := h.CreateKey(ctx, h.operator, a.ID, "x", time.Time{})
	ok(t, err)
	for i, disabled := range []bool{true, false} {
		_, err = h.ChangeAccount(ctx, h.operator, a.ID, int64(i+1), identity.AccountChange{Disabled: &disabled})
		ok(t, err)
		_, err = h.Authenticate(ctx, secret)
		if disabled {
			refused(t, err, fault.Unauthorized)
		} else {
			ok(t, err)
		}
	}
}

// TestRoles: what is not yours is not there.
func TestRoles(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	other, err := h.CreateTenant(ctx, h.operator, "other")
	ok(t, err)
	ann, bob, eve := h.account("", identity.User, "ann"), h.account("", identity.User, "bob"), h.account(other.ID, identity.User, "eve")
	h.repository(ann, "images")
	role := func(p identity.Principal, want identity.Role) {
		t.Helper()
		got, err := h.RoleOn(ctx, p, "images")
		if want == "" {
			refused(t, err, fault.NotFound)
			refused(t, h.Need(ctx, p, "images", identity.Read), fault.NotFound)
			return
		}
		ok(t, err)
		if got != want {
			t.Errorf("%s has %s, want %s", p.Name, got, want)
		}
	}
	role(ann, identity.Admin)
	role(bob, "")
	role(eve, "")
	role(h.operator, identity.Admin)
	role(identity.Principal{}, "")
	role(identity.Principal{ID: ann.ID, Kind: identity.Link, Tenant: ann.Tenant}, "")
	_, err = h.RoleOn(ctx, h.operator, "nothing")
	refused(t, err, fault.NotFound)

	refused(t, h.SetGrant(ctx, bob, identity.Grant{Repository: "images", Account: bob.ID, Role: identity.Admin}), fault.NotFound)
	ok(t, h.SetGrant(ctx, ann, identity.Grant{Repository: "images", Account: bob.ID, Role: identity.Write}))
	role(bob, identity.Write)
	ok(t, h.Need(ctx, bob, "images", identity.Read))
	refused(t, h.Need(ctx, bob, "images", identity.Admin), fault.Forbidden)
	refused(t, h.SetGrant(ctx, bob, identity.Grant{Repository: "images", Account: bob.ID, Role: identity.Admin}), fault.Forbidden)
	refused(t, h.SetGrant(ctx, ann, identity.Grant{Repository: "images", Account: eve.ID, Role: identity.Read}), fault.NotFound)
	field(t, h.SetGrant(ctx, ann, identity.Grant{Repository: "images", Account: bob.ID, Role: "owner"}), "role")
	page, next, err := h.ListGrants(ctx, ann, "images", "", 1)
	ok(t, err)
	if len(page) != 1 || next == "" {
		t.Errorf("%v, %q", page, next)
	}
	page, next, err = h.ListGrants(ctx, ann, "images", next, 1)
	ok(t, err)
	if len(page) != 1 || next != "" {
		t.Errorf("%v, %q", page, next)
	}
	ok(t, h.RemoveGrant(ctx, ann, "images", bob.ID))
	role(bob, "")
}

func TestTenantsAreApart(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	other, err := h.CreateTenant(ctx, h.operator, "other")
	ok(t, err)
	ann, eve := h.account("", identity.User, "ann"), h.account(other.ID, identity.User, "eve")
	_, err = h.Account(ctx, eve, ann.ID)
	refused(t, err, fault.NotFound)
	_, err = h.Account(ctx, h.operator, eve.ID)
	ok(t, err)
	_, _, err = h.ListAccounts(ctx, eve, ann.Tenant, "", 0)
	refused(t, err, fault.NotFound)
	page, _, err := h.ListAccounts(ctx, eve, "", "", 0)
	ok(t, err)
	if len(page) != 1 || page[0].ID != eve.ID {
		t.Errorf("eve sees %v", page)
	}
	tenants, _, err := h.ListTenants(ctx, eve, "", 0)
	ok(t, err)
	if len(tenants) != 1 || tenants[0].ID != other.ID {
		t.Errorf("eve sees %v", tenants)
	}
	tenants, next, err := h.ListTenants(ctx, h.operator, "", 1)
	ok(t, err)
	if len(tenants) != 1 || next != "default" {
		t.Errorf("%v, %q", tenants, next)
	}
	for _, p := range []identity.Principal{ann, eve} {
		_, err = h.CreateTenant(ctx, p, "mine")
		refused(t, err, fault.Forbidden)
		_, err = h.CreateAccount(ctx, p, identity.NewAccount{Kind: identity.User, Name: "x"})
		refused(t, err, fault.Forbidden)
	}
}

func TestNames(t *testing.T) {
	h := newHouse(t)
	for _, bad := range []string{"", "-a", ".a", "A", "a b", "a/b", "ä", strings.Repeat("a", 64), "a\n"} {
		_, err := h.CreateTenant(t.Context(), h.operator, bad)
		field(t, err, "name")
		_, err = h.CreateAccount(t.Context(), h.operator, identity.NewAccount{Kind: identity.User, Name: bad})
		field(t, err, "name")
	}
	_, err := h.CreateAccount(t.Context(), h.operator, identity.NewAccount{Kind: identity.Link, Name: "x"})
	field(t, err, "kind")
	_, err = h.CreateAccount(t.Context(), h.operator, identity.NewAccount{Kind: identity.Service, Name: "x", Operator: true})
	field(t, err, "operator")
	_, err = h.CreateAccount(t.Context(), h.operator, identity.NewAccount{Kind: identity.User, Name: "operator"})
	refused(t, err, fault.AlreadyExists)
}

// used is a key store that remembers what it was told of last uses, and fails at first.
type used struct {
	identity.Store
	key identity.Key

	mu       sync.Mutex
	failures int
	seen     []map[string]time.Time
}

func (u *used) Bootstrap(_ context.Context, f identity.First, deliver func() error) (bool, error) {
	u.key = f.Key
	return true, deliver()
}

func (u *used) Key(context.Context, string) (identity.Key, identity.Account, error) {
	return u.key, identity.Account{ID: "a"}, nil
}

func (u *used) TouchKeys(_ context.Context, m map[string]time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.failures > 0 {
		u.failures--
		return errors.New("database away")
	}
	u.seen = append(u.seen, m)
	return nil
}

// writes are the maps written so far.
func (u *used) writes() []map[string]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.seen)
}

// TestLastUseIsWrittenLazily: many requests, one write a minute; a failed write is repeated; the end writes the rest.
func TestLastUseIsWrittenLazily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &used{failures: 1}
		d, err := identity.New(identity.Config{NewID: store.NewID}, u, clock.NewSystem())
		ok(t, err)
		var secret string
		_, err = d.Bootstrap(t.Context(), func(s string) error { secret = s; return nil })
		ok(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.Run(ctx) }()
		first := time.Now().UTC()
		for range 100 {
			_, err = d.Authenticate(t.Context(), secret)
			ok(t, err)
		}
		<-time.After(90 * time.Second) // the first write has failed
		if n := len(u.writes()); n != 0 {
			t.Fatalf("%d writes", n)
		}
		<-time.After(time.Minute)
		if w := u.writes(); len(w) != 1 || !w[0][u.key.ID].Equal(first) {
			t.Fatalf("got %v, want %v", w, first)
		}
		_, err = d.Authenticate(t.Context(), secret)
		ok(t, err)
		cancel()
		ok(t, <-ended)
		if n := len(u.writes()); n != 2 {
			t.Fatalf("%d writes after the end", n)
		}
	})
}
