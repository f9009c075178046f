package api_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/blob"
	"github.com/roadstead/roadstead/internal/catalog"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/secrets"
	jsonapi "github.com/roadstead/roadstead/internal/serve/api"
	"github.com/roadstead/roadstead/internal/serve/request"
	"github.com/roadstead/roadstead/internal/store"
)

// yard is the JSON side over real stores. Whoever calls is who it says: the edge is not part of it.
type yard struct {
	t                    *testing.T
	mux                  *http.ServeMux
	files                *artifacts.Service
	operator, ann, other identity.Principal // ann is a member of the operator's tenant
}

func newYard(t *testing.T) *yard {
	t.Helper()
	dir, ctx := t.TempDir(), t.Context()
	s, err := store.OpenSQLite(ctx, filepath.Join(dir, "x.db"))
	ok(t, err)
	disk, err := blob.New(blob.Config{Dir: filepath.Join(dir, "blobs")})
	ok(t, err)
	t.Cleanup(func() { ok(t, errors.Join(s.Close(), disk.Close())) })
	clk, y := clock.NewSystem(), &yard{t: t, mux: http.NewServeMux()}
	people, err := identity.New(identity.Config{NewID: store.NewID}, s, clk)
	ok(t, err)
	y.files, err = artifacts.New(artifacts.Config{NewID: store.NewID}, s, disk, people, clk)
	ok(t, err)
	check := func(r io.Reader) error { _, err := io.Copy(io.Discard, r); return err }
	packages, err := catalog.New(catalog.Config{NewID: store.NewID, CheckArchive: check, CheckImage: check}, s, y.files, clk)
	ok(t, err)
	ring, err := secrets.OpenKeyring(filepath.Join(dir, "secrets.key"))
	ok(t, err)
	vault, err := secrets.New(secrets.Config{NewID: store.NewID}, s, ring, clk)
	ok(t, err)
	_, err = jsonapi.Register(func(pattern string, h http.HandlerFunc) { y.mux.Handle(pattern, h) }, "test", jsonapi.Services{Accounts: people, Packages: packages, Secrets: vault})
	ok(t, err)
	var key string
	_, err = people.Bootstrap(ctx, func(secret string) error { key = secret; return nil })
	ok(t, err)
	y.operator, err = people.Authenticate(ctx, key)
	ok(t, err)
	a, err := people.CreateAccount(ctx, y.operator, identity.NewAccount{Kind: identity.User, Name: "ann"})
	ok(t, err)
	y.ann = a.Principal()
	tenant, err := people.CreateTenant(ctx, y.operator, "other")
	ok(t, err)
	a, err = people.CreateAccount(ctx, y.operator, identity.NewAccount{Tenant: tenant.ID, Kind: identity.User, Name: "eve"})
	ok(t, err)
	y.other = a.Principal()
	return y
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// call makes one call and fails unless the status is the wanted one. The answer's text is returned too.
func (y *yard) call(who identity.Principal, method, path string, in any, status int, out any) string {
	y.t.Helper()
	var body io.Reader = http.NoBody
	if in != nil {
		raw, err := json.Marshal(in)
		ok(y.t, err)
		body = bytes.NewReader(raw)
	}
	r := httptest.NewRequest(method, "/api/v1"+path, body)
	r.Header.Set("Content-Type", "application/json")
	r = r.WithContext(request.With(y.t.Context(), &request.Info{ID: "req", Caller: who}))
	w := httptest.NewRecorder()
	y.mux.ServeHTTP(w, r)
	text := w.Body.String()
	if w.Code != status {
		y.t.Fatalf("%s %s: %d, want %d: %s", method, path, w.Code, status, text)
	}
	if out != nil {
		ok(y.t, json.Unmarshal(w.Body.Bytes(), out))
	}
	return text
}

// upload puts a tar with the manifest into the inbox.
func (y *yard) upload(who identity.Principal, manifest string) api.PublishPackage {
	y.t.Helper()
	var inbox api.PackageInbox
	y.call(who, "POST", "/packages/inbox", api.PackageInboxQuery{}, 201, &inbox)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	ok(y.t, w.WriteHeader(&tar.Header{Name: api.ManifestFile, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(manifest))}))
	_, err := w.Write([]byte(manifest))
	ok(y.t, errors.Join(err, w.Close()))
	sum := sha256.Sum256(out.Bytes())
	digest := "sha256:" + hex.EncodeToString(sum[:])
	_, _, err = y.files.Put(y.t.Context(), who, inbox.Repository, digest[7:], "", &out, artifacts.PutOptions{})
	ok(y.t, err)
	return api.PublishPackage{Repository: inbox.Repository, Digest: digest}
}

