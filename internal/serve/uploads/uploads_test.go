package uploads_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/blob"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/serve/request"
	"github.com/roadstead/roadstead/internal/serve/uploads"
	"github.com/roadstead/roadstead/internal/store"
)

// open lets everybody write to the repository "r", and nobody to another.
type open struct{}

func (open) RoleOn(_ context.Context, _ identity.Principal, repository string) (identity.Role, error) {
	if repository != "r" {
		return "", fault.Missing("repository")
	}
	return identity.Write, nil
}

func (o open) Need(ctx context.Context, p identity.Principal, repository string, _ identity.Role) error {
	_, err := o.RoleOn(ctx, p, repository)
	return err
}

// flaky is the service with failures and hooks to order.
type flaky struct {
	uploads.Service
	finish error
	read   func() // runs after each read of a body, if set
}

func (f *flaky) AppendUpload(ctx context.Context, p identity.Principal, id string, offset int64, r io.Reader) (int64, error) {
	if f.read != nil {
		r = told{r, f.read}
	}
	return f.Service.AppendUpload(ctx, p, id, offset, r)
}

// told is a body that tells of each read.
type told struct {
	io.Reader
	read func()
}

func (b told) Read(p []byte) (int, error) {
	defer b.read()
	return b.Reader.Read(p)
}

func (f *flaky) FinishUpload(ctx context.Context, p identity.Principal, id string) (artifacts.File, bool, error) {
	if f.finish != nil {
		return artifacts.File{}, false, f.finish
	}
	return f.Service.FinishUpload(ctx, p, id)
}

type server struct {
	*httptest.Server
	t       *testing.T
	service *artifacts.Service
	flaky   *flaky
}

var ann = identity.Principal{ID: "ann", Kind: identity.User, Tenant: "t"}

func newServer(t *testing.T) *server {
	t.Helper()
	dir := t.TempDir()
	db, err := store.OpenSQLite(t.Context(), filepath.Join(dir, "x.db"))
	ok(t, err)
	disk, err := blob.New(blob.Config{Dir: filepath.Join(dir, "blobs")})
	ok(t, err)
	t.Cleanup(func() { ok(t, errors.Join(db.Close(), disk.Close())) })
	people, err := identity.New(identity.Config{NewID: store.NewID}, db, clock.NewSystem())
	ok(t, err)
	var key string
	_, err = people.Bootstrap(t.Context(), func(s string) error { key = s; return nil })
	ok(t, err)
	operator, err := people.Authenticate(t.Context(), key)
	ok(t, err)
	s := &server{t: t}
	s.service, err = artifacts.New(artifacts.Config{NewID: store.NewID}, db, disk, open{}, clock.NewSystem())
	ok(t, err)
	_, err = s.service.CreateRepository(t.Context(), operator, "r")
	ok(t, err)
	s.flaky = &flaky{Service: s.service}
	h, err := uploads.New(s.flaky)
	ok(t, err)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := &request.Info{ID: "req-1", Scheme: "https", Host: "files.example", Caller: ann}
		if name := r.Header.Get("Test-Caller"); name != "" {
			info.Caller.ID = name
		}
		h.ServeHTTP(w, r.WithContext(request.With(r.Context(), info)))
	}))
	t.Cleanup(s.Close)
	return s
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// do sends a request; header is name, value, name, value...
func (s *server) do(method, path, body string, header ...string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	ok(s.t, err)
	r.Header.Set("Tus-Resumable", "1.0.0")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/offset+octet-stream")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := s.Client().Do(r)
	ok(s.t, err)
	text, err := io.ReadAll(res.Body)
	ok(s.t, errors.Join(err, res.Body.Close()))
	res.Body = io.NopCloser(strings.NewReader(string(text)))
	return res
}

func (s *server) status(res *http.Response, want int) {
	s.t.Helper()
	if res.StatusCode != want {
		text, _ := io.ReadAll(res.Body)
		s.t.Fatalf("%s %s: %s, want %d: %s", res.Request.Method, res.Request.URL.Path, res.Status, want, text)
	}
}

