package secrets_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/secrets"
	"github.com/roadstead/roadstead/internal/store"
)

// vault is the service on a real store and a key file, with two tenants.
type vault struct {
	*secrets.Service
	t             *testing.T
	dir           string
	store         *store.Store
	operator      identity.Principal
	admin, member identity.Principal // of acme
	stranger      identity.Principal // admin of another tenant
}

func newVault(t *testing.T) *vault {
	t.Helper()
	h := &vault{t: t, dir: t.TempDir()}
	ctx := t.Context()
	var err error
	h.store, err = store.OpenSQLite(ctx, filepath.Join(h.dir, "x.db"))
	ok(t, err)
	t.Cleanup(func() { ok(t, h.store.Close()) })
	people, err := identity.New(identity.Config{NewID: store.NewID}, h.store, clock.NewSystem())
	ok(t, err)
	var key string
	_, err = people.Bootstrap(ctx, func(secret string) error { key = secret; return nil })
	ok(t, err)
	h.operator, err = people.Authenticate(ctx, key)
	ok(t, err)
	account := func(tenant, name string, role identity.TenantRole) identity.Principal {
		if role == identity.TenantAdmin {
			made, err := people.CreateTenant(ctx, h.operator, tenant)
			ok(t, err)
			tenant = made.ID
		}
		a, err := people.CreateAccount(ctx, h.operator, identity.NewAccount{Tenant: tenant, Kind: identity.User, Name: name})
		ok(t, err)
		p := a.Principal()
		p.Role = role
		return p
	}
	h.admin = account("acme", "ann", identity.TenantAdmin)
	h.member = account(h.admin.Tenant, "bob", identity.Member)
	h.stranger = account("other", "eve", identity.TenantAdmin)
	h.Service = h.open()
	return h
}

// open makes one more process on the same store and key file.
func (h *vault) open() *secrets.Service {
	h.t.Helper()
	ring, err := secrets.OpenKeyring(h.keyFile())
	ok(h.t, err)
	s, err := secrets.New(secrets.Config{NewID: store.NewID}, h.store, ring, clock.NewSystem())
	ok(h.t, err)
	return s
}

func (h *vault) keyFile() string { return filepath.Join(h.dir, "secrets.key") }

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

const token = "tok-5f1c-OPEN-SESAME"

// A secret goes in and comes out only for an Attempt of its tenant; members see that it is there, others see nothing
// (R-9.3, D-11.4).
func TestRights(t *testing.T) {
	h := newVault(t)
	ctx := t.Context()
	made, err := h.Create(ctx, h.admin, "", "db", []byte(token), nil)
	ok(t, err)
	if made.Version != 1 || made.Tenant != h.admin.Tenant {
		t.Errorf("got %+v", made)
	}
	link := h.admin
	link.Kind = identity.Link
	for _, c := range []struct {
		who  identity.Principal
		code fault.Code
	}{{h.member, fault.Forbidden}, {h.stranger, fault.NotFound}, {link, fault.NotFound}, {identity.Principal{}, fault.NotFound}} {
		_, err := h.Create(ctx, c.who, h.admin.Tenant, "x", []byte(token), nil)
		refused(t, err, c.code)
		_, err = h.Rotate(ctx, c.who, h.admin.Tenant, "db", []byte(token))
		refused(t, err, c.code)
		_, err = h.Scope(ctx, c.who, h.admin.Tenant, "db", nil)
		refused(t, err, c.code)
		refused(t, h.Delete(ctx, c.who, h.admin.Tenant, "db"), c.code)
		_, err = h.RotateKey(ctx, c.who)
		refused(t, err, fault.Forbidden)
		_, err = h.Rewrap(ctx, c.who)
		refused(t, err, fault.Forbidden)
	}
	_, _, err = h.List(ctx, h.stranger, h.admin.Tenant, "", 0)
	refused(t, err, fault.NotFound)
	_, err = h.Secret(ctx, h.stranger, "", "db")
	refused(t, err, fault.NotFound)
	page, _, err := h.List(ctx, h.member, "", "", 0)
	if err != nil || len(page) != 1 || page[0].Name != "db" {
		t.Errorf("a member sees %+v, %v", page, err)
	}
	_, err = h.Create(ctx, h.operator, h.admin.Tenant, "db", []byte(token), nil)
	refused(t, err, fault.AlreadyExists)
	_, err = h.Rotate(ctx, h.operator, h.admin.Tenant, "db", []byte(token+"2"))
	ok(t, err)
	_, err = h.Rotate(ctx, h.admin, "", "none", []byte(token))
	refused(t, err, fault.NotFound)

	for _, c := range []struct {
		name, value string
		packages    []string
		field       string
	}{
		{"../x", token, nil, "name"},
		{"", token, nil, "name"},
		{"x", "abcde", nil, "value"},
		{"x", " a b c d e \n", nil, "value"},
		{"x", strings.Repeat("a", secrets.MaxValue+1), nil, "value"},
		{"x", token, []string{"report", "report@1.0.0"}, "packages[1]"},
		{"x", token, make([]string, 51), "packages"},
	} {
		_, err := h.Create(ctx, h.admin, "", c.name, []byte(c.value), c.packages)
		field(t, err, c.field)
		if strings.Contains(err.Error(), "abcde") || strings.Contains(err.Error(), token) {
			t.Errorf("the refusal tells the value: %v", err)
		}
	}
}

