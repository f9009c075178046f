package artifacts_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/blob"
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

// harbour is an installation on real stores, with a repository "r" of ann's.
type harbour struct {
	*artifacts.Service
	t        *testing.T
	people   *identity.Directory
	store    *store.Store
	blobs    *faulty
	clock    *hand
	operator identity.Principal
	ann      identity.Principal // admin of r
	bob      identity.Principal // of the same tenant, without a role
	ci       identity.Principal // service account, without a role
}

// faulty is the disk with failures to order.
type faulty struct {
	artifacts.Blobs
	sealed func() error // runs after a seal that went well
}

func (f *faulty) Seal(ctx context.Context, id, expected string) (string, int64, error) {
	digest, size, err := f.Blobs.Seal(ctx, id, expected)
	if err == nil && f.sealed != nil {
		err = f.sealed()
	}
	return digest, size, err
}

func newHarbour(t *testing.T) *harbour {
	t.Helper()
	dir := t.TempDir()
	s, err := store.OpenSQLite(t.Context(), filepath.Join(dir, "x.db"))
	ok(t, err)
	disk, err := blob.New(blob.Config{Dir: filepath.Join(dir, "blobs")})
	ok(t, err)
	t.Cleanup(func() { ok(t, errors.Join(s.Close(), disk.Close())) })
	h := &harbour{t: t, store: s, blobs: &faulty{Blobs: disk}, clock: &hand{wall: time.Now().UTC().Truncate(time.Millisecond)}}
	h.people, err = identity.New(identity.Config{NewID: store.NewID}, s, h.clock)
	ok(t, err)
	h.Service, err = artifacts.New(artifacts.Config{NewID: store.NewID, UploadsPerCaller: 5}, s, h.blobs, h.people, h.clock)
	ok(t, err)
	var secret string
	_, err = h.people.Bootstrap(t.Context(), func(s string) error { secret = s; return nil })
	ok(t, err)
	h.operator, err = h.people.Authenticate(t.Context(), secret)
	ok(t, err)
	h.ann, h.bob, h.ci = h.account(identity.User, "ann"), h.account(identity.User, "bob"), h.account(identity.Service, "ci")
	_, err = h.CreateRepository(t.Context(), h.ann, "r")
	ok(t, err)
	return h
}

func (h *harbour) account(kind identity.Kind, name string) identity.Principal {
	h.t.Helper()
	a, err := h.people.CreateAccount(h.t.Context(), h.operator, identity.NewAccount{Kind: kind, Name: name})
	ok(h.t, err)
	return a.Principal()
}

func (h *harbour) grant(p identity.Principal, role identity.Role) {
	h.t.Helper()
	ok(h.t, h.people.SetGrant(h.t.Context(), h.ann, identity.Grant{Repository: "r", Account: p.ID, Role: role}))
}

func (h *harbour) put(path, text string) artifacts.File {
	h.t.Helper()
	f, _, err := h.Put(h.t.Context(), h.ann, "r", path, "", strings.NewReader(text), artifacts.PutOptions{})
	ok(h.t, err)
	return f
}