func (s *server) offset(path string) int64 {
	s.t.Helper()
	res := s.do(http.MethodHead, path, "")
	s.status(res, 200)
	n, err := strconv.ParseInt(res.Header.Get("Upload-Offset"), 10, 64)
	ok(s.t, err)
	return n
}

func metadata(pairs ...string) string {
	var all []string
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, pairs[i]+" "+base64.StdEncoding.EncodeToString([]byte(pairs[i+1])))
	}
	return strings.Join(all, ",")
}

// create begins an upload and returns its path on the server.
func (s *server) create(size int, pairs ...string) string {
	s.t.Helper()
	res := s.do(http.MethodPost, api.PathUploads, "", "Upload-Length", strconv.Itoa(size), "Upload-Metadata", metadata(pairs...))
	s.status(res, 201)
	path, found := strings.CutPrefix(res.Header.Get("Location"), "https://files.example")
	if !found || !strings.HasPrefix(path, api.PathUploads) {
		s.t.Fatalf("Location %q is not the address the client used", res.Header.Get("Location"))
	}
	return path
}

func (s *server) file(path, want string) {
	s.t.Helper()
	f, err := s.service.Stat(s.t.Context(), ann, "r", path)
	ok(s.t, err)
	r, err := s.service.Open(s.t.Context(), f)
	ok(s.t, err)
	text, err := io.ReadAll(r)
	ok(s.t, errors.Join(err, r.Close()))
	if string(text) != want {
		s.t.Fatalf("%s holds %q, want %q", path, text, want)
	}
}

func TestUploadInPieces(t *testing.T) {
	s := newServer(t)
	at := s.create(11, "repository", "r", "path", "d/f", "mediaType", "text/plain",
		"sha256", "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9")
	res := s.do(http.MethodPatch, at, "hello ", "Upload-Offset", "0")
	s.status(res, 204)
	if res.Header.Get("Upload-Offset") != "6" || s.offset(at) != 6 {
		t.Errorf("at %s", res.Header.Get("Upload-Offset"))
	}
	s.status(s.do(http.MethodPatch, at, "world", "Upload-Offset", "5"), 409)
	s.status(s.do(http.MethodPatch, at, "world and more", "Upload-Offset", "6"), 413)
	s.status(s.do(http.MethodPatch, at, "world", "Upload-Offset", "6"), 204)
	if s.offset(at) != 11 {
		t.Error("a finished upload keeps saying so")
	}
	s.file("d/f", "hello world")
	s.status(s.do(http.MethodGet, at, ""), 405)
}

func TestEmptyUpload(t *testing.T) {
	s := newServer(t)
	s.create(0, "repository", "r", "path", "empty")
	s.file("empty", "")
}

// TestCutOffBodyIsKept: a connection that breaks costs only what had not arrived.
func TestCutOffBodyIsKept(t *testing.T) {
	s := newServer(t)
	at := s.create(10, "repository", "r", "path", "f")
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	ok(t, err)
	_, err = io.WriteString(conn, hangingPatch(at))
	ok(t, err)
	ok(t, conn.(*net.TCPConn).CloseWrite())
	_, err = io.Copy(io.Discard, conn) // ends when the server has given the request up
	ok(t, errors.Join(err, conn.Close()))
	if got := s.offset(at); got != 6 {
		t.Fatalf("at %d", got)
	}
	s.status(s.do(http.MethodPatch, at, "worl", "Upload-Offset", "6"), 204)
	s.file("f", "hello worl")
}

// TestTakeOver: the old connection hangs half open; a client that comes back on a new one gets the upload at once, with
// all that had arrived.
func TestTakeOver(t *testing.T) {
	s := newServer(t)
	at := s.create(10, "repository", "r", "path", "f")
	arrived := make(chan struct{})
	s.flaky.read = sync.OnceFunc(func() { close(arrived) })
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	ok(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, hangingPatch(at))
	ok(t, err)
	<-arrived
	if got := s.offset(at); got != 6 {
		t.Fatalf("at %d", got)
	}
	s.status(s.do(http.MethodPatch, at, "worl", "Upload-Offset", "6"), 204)
	s.file("f", "hello worl")
}