// An Attempt gets the newest value of secrets of its tenant that are for its package; each hand-over is in the audit,
// and a value is neither there nor in the database's file.
func TestForAttempt(t *testing.T) {
	h := newVault(t)
	ctx := t.Context()
	for name, packages := range map[string][]string{"db": nil, "only": {"report", "acme/tool", "report"}} {
		_, err := h.Create(ctx, h.admin, "", name, []byte(token+name), packages)
		ok(t, err)
	}
	need := secrets.Need{Tenant: h.admin.Tenant, Package: "report", Attempt: "att_1", Names: []string{"db", "only"}}
	values, given, err := h.ForAttempt(ctx, need)
	ok(t, err)
	if string(values["db"]) != token+"db" || string(values["only"]) != token+"only" || given["db"].Version != 1 {
		t.Errorf("got %q, %v", values, given)
	}
	_, err = h.Rotate(ctx, h.admin, "", "db", []byte(token+"new"))
	ok(t, err)
	values, given2, err := h.ForAttempt(ctx, need)
	ok(t, err)
	if string(values["db"]) != token+"new" || given2["db"].Version != 2 {
		t.Errorf("after the rotation: %q, %v", values, given2)
	}
	masker, missing, err := h.Masks(ctx, given)
	ok(t, err)
	if got := string(masker.Mask([]byte(token + "db"))); got != "***" || missing {
		t.Errorf("the value that the first Attempt has: %q, %v", got, missing)
	}

	for _, c := range []struct {
		need  secrets.Need
		field string
	}{
		{secrets.Need{Tenant: h.admin.Tenant, Package: "other", Names: []string{"db", "only"}}, "secrets.only"},
		{secrets.Need{Tenant: h.admin.Tenant, Package: "tool", Names: []string{"only"}}, "secrets.only"},
		{secrets.Need{Tenant: h.admin.Tenant, Names: []string{"only"}}, "secrets.only"},
		{secrets.Need{Tenant: h.admin.Tenant, Package: "report", Names: []string{"db", "none"}}, "secrets.none"},
		{secrets.Need{Tenant: h.stranger.Tenant, Package: "report", Names: []string{"db"}}, "secrets.db"},
		{secrets.Need{Tenant: h.admin.Tenant, Names: make([]string, 101)}, "secrets"},
	} {
		values, _, err := h.ForAttempt(ctx, c.need)
		field(t, err, c.field)
		field(t, h.Check(ctx, c.need.Tenant, c.need.Package, c.need.Names), c.field)
		if len(values) > 0 {
			t.Errorf("%+v got values", c.need)
		}
	}
	_, _, err = h.ForAttempt(ctx, secrets.Need{Names: []string{"db"}})
	refused(t, err, fault.NotFound)
	_, err = h.Scope(ctx, h.admin, "", "only", []string{"other"})
	ok(t, err)
	field(t, h.Check(ctx, need.Tenant, need.Package, need.Names), "secrets.only")
	ok(t, h.Delete(ctx, h.admin, "", "db"))
	_, missing, err = h.Masks(ctx, given)
	if err != nil || !missing {
		t.Errorf("a deleted secret's masks: %v, %v", missing, err)
	}

	lines, err := h.store.ListAudit(ctx, "", 1000)
	ok(t, err)
	var actions []string
	for _, l := range lines {
		if strings.HasPrefix(l.Action, "secret.") {
			actions = append(actions, strings.TrimPrefix(l.Action, "secret."))
		}
		if strings.Contains(l.Target+l.Detail, "SESAME") {
			t.Errorf("the audit tells a value: %+v", l)
		}
	}
	slices.Sort(actions)
	if got := strings.Join(slices.Compact(slices.Clone(actions)), " "); got != "created deleted given rotated scoped" || len(actions) != 2+4+1+1+1 {
		t.Errorf("the audit has %v", actions)
	}
	for _, name := range []string{"x.db", "x.db-wal"} {
		raw, err := os.ReadFile(filepath.Join(h.dir, name))
		if err != nil || bytes.Contains(raw, []byte("SESAME")) {
			t.Errorf("%s holds a value in the clear (%v)", name, err)
		}
	}
}

