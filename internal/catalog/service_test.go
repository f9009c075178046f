package catalog_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/blob"
	"github.com/roadstead/roadstead/internal/catalog"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/store"
)

// shop is a catalog on real stores, with two tenants.
type shop struct {
	*catalog.Service
	t                  *testing.T
	files              *artifacts.Service
	store              *store.Store
	people             *identity.Directory
	operator           identity.Principal
	ann, bob, admin    identity.Principal // of acme; admin administers it
	stranger, wanderer identity.Principal // of another tenant, its admin; a link
}

var errLinks = fault.Invalid("archive", "has a link")

func newShop(t *testing.T) *shop {
	t.Helper()
	dir, ctx := t.TempDir(), t.Context()
	s, err := store.OpenSQLite(ctx, filepath.Join(dir, "x.db"))
	ok(t, err)
	disk, err := blob.New(blob.Config{Dir: filepath.Join(dir, "blobs")})
	ok(t, err)
	t.Cleanup(func() { ok(t, errors.Join(s.Close(), disk.Close())) })
	clk := clock.NewSystem()
	h := &shop{t: t, store: s}
	h.people, err = identity.New(identity.Config{NewID: store.NewID}, s, clk)
	ok(t, err)
	h.files, err = artifacts.New(artifacts.Config{NewID: store.NewID}, s, disk, h.people, clk)
	ok(t, err)
	check := func(r io.Reader) error {
		raw, err := io.ReadAll(r)
		if err == nil && bytes.Contains(raw, []byte("evil")) {
			err = errLinks
		}
		return err
	}
	h.Service, err = catalog.New(catalog.Config{NewID: store.NewID, CheckArchive: check, CheckImage: check, MaxArchive: 1 << 20}, s, h.files, clk)
	ok(t, err)
	var key string
	_, err = h.people.Bootstrap(ctx, func(secret string) error { key = secret; return nil })
	ok(t, err)
	h.operator, err = h.people.Authenticate(ctx, key)
	ok(t, err)
	acme, err := h.people.CreateTenant(ctx, h.operator, "acme")
	ok(t, err)
	other, err := h.people.CreateTenant(ctx, h.operator, "other")
	ok(t, err)
	h.ann, h.bob, h.admin = h.account(acme.ID, "ann"), h.account(acme.ID, "bob"), h.account(acme.ID, "admin")
	h.admin.Role = identity.TenantAdmin
	h.stranger = h.account(other.ID, "eve")
	h.stranger.Role = identity.TenantAdmin
	h.wanderer = h.ann
	h.wanderer.Kind = identity.Link
	return h
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

func (h *shop) account(tenant, name string) identity.Principal {
	h.t.Helper()
	a, err := h.people.CreateAccount(h.t.Context(), h.operator, identity.NewAccount{Tenant: tenant, Kind: identity.User, Name: name})
	ok(h.t, err)
	return a.Principal()
}

// pack makes a tar.gz of the manifest and one more file.
func pack(t *testing.T, manifest, more string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, f := range []struct{ name, text string }{{"./main.py", more}, {"./" + api.ManifestFile, manifest}} {
		if f.text == "" {
			continue
		}
		ok(t, w.WriteHeader(&tar.Header{Name: f.name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(f.text))}))
		_, err := w.Write([]byte(f.text))
		ok(t, err)
	}
	ok(t, errors.Join(w.Close(), z.Close()))
	return out.Bytes()
}

// upload puts bytes into the caller's inbox.
func (h *shop) upload(p identity.Principal, body []byte) api.PublishPackage {
	h.t.Helper()
	inbox, err := h.Inbox(h.t.Context(), p, "")
	ok(h.t, err)
	sum := sha256.Sum256(body)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	_, _, err = h.files.Put(h.t.Context(), p, inbox, digest[7:], "", bytes.NewReader(body), artifacts.PutOptions{})
	ok(h.t, err)
	return api.PublishPackage{Repository: inbox, Digest: digest}
}

func (h *shop) publish(p identity.Principal, manifest, more, version string) catalog.Version {
	h.t.Helper()
	in := h.upload(p, pack(h.t, manifest, more))
	in.Version = version
	v, created, err := h.Publish(h.t.Context(), p, in)
	ok(h.t, err)
	if !created {
		h.t.Fatal("not created")
	}
	return v
}