// hangingPatch is a request that sends 6 of its 10 bytes.
func hangingPatch(path string) string {
	return "PATCH " + path + " HTTP/1.1\r\nHost: x\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\n" +
		"Content-Type: application/offset+octet-stream\r\nContent-Length: 10\r\n\r\nhello "
}

// TestFullOffsetOnlyWithTheFile: the last bytes arrived but the file could not be made; the client must not be told
// that it is done, and its next question does what is left.
func TestFullOffsetOnlyWithTheFile(t *testing.T) {
	s := newServer(t)
	at := s.create(5, "repository", "r", "path", "f")
	s.flaky.finish = fault.Later(fault.Busy, "", 2*time.Second, "database away")
	res := s.do(http.MethodPatch, at, "hello", "Upload-Offset", "0")
	s.status(res, 503)
	if res.Header.Get("Retry-After") != "2" {
		t.Errorf("Retry-After %q", res.Header.Get("Retry-After"))
	}
	s.flaky.finish = nil
	if s.offset(at) != 5 {
		t.Error("not done")
	}
	s.file("f", "hello")
}

func TestRefusals(t *testing.T) {
	s := newServer(t)
	refuse := func(res *http.Response, status int, code, field string) {
		t.Helper()
		s.status(res, status)
		var p api.Problem
		ok(t, json.NewDecoder(res.Body).Decode(&p))
		if p.Code != code || p.RequestID != "req-1" || res.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("got %+v", p)
		}
		if field != "" && (len(p.Details) != 1 || p.Details[0].Field != field) {
			t.Errorf("got %+v, want the field %s", p.Details, field)
		}
	}
	post := func(pairs ...string) *http.Response {
		return s.do(http.MethodPost, api.PathUploads, "", "Upload-Length", "5", "Upload-Metadata", metadata(pairs...))
	}
	refuse(post(), 400, "invalid_input", "repository")
	refuse(post("repository", "r"), 400, "invalid_input", "path")
	refuse(post("repository", "r", "path", "../f"), 400, "invalid_input", "path")
	refuse(post("repository", "r", "path", "f", "sha256", "xyz"), 400, "invalid_input", "sha256")
	refuse(post("repository", "x", "path", "f"), 404, "not_found", "")
	refuse(post("repository", "r", "path", "f", "ifMatch", "*"), 412, "precondition_failed", "")
	for _, id := range []string{"nothing", "..%2f..%2fetc", "a/b", "%00"} {
		refuse(s.do(http.MethodPatch, api.PathUploads+id, "x", "Upload-Offset", "0"), 404, "not_found", "")
	}

	at := s.create(5, "repository", "r", "path", "f", "sha256", strings.Repeat("0", 64))
	refuse(s.do(http.MethodPatch, at, "x", "Upload-Offset", "0", "Test-Caller", "eve"), 404, "not_found", "")
	refuse(s.do(http.MethodDelete, at, "", "Test-Caller", "eve"), 404, "not_found", "")
	refuse(s.do(http.MethodPatch, at, "hello", "Upload-Offset", "0"), 422, "integrity_mismatch", "")
	s.status(s.do(http.MethodHead, at, ""), 404)

	at = s.create(5, "repository", "r", "path", "f")
	s.status(s.do(http.MethodDelete, at, ""), 204)
	s.status(s.do(http.MethodHead, at, ""), 404)
	s.status(s.do(http.MethodPost, api.PathUploads, "", "Upload-Metadata", metadata("repository", "r", "path", "f")), 400)
	s.status(s.do(http.MethodPost, api.PathUploads, "", "Upload-Length", "-1"), 400)
	s.status(s.do(http.MethodPatch, at, "x", "Upload-Offset", "abc"), 400)
}