// A package's way over the API: 201, the same again 200, other bytes 409; listed, looked at, withdrawn; to another tenant
// not there until it is shown.
func TestPackages(t *testing.T) {
	y := newYard(t)
	in := y.upload(y.ann, `{"name":"report","version":"1.0.0","entry":["run"],"inputs":[{"name":"n","type":"int","default":3}]}`)
	var v api.PackageVersion
	y.call(y.ann, "POST", "/packages", in, 201, &v)
	if v.Package != "report" || v.Manifest == nil || string(v.Manifest.Inputs[0].Default) != "3" {
		t.Errorf("got %+v", v)
	}
	y.call(y.ann, "POST", "/packages", in, 200, nil)
	y.call(y.ann, "POST", "/packages", y.upload(y.ann, `{"name":"report","version":"1.0.0","entry":["walk"]}`), 409, nil)
	if text := y.call(y.ann, "POST", "/packages", y.upload(y.ann, `{"name":"x","version":"1.0.0","entry":["a"],"colour":1}`), 400, nil); !strings.Contains(text, `"colour"`) {
		t.Errorf("the field is not named: %s", text)
	}
	in.Version = "1.1.0"
	y.call(y.ann, "POST", "/packages", in, 201, nil)

	var page api.Page[api.Package]
	y.call(y.ann, "GET", "/packages?kind=archive", nil, 200, &page)
	if len(page.Items) != 1 || page.Items[0].Latest != "1.1.0" {
		t.Errorf("got %+v", page)
	}
	var versions api.Page[api.PackageVersion]
	y.call(y.ann, "GET", "/packages/report/versions?limit=1", nil, 200, &versions)
	if len(versions.Items) != 1 || versions.Next != "1.1.0" || versions.Items[0].Manifest != nil {
		t.Errorf("got %+v", versions)
	}
	y.call(y.ann, "PUT", "/packages/report/versions/1.1.0/state", api.PackageVersionState{State: "yanked", Note: "wrong"}, 200, &v)
	if v.State != "yanked" || v.Note != "wrong" {
		t.Errorf("got %+v", v)
	}
	y.call(y.ann, "GET", "/packages/report/versions/latest", nil, 200, &v)
	if v.Version != "1.0.0" {
		t.Errorf("latest is %s", v.Version)
	}
	y.call(y.ann, "PUT", "/packages/report/versions/1.1.0/state", api.PackageVersionState{State: "gone"}, 400, nil)

	show := true
	y.call(y.ann, "PATCH", "/packages/report", api.PackageChange{ExpectedRevision: 1, Public: &show}, 403, nil)
	y.call(y.operator, "PATCH", "/packages/report", api.PackageChange{ExpectedRevision: 1}, 400, nil)
	foreign := "?tenant=" + y.ann.Tenant
	for _, path := range []string{"/packages/report", "/packages/report/versions", "/packages/report/versions/1.0.0", "/packages/report/versions/latest"} {
		y.call(y.other, "GET", path, nil, 404, nil)
		y.call(y.other, "GET", path+foreign, nil, 404, nil)
	}
	y.call(y.other, "GET", "/packages"+foreign, nil, 404, nil)
	y.call(y.other, "POST", "/packages", in, 404, nil)
	y.call(y.operator, "PATCH", "/packages/report", api.PackageChange{ExpectedRevision: 1, Public: &show}, 200, nil)
	y.call(y.operator, "PATCH", "/packages/report", api.PackageChange{ExpectedRevision: 1, Public: &show}, 409, nil)
	y.call(y.other, "GET", "/packages/report/versions/latest"+foreign, nil, 200, nil)
	y.call(y.other, "GET", "/packages?public=true", nil, 200, &page)
	if len(page.Items) != 1 {
		t.Errorf("got %+v", page)
	}
}