// A value opens only as what it was sealed: moved to another secret, tenant or version, changed, or without its key, it
// doesn't, and the refusal says nothing of it.
func TestSealedIsBound(t *testing.T) {
	h := newVault(t)
	ctx := t.Context()
	made := map[string]secrets.Secret{}
	for _, name := range []string{"a", "b"} {
		s, err := h.Create(ctx, h.admin, "", name, []byte(token+name), nil)
		ok(t, err)
		made[name] = s
	}
	foreign, err := h.Create(ctx, h.stranger, "", "a", []byte(token+"foreign"), nil)
	ok(t, err)
	v, err := h.store.SealedVersion(ctx, made["a"].ID, 1)
	ok(t, err)
	give := func(p identity.Principal, name string) error {
		_, _, err := h.ForAttempt(ctx, secrets.Need{Tenant: p.Tenant, Attempt: "att_1", Names: []string{name}})
		return err
	}
	for what, moved := range map[string]secrets.Sealed{
		"another secret": {Secret: made["b"].ID, Version: 1, Key: v.Key, Text: v.Text},
		"another tenant": {Secret: foreign.ID, Version: 1, Key: v.Key, Text: v.Text},
		"changed":        {Secret: made["a"].ID, Version: 1, Key: v.Key, Text: append(slices.Clone(v.Text[:len(v.Text)-1]), v.Text[len(v.Text)-1]^1)},
		"cut":            {Secret: made["a"].ID, Version: 1, Key: v.Key, Text: v.Text[:10]},
		"another key":    {Secret: made["a"].ID, Version: 1, Key: "k9", Text: v.Text},
	} {
		_, err := h.store.Reseal(ctx, moved, v.Key)
		ok(t, err)
		p, name := h.admin, "a"
		switch moved.Secret {
		case made["b"].ID:
			name = "b"
		case foreign.ID:
			p = h.stranger
		}
		err = give(p, name)
		refused(t, err, fault.Internal)
		if strings.Contains(err.Error(), "SESAME") {
			t.Errorf("%s: the refusal tells the value: %v", what, err)
		}
		was := v
		_, err = h.store.Reseal(ctx, was, moved.Key)
		ok(t, err)
	}
	ok(t, give(h.admin, "a"))
	// The values of the others were overwritten above and stay closed.
	refused(t, give(h.admin, "b"), fault.Internal)
}