const small = `{"name":"report","version":"1.0.0","entry":["python3","main.py"]}`

// A version is published once: the same bytes again are no error, others under the same version are a conflict.
// Every member may publish, without a grant of anybody's.
func TestPublish(t *testing.T) {
	h := newShop(t)
	ctx := t.Context()
	first := h.publish(h.ann, small, "print(1)", "")
	if first.Ref() != "report@1.0.0" || first.State != catalog.Active {
		t.Errorf("got %+v", first)
	}
	m, err := first.Manifest()
	ok(t, err)
	if m.Entry[1] != "main.py" || m.Resources.Slots != 1 {
		t.Errorf("got %+v", m)
	}
	v, created, err := h.Publish(ctx, h.bob, h.upload(h.bob, pack(t, small, "print(1)")))
	ok(t, err)
	if created || v.CreatedBy != h.ann.ID {
		t.Errorf("a second publish of the same: %v, %+v", created, v)
	}
	_, _, err = h.Publish(ctx, h.bob, h.upload(h.bob, pack(t, small, "print(2)")))
	refused(t, err, fault.Conflict)
	h.publish(h.bob, small, "print(2)", "1.1.0")

	for _, c := range []struct {
		manifest, more, version string
		field                   string
	}{
		{"", "x", "", api.ManifestFile},
		{`{"name":"report","entry":["x"]}`, "x", "", "version"},
		{small, "x", "one", "version"},
		{`{"name":"report","version":"3.0.0","entry":["x"],"kind":"image"}`, "x", "", "kind"},
		{`{"name":"report","version":"3.0.0","entry":["x"],"resources":{"slots":-1}}`, "x", "", "resources.slots"},
	} {
		in := h.upload(h.ann, pack(t, c.manifest, c.more))
		in.Version = c.version
		_, _, err := h.Publish(ctx, h.ann, in)
		wantField(t, c.manifest, err, c.field)
	}
	_, _, err = h.Publish(ctx, h.ann, h.upload(h.ann, []byte("evil")))
	if !errors.Is(err, errLinks) {
		t.Errorf("an archive that the check refuses: %v", err)
	}
	_, _, err = h.Publish(ctx, h.ann, h.upload(h.ann, bytes.Repeat([]byte("x"), 2<<20)))
	refused(t, err, fault.TooLarge)
	gone, cancel := context.WithCancel(ctx)
	in := h.upload(h.ann, pack(t, small, "y"))
	cancel()
	if _, _, err = h.Publish(gone, h.ann, in); !errors.Is(err, context.Canceled) {
		t.Errorf("a publisher that went away: %v", err)
	}
}

// An image brings its manifest along.
func TestPublishImage(t *testing.T) {
	h := newShop(t)
	ctx := t.Context()
	in := h.upload(h.ann, []byte("an image layout"))
	m := catalog.Manifest{Name: "tool", Version: "1.0.0", Kind: "image", Image: "here.tar"}
	in.Manifest = &m
	v, created, err := h.Publish(ctx, h.ann, in)
	ok(t, err)
	stored, err := v.Manifest()
	ok(t, err)
	if !created || v.Kind != catalog.Image || stored.Image != "" {
		t.Errorf("got %v, %+v", created, v)
	}
	m.Class = "build"
	_, _, err = h.Publish(ctx, h.ann, in)
	refused(t, err, fault.Conflict)
	m.Class, m.Resources.Slots = "", -1
	_, _, err = h.Publish(ctx, h.ann, in)
	wantField(t, "slots", err, "manifest.resources.slots")
	m.Kind = "archive"
	_, _, err = h.Publish(ctx, h.ann, in)
	wantField(t, "an archive with a manifest beside it", err, "manifest")
	other := h.upload(h.ann, pack(t, `{"name":"tool","version":"2.0.0","entry":["x"]}`, "x"))
	_, _, err = h.Publish(ctx, h.ann, other)
	refused(t, err, fault.Conflict) // a name keeps its kind
}