// Secrets go in by their admins and never come out; no answer and no refusal repeats a value (R-9.3, D-11.4).
func TestSecrets(t *testing.T) {
	y := newYard(t)
	const value = "OPEN-SESAME-42"
	var texts []string
	call := func(who identity.Principal, method, path string, in any, status int, out any) {
		t.Helper()
		texts = append(texts, y.call(who, method, path, in, status, out))
	}
	in := api.NewSecret{Name: "db", SecretValue: api.SecretValue{Value: value}}
	call(y.ann, "POST", "/secrets", in, 403, nil)
	var s api.Secret
	call(y.operator, "POST", "/secrets", in, 201, &s)
	if s.Version != 1 || s.Packages == nil {
		t.Errorf("got %+v", s)
	}
	call(y.operator, "POST", "/secrets", in, 409, nil)
	for _, bad := range []any{
		map[string]any{"name": "x", "value": []string{value}}, map[string]any{"name": "x", "value": value, "colour": value}, map[string]any{"name": "x", "value": value, "base64": true},
		map[string]any{"name": value + "/", "value": value[:5]}, map[string]any{"value": value}, map[string]any{"name": "x", "value": value, "packages": value},
	} {
		text := y.call(y.operator, "POST", "/secrets", bad, 400, nil)
		texts = append(texts, strings.ReplaceAll(text, "colour", ""))
	}
	call(y.operator, "PUT", "/secrets/db/value", api.SecretValue{Value: "T1BFTi1TRVNBTUUtNDM=", Base64: true}, 200, &s)
	if s.Version != 2 {
		t.Errorf("got %+v", s)
	}
	call(y.ann, "PUT", "/secrets/db/value", api.SecretValue{Value: value}, 403, nil)
	call(y.operator, "PUT", "/secrets/db/packages", api.SecretScope{Packages: []string{"report"}}, 200, &s)
	if len(s.Packages) != 1 {
		t.Errorf("got %+v", s)
	}
	var page api.Page[api.Secret]
	call(y.ann, "GET", "/secrets", nil, 200, &page)
	call(y.ann, "GET", "/secrets/db", nil, 200, nil)
	call(y.other, "GET", "/secrets/db", nil, 404, nil)
	call(y.other, "GET", "/secrets?tenant="+y.ann.Tenant, nil, 404, nil)
	if len(page.Items) != 1 || page.Items[0].Name != "db" {
		t.Errorf("got %+v", page)
	}
	call(y.ann, "POST", "/system/secrets/rotate-key", api.RotateSecretsKey{}, 403, nil)
	var done api.SecretsKeyRotated
	call(y.operator, "POST", "/system/secrets/rotate-key", api.RotateSecretsKey{}, 201, &done)
	if done.Resealed != 2 || done.Unopened != 0 {
		t.Errorf("got %+v", done)
	}
	call(y.operator, "POST", "/system/secrets/rotate-key", api.RotateSecretsKey{ResealOnly: true}, 201, &done)
	if done.Resealed != 0 {
		t.Errorf("got %+v", done)
	}
	call(y.operator, "DELETE", "/secrets/db", nil, 204, nil)
	call(y.operator, "DELETE", "/secrets/db", nil, 404, nil)
	for _, text := range texts {
		if strings.Contains(text, "SESAME") || strings.Contains(text, "T1BFTi1") {
			t.Errorf("an answer tells a value: %s", text)
		}
	}
}