func (h *harbour) content(f artifacts.File) string {
	h.t.Helper()
	file, err := h.Open(h.t.Context(), f)
	ok(h.t, err)
	text, err := io.ReadAll(file)
	ok(h.t, errors.Join(err, file.Close()))
	return string(text)
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

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func TestPutAndRead(t *testing.T) {
	h := newHarbour(t)
	ctx := t.Context()
	f, created, err := h.Put(ctx, h.ann, "r", "a/b.txt", "text/plain", strings.NewReader("one"), artifacts.PutOptions{Size: 3, Digest: digestOf("one")})
	ok(t, err)
	want := artifacts.File{
		Repository: "r", Path: "a/b.txt", Revision: 1, Digest: digestOf("one"), Size: 3, MediaType: "text/plain",
		CreatedAt: h.clock.Wall(), CreatedBy: h.ann.ID,
	}
	if f != want || !created {
		t.Fatalf("got %+v, %v", f, created)
	}
	got, err := h.Stat(ctx, h.ann, "r", "a/b.txt")
	ok(t, err)
	if got != want || h.content(got) != "one" {
		t.Fatalf("got %+v", got)
	}
	if second := h.put("a/b.txt", "two"); second.Revision != 2 || second.MediaType != "application/octet-stream" {
		t.Fatalf("got %+v", second)
	}
	if h.content(f) != "one" {
		t.Error("an earlier revision changed")
	}
	byDigest, err := h.StatDigest(ctx, h.ann, "r", digestOf("one"))
	ok(t, err)
	if byDigest != want {
		t.Errorf("got %+v", byDigest)
	}
	ok(t, h.Delete(ctx, h.ann, "r", "a/b.txt", artifacts.PutOptions{}))
	_, err = h.Stat(ctx, h.ann, "r", "a/b.txt")
	refused(t, err, fault.NotFound)
	_, err = h.StatDigest(ctx, h.ann, "r", digestOf("one"))
	refused(t, err, fault.NotFound)
	refused(t, h.Delete(ctx, h.ann, "r", "a/b.txt", artifacts.PutOptions{}), fault.NotFound)
	if h.content(f) != "one" {
		t.Error("who has the file open keeps it")
	}
	all, next, err := h.Revisions(ctx, h.ann, "r", "a/b.txt", 0, 2)
	ok(t, err)
	if len(all) != 2 || next != 2 || !all[0].Deleted {
		t.Errorf("%+v, %d", all, next)
	}
	all, next, err = h.Revisions(ctx, h.ann, "r", "a/b.txt", next, 2)
	ok(t, err)
	if len(all) != 1 || next != 0 || all[0] != want {
		t.Errorf("%+v, %d", all, next)
	}
}

func TestPutRefusals(t *testing.T) {
	h := newHarbour(t)
	put := func(path, media, text string, o artifacts.PutOptions) error {
		_, _, err := h.Put(t.Context(), h.ann, "r", path, media, strings.NewReader(text), o)
		return err
	}
	field(t, put("../x", "", "x", artifacts.PutOptions{}), "path")
	field(t, put("x", "text", "x", artifacts.PutOptions{}), "mediaType")
	field(t, put("x", "a/b\r\nX: y", "x", artifacts.PutOptions{}), "mediaType")
	field(t, put("x", "", "x", artifacts.PutOptions{Digest: "md5:1"}), "digest")
	field(t, put("x", "", "x", artifacts.PutOptions{IfMatch: "abc"}), "If-Match")
	refused(t, put("x", "", "x", artifacts.PutOptions{Digest: digestOf("y")}), fault.IntegrityMismatch)
	refused(t, put("x", "", "x", artifacts.PutOptions{Size: 2}), fault.InvalidInput)
	_, _, err := h.Put(t.Context(), h.ann, "r", "x", "", iotest.ErrReader(errors.New("gone")), artifacts.PutOptions{})
	refused(t, err, fault.InvalidInput)
	_, err = h.Stat(t.Context(), h.ann, "r", "x")
	refused(t, err, fault.NotFound)
}

func TestConditions(t *testing.T) {
	h := newHarbour(t)
	put := func(text, match, none string) error {
		_, _, err := h.Put(t.Context(), h.ann, "r", "f", "", strings.NewReader(text), artifacts.PutOptions{IfMatch: match, IfNoneMatch: none})
		return err
	}
	tag := func(text string) string { return artifacts.File{Digest: digestOf(text)}.ETag() }
	refused(t, put("1", "*", ""), fault.PreconditionFails)
	refused(t, put("1", tag("1"), ""), fault.PreconditionFails)
	ok(t, put("1", "", "*"))
	refused(t, put("2", "", "*"), fault.PreconditionFails)
	refused(t, put("2", "", `"x", W/`+tag("1")), fault.PreconditionFails)
	refused(t, put("2", "W/"+tag("1"), ""), fault.PreconditionFails)
	refused(t, put("2", tag("0"), ""), fault.PreconditionFails)
	ok(t, put("2", `"x" , `+tag("1"), ""))
	ok(t, put("3", "*", tag("1")))
	refused(t, h.Delete(t.Context(), h.ann, "r", "f", artifacts.PutOptions{IfMatch: tag("2")}), fault.PreconditionFails)
	ok(t, h.Delete(t.Context(), h.ann, "r", "f", artifacts.PutOptions{IfMatch: tag("3")}))
	ok(t, put("4", "", "*"))
}

// TestNotYours: without a role nothing is there; a lower role is told what it lacks.
func TestNotYours(t *testing.T) {
	h := newHarbour(t)
	ctx := t.Context()
	f := h.put("f", "x")
	link, token, err := h.CreateLink(ctx, h.ann, "r", "f", time.Time{})
	ok(t, err)
	_, err = h.StartUpload(ctx, h.ann, artifacts.NewUpload{Repository: "r", Path: "u", Size: 1})
	ok(t, err)
	calls := func(p identity.Principal) map[string]error {
		all := map[string]error{}
		_, all["read stat"] = h.Stat(ctx, p, "r", "f")
		_, all["read digest"] = h.StatDigest(ctx, p, "r", f.Digest)
		_, _, all["read list"] = h.List(ctx, p, "r", "", "", 0)
		_, _, all["read revisions"] = h.Revisions(ctx, p, "r", "f", 0, 0)
		_, all["read repository"] = h.Repository(ctx, p, "r")
		_, _, all["write put"] = h.Put(ctx, p, "r", "f", "", strings.NewReader("x"), artifacts.PutOptions{})
		_, all["write upload"] = h.StartUpload(ctx, p, artifacts.NewUpload{Repository: "r", Path: "f", Size: 1})
		_, _, all["write link"] = h.CreateLink(ctx, p, "r", "f", time.Time{})
		_, _, all["write links"] = h.ListLinks(ctx, p, "r", "", 0)
		all["write revoke"] = h.RevokeLink(ctx, p, "r", link.ID)
		all["admin delete"] = h.DeleteRepository(ctx, p, "r")
		return all
	}
	holder, _, err := h.ResolveLink(ctx, token)
	ok(t, err)
	for _, p := range []identity.Principal{h.bob, h.ci, holder, {}} {
		for name, err := range calls(p) {
			if !fault.Is(err, fault.NotFound) {
				t.Errorf("%s, %s: %v", p.Name, name, err)
			}
		}
		page, _, err := h.ListRepositories(ctx, p, "", 0)
		if err != nil || len(page) != 0 {
			t.Errorf("%s lists %v, %v", p.Name, page, err)
		}
	}
	h.grant(h.ci, identity.Read)
	for name, err := range calls(h.ci) {
		if strings.HasPrefix(name, "read") != (err == nil) || err != nil && !fault.Is(err, fault.Forbidden) {
			t.Errorf("reader, %s: %v", name, err)
		}
	}
	page, _, err := h.ListRepositories(ctx, h.ci, "", 0)
	ok(t, err)
	if len(page) != 1 || page[0].Role != identity.Read {
		t.Errorf("got %v", page)
	}
}

func TestRepositories(t *testing.T) {
	h := newHarbour(t)
	ctx := t.Context()
	_, err := h.CreateRepository(ctx, h.ci, "x")
	refused(t, err, fault.Forbidden)
	_, err = h.CreateRepository(ctx, h.ann, "X")
	field(t, err, "name")
	_, err = h.CreateRepository(ctx, h.bob, "r")
	refused(t, err, fault.AlreadyExists)
	for _, name := range []string{"a", "b", "c"} {
		_, err = h.CreateRepository(ctx, h.bob, name)
		ok(t, err)
	}
	page, next, err := h.ListRepositories(ctx, h.bob, "", 2)
	ok(t, err)
	if len(page) != 2 || next != "b" || page[0].Role != identity.Admin {
		t.Errorf("%v, %q", page, next)
	}
	page, next, err = h.ListRepositories(ctx, h.operator, "b", 2)
	ok(t, err)
	if len(page) != 2 || next != "" || page[1].Name != "r" || page[1].Role != identity.Admin {
		t.Errorf("%v, %q", page, next)
	}
	h.put("f", "x")
	refused(t, h.DeleteRepository(ctx, h.ann, "r"), fault.Conflict)
	ok(t, h.DeleteRepository(ctx, h.bob, "a"))
}

func TestList(t *testing.T) {
	h := newHarbour(t)
	var want []string
	for i := range 7 {
		want = append(want, h.put(fmt.Sprintf("d/%d", i), "x").Path)
	}
	h.put("e", "x")
	var got []string
	for after := ""; ; {
		page, next, err := h.List(t.Context(), h.ann, "r", "d/", after, 3)
		ok(t, err)
		for _, f := range page {
			got = append(got, f.Path)
		}
		if after = next; after == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	_, _, err := h.List(t.Context(), h.ann, "r", "a\x00", "", 0)
	field(t, err, "prefix")
	_, _, err = h.List(t.Context(), h.ann, "r", "", "\xff", 0)
	field(t, err, "after")
}

// TestLinks: a link is a principal of its own, release at most, for one revision (D-4.1).
func TestLinks(t *testing.T) {
	h := newHarbour(t)
	ctx := t.Context()
	old := h.put("f", "old")
	l, token, err := h.CreateLink(ctx, h.ann, "r", "f", h.clock.Wall().Add(time.Hour))
	ok(t, err)
	forever, second, err := h.CreateLink(ctx, h.ann, "r", "f", time.Time{})
	ok(t, err)
	if len(token) != 43 || token == second || strings.Contains(l.Hash, token) {
		t.Errorf("tokens %q, %q", token, second)
	}
	h.put("f", "new")
	p, f, err := h.ResolveLink(ctx, token)
	ok(t, err)
	if f != old || p.Kind != identity.Link || p.ID != "link:"+l.ID || p.Tenant != h.ann.Tenant || p.Ceiling != class.Release || p.Operator {
		t.Errorf("got %+v, %+v", p, f)
	}
	for _, bad := range []string{"", "x", token[:42], token + "A", token[:42] + "!", l.ID, l.Hash} {
		_, _, err := h.ResolveLink(ctx, bad)
		refused(t, err, fault.NotFound)
	}
	h.clock.advance(time.Hour)
	_, _, err = h.ResolveLink(ctx, token)
	refused(t, err, fault.NotFound)
	_, _, err = h.ResolveLink(ctx, second)
	ok(t, err)
	ok(t, h.RevokeLink(ctx, h.ann, "r", forever.ID))
	_, _, err = h.ResolveLink(ctx, second)
	refused(t, err, fault.NotFound)
	refused(t, h.RevokeLink(ctx, h.ann, "r", "nothing"), fault.NotFound)

	page, next, err := h.ListLinks(ctx, h.ann, "r", "", 1)
	ok(t, err)
	if len(page) != 1 || next == "" {
		t.Errorf("%v, %q", page, next)
	}
	_, _, err = h.CreateLink(ctx, h.ann, "r", "f", h.clock.Wall())
	field(t, err, "expiresAt")
	_, _, err = h.CreateLink(ctx, h.ann, "r", "nothing", time.Time{})
	refused(t, err, fault.NotFound)
}

func TestConfig(t *testing.T) {
	id := func() string { return "x" }
	for name, c := range map[string]artifacts.Config{
		"NewID": {}, "UploadLife": {NewID: id, UploadLife: time.Second},
		"UploadsPerCaller": {NewID: id, UploadsPerCaller: -1}, "SweepEvery": {NewID: id, SweepEvery: time.Millisecond},
	} {
		_, err := artifacts.New(c, nil, nil, nil, nil)
		field(t, err, name)
	}
}