// To another tenant a private package is not there: not by name, not by digest, not by publishing its digest. Shown to
// all it resolves by its tenant's name; hidden again its pinned Runs don't start.
func TestPrivate(t *testing.T) {
	h := newShop(t)
	ctx := t.Context()
	v := h.publish(h.ann, small, "print(1)", "")
	for _, p := range []identity.Principal{h.stranger, h.wanderer, {}} {
		for _, ref := range []string{"report", "acme/report", "acme/report@1.0.0", h.ann.Tenant + "/report"} {
			for what, err := range map[string]error{
				"package":  second(h.Package(ctx, p, ref)),
				"version":  second(h.Version(ctx, p, ref)),
				"versions": third(h.Versions(ctx, p, ref, "", 0)),
				"resolve":  second(h.Resolve(ctx, p, ref)),
				"state":    second(h.SetState(ctx, p, strings.TrimSuffix(ref, "@1.0.0")+"@1.0.0", catalog.Yanked, "")),
				"public":   second(h.SetPublic(ctx, p, ref, 1, true)),
			} {
				if !fault.Is(err, fault.NotFound) {
					t.Errorf("%s of %s for %s: %v", what, ref, p.Name, err)
				}
			}
		}
		refused(t, second(h.Inbox(ctx, p, h.ann.Tenant)), fault.NotFound)
		_, _, err := h.Packages(ctx, p, catalog.Filter{Tenant: h.ann.Tenant}, false, "", 0)
		refused(t, err, fault.NotFound)
		in := api.PublishPackage{Repository: "packages-acme", Digest: v.Digest}
		_, _, err = h.Publish(ctx, p, in)
		refused(t, err, fault.NotFound)
		in.Tenant = h.ann.Tenant
		_, _, err = h.Publish(ctx, p, in)
		refused(t, err, fault.NotFound)
	}
	refused(t, h.Usable(ctx, h.stranger.Tenant, v.Digest), fault.NotFound)
	refused(t, h.Usable(ctx, "", v.Digest), fault.NotFound)
	refused(t, second(h.Open(ctx, h.stranger.Tenant, v.Digest)), fault.NotFound)
	ok(t, h.Usable(ctx, h.ann.Tenant, v.Digest))
	file, err := h.Open(ctx, h.ann.Tenant, v.Digest)
	ok(t, err)
	ok(t, file.Close())

	refused(t, second(h.SetPublic(ctx, h.ann, "report", 1, true)), fault.Forbidden)
	shown, err := h.SetPublic(ctx, h.admin, "report", 1, true)
	ok(t, err)
	refused(t, second(h.SetPublic(ctx, h.admin, "report", 1, false)), fault.RevisionMismatch)
	got, err := h.Resolve(ctx, h.stranger, "acme/report")
	ok(t, err)
	if here, there := got.NameIn(h.ann.Tenant), got.NameIn(h.stranger.Tenant); here != "report" || there != "acme/report" {
		t.Errorf("its name is %s, elsewhere %s", here, there)
	}
	refused(t, second(h.Resolve(ctx, h.stranger, "report")), fault.NotFound) // a name alone is never another tenant's
	ok(t, h.Usable(ctx, h.stranger.Tenant, v.Digest))
	page, _, err := h.Packages(ctx, h.stranger, catalog.Filter{}, true, "", 0)
	if err != nil || len(page) != 1 || page[0].TenantName != "acme" {
		t.Errorf("public packages: %+v, %v", page, err)
	}
	refused(t, second(h.SetState(ctx, h.stranger, "acme/report@1.0.0", catalog.Yanked, "")), fault.Forbidden)
	refused(t, second(h.SetPublic(ctx, h.stranger, "acme/report", 2, false)), fault.Forbidden)
	_, err = h.SetPublic(ctx, h.operator, "acme/report", shown.Revision, false)
	ok(t, err)
	refused(t, h.Usable(ctx, h.stranger.Tenant, v.Digest), fault.NotFound)
	// An operator sees it, and yet gets no private package of a tenant for Runs of the own.
	_, err = h.Version(ctx, h.operator, "acme/report")
	ok(t, err)
	refused(t, second(h.Resolve(ctx, h.operator, "acme/report")), fault.NotFound)
}

func second[T any](_ T, err error) error        { return err }
func third[T, U any](_ T, _ U, err error) error { return err }