// A rotation of the key seals everything anew, beside rotations in another process, and what another process sealed
// under the old key meanwhile is found by the next rewrap. A server without the key file is told so at its start.
func TestRotateKey(t *testing.T) {
	h := newVault(t)
	ctx := t.Context()
	other := h.open()
	for i := range 7 {
		_, err := h.Create(ctx, h.admin, "", string(rune('a'+i)), []byte(token), nil)
		ok(t, err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 5 {
			if _, err := other.Rotate(ctx, h.admin, "", "a", []byte(token+"x")); err != nil {
				t.Error(err)
			}
		}
	})
	done, err := h.RotateKey(ctx, h.operator)
	ok(t, err)
	wg.Wait()
	if done.Count < 7 || done.Unopened != 0 || !strings.HasPrefix(done.Key, "k2-") {
		t.Errorf("got %+v", done)
	}
	done, err = other.Rewrap(ctx, h.operator)
	ok(t, err)
	if done.Unopened != 0 || !strings.HasPrefix(done.Key, "k2-") {
		t.Errorf("the other process: %+v", done)
	}
	left, err := h.store.SealedUnderOther(ctx, done.Key, "", 0, 100)
	if err != nil || len(left) != 0 {
		t.Errorf("%d values are left under the old key, %v", len(left), err)
	}
	for _, s := range []*secrets.Service{h.Service, other, h.open()} {
		ok(t, s.CheckKeys(ctx))
		values, _, err := s.ForAttempt(ctx, secrets.Need{Tenant: h.admin.Tenant, Attempt: "att_1", Names: []string{"a", "g"}})
		if err != nil || string(values["a"]) != token+"x" || string(values["g"]) != token {
			t.Errorf("got %q, %v", values, err)
		}
	}
	ok(t, os.Rename(h.keyFile(), h.keyFile()+".away"))
	lost := h.open()
	if err := lost.CheckKeys(ctx); err == nil || !strings.Contains(err.Error(), done.Key) {
		t.Errorf("a database without its keys: %v", err)
	}
	rewrapped, err := lost.Rewrap(ctx, h.operator)
	if err != nil || rewrapped.Unopened != 7+4 || rewrapped.Count != 0 { // seven secrets, five versions of one kept
		t.Errorf("got %+v, %v", rewrapped, err)
	}
	ok(t, os.Rename(h.keyFile()+".away", h.keyFile()))
	ok(t, lost.CheckKeys(ctx))
}

// The key file is its owner's only, made once by however many start at once, and refused when others can read it or it
// isn't whole.
func TestKeyring(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secrets.key")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := secrets.OpenKeyring(file); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	left, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	good, err := os.ReadFile(file)
	ok(t, err)
	lines := strings.Split(strings.TrimSpace(string(good)), "\n")
	words := strings.Fields(lines[len(lines)-1])
	for what, text := range map[string]string{
		"empty": "", "only a comment": "# x\n", "one word": "k1\n", "no base64": "k1 ????\n", "short": "k1 YWJj\n",
		"twice": string(good) + lines[len(lines)-1] + "\n", "bad id": "k/1 " + words[1] + "\n", "three words": "k1 " + words[1] + " x\n",
	} {
		ok(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := secrets.OpenKeyring(file)
		if err == nil || strings.Contains(err.Error(), words[1]) {
			t.Errorf("%s: %v", what, err)
		}
	}
	ok(t, os.WriteFile(file, good, 0o600))
	ok(t, os.Chmod(file, 0o640))
	if _, err := secrets.OpenKeyring(file); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that the group can read: %v", err)
	}
	if _, err := secrets.OpenKeyring(filepath.Join(file, "x")); err == nil {
		t.Error("a folder that is none")
	}
}

// What can't be noted is not handed over.
func TestNothingWithoutItsLine(t *testing.T) {
	h := newVault(t)
	_, err := h.Create(t.Context(), h.admin, "", "db", []byte(token), nil)
	ok(t, err)
	ring, err := secrets.OpenKeyring(h.keyFile())
	ok(t, err)
	s, err := secrets.New(secrets.Config{NewID: store.NewID}, unnoted{h.store}, ring, clock.NewSystem())
	ok(t, err)
	values, _, err := s.ForAttempt(t.Context(), secrets.Need{Tenant: h.admin.Tenant, Names: []string{"db"}})
	if !errors.Is(err, errUnnoted) || values != nil {
		t.Errorf("got %v, %v", values, err)
	}
	_, err = secrets.New(secrets.Config{}, h.store, ring, clock.NewSystem())
	field(t, err, "NewID")
}

var errUnnoted = errors.New("the audit can't be written")

type unnoted struct{ secrets.Records }

func (unnoted) NoteGiven(context.Context, []audit.Entry) error { return errUnnoted }