// A yanked version is resolved no more and still starts where it was pinned; the name alone means the highest that is
// left.
func TestYank(t *testing.T) {
	h := newShop(t)
	ctx := t.Context()
	h.publish(h.ann, small, "1", "")
	v := h.publish(h.ann, small, "2", "1.10.0")
	h.publish(h.bob, small, "3", "1.9.0")
	h.publish(h.bob, small, "4", "2.0.0-rc.1")
	latest := func() string {
		t.Helper()
		got, err := h.Resolve(ctx, h.bob, "report")
		ok(t, err)
		return got.Version
	}
	if got := latest(); got != "1.10.0" {
		t.Errorf("latest is %s", got)
	}
	refused(t, second(h.SetState(ctx, h.bob, "report@1.10.0", catalog.Yanked, "")), fault.Forbidden)
	wantField(t, "no version", second(h.SetState(ctx, h.ann, "report", catalog.Yanked, "")), "package")
	wantField(t, "odd state", second(h.SetState(ctx, h.ann, "report@1.0.0", "gone", "")), "state")
	wantField(t, "long note", second(h.SetState(ctx, h.ann, "report@1.0.0", catalog.Yanked, strings.Repeat("x", 501))), "note")
	_, err := h.SetState(ctx, h.ann, "report@1.10.0", catalog.Yanked, "it loses money")
	ok(t, err)
	if got := latest(); got != "1.9.0" {
		t.Errorf("latest is %s", got)
	}
	_, err = h.Resolve(ctx, h.bob, "report@1.10.0")
	refused(t, err, fault.Conflict)
	if !strings.Contains(fault.From(err).Message, "it loses money") {
		t.Errorf("the note is not told: %v", err)
	}
	ok(t, h.Usable(ctx, h.ann.Tenant, v.Digest))
	looked, err := h.Version(ctx, h.bob, "report@1.10.0")
	if err != nil || looked.State != catalog.Yanked || looked.Text == "" {
		t.Errorf("to look at: %+v, %v", looked, err)
	}
	_, err = h.SetState(ctx, h.admin, "report@1.10.0", catalog.Active, "")
	ok(t, err)
	if got := latest(); got != "1.10.0" {
		t.Errorf("latest is %s", got)
	}
	var seen []string
	for after := ""; ; {
		page, next, err := h.Versions(ctx, h.bob, "report", after, 1)
		ok(t, err)
		seen = append(seen, page[0].Version)
		if after = next; next == "" {
			break
		}
	}
	if got := strings.Join(seen, " "); got != "2.0.0-rc.1 1.10.0 1.9.0 1.0.0" {
		t.Errorf("versions: %s", got)
	}
}

func TestConfig(t *testing.T) {
	check := func(io.Reader) error { return nil }
	for _, c := range []struct {
		cfg   catalog.Config
		field string
	}{
		{catalog.Config{CheckArchive: check, CheckImage: check}, "NewID"},
		{catalog.Config{NewID: store.NewID, CheckImage: check}, "CheckArchive"},
		{catalog.Config{NewID: store.NewID, CheckArchive: check}, "CheckImage"},
		{catalog.Config{NewID: store.NewID, CheckArchive: check, CheckImage: check, MaxArchive: -1}, "MaxArchive"},
		{catalog.Config{NewID: store.NewID, CheckArchive: check, CheckImage: check, Checks: -1}, "Checks"},
	} {
		_, err := catalog.New(c.cfg, nil, nil, clock.NewSystem())
		wantField(t, c.field, err, c.field)
	}
}

func TestParseRef(t *testing.T) {
	for _, c := range []struct {
		text string
		want catalog.Ref
		ok   bool
	}{
		{"report", catalog.Ref{Name: "report"}, true},
		{"report@1.0.0", catalog.Ref{Name: "report", Version: "1.0.0"}, true},
		{"acme/report@1.0.0-rc.1", catalog.Ref{Tenant: "acme", Name: "report", Version: "1.0.0-rc.1"}, true},
		{"", catalog.Ref{}, false}, {"/report", catalog.Ref{}, false}, {"report@", catalog.Ref{}, false}, {"report@latest", catalog.Ref{}, false},
		{"a/b/c", catalog.Ref{}, false}, {"Report", catalog.Ref{}, false}, {"report@1.0.0@1.0.0", catalog.Ref{}, false},
	} {
		got, err := catalog.ParseRef("package", c.text)
		if c.ok && (err != nil || got != c.want) {
			t.Errorf("%q: %+v, %v", c.text, got, err)
		}
		if !c.ok {
			wantField(t, c.text, err, "package")
		}
	}
}
