package sdk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
)

// fake is a server in memory: it is its own RoundTripper, so whole conversations run inside a synctest bubble. Each
// request takes the next step of the script; when the script is over, or a step is nil, the object is served.
type fake struct {
	mu       sync.Mutex
	object   []byte
	digest   string // "" : the true one
	script   []step
	requests []http.Header
	methods  []string
	at       []time.Time
	other    http.Handler // for requests that are no GET of the object
}

// step answers one request; an error is a broken connection before any answer.
type step func(w http.ResponseWriter, r *http.Request) error

var errRefused = fmt.Errorf("dial: %w", syscall.ECONNREFUSED)

// errCut, returned after something was written, breaks the connection in the middle of the body.
var errCut = errors.New("cut")

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	h := r.Header.Clone()
	h.Set("Test-URL", r.URL.String())
	f.requests, f.methods, f.at = append(f.requests, h), append(f.methods, r.Method), append(f.at, time.Now())
	w := httptest.NewRecorder()
	serve := step(f.serve)
	if f.other != nil && r.Method != http.MethodGet {
		serve = func(w http.ResponseWriter, r *http.Request) error { f.other.ServeHTTP(w, r); return nil }
	} else if len(f.script) > 0 {
		if f.script[0] != nil {
			serve = f.script[0]
		}
		f.script = f.script[1:]
	}
	err := serve(w, r)
	if r.Body != nil {
		_ = r.Body.Close()
	}
	if err != nil && !errors.Is(err, errCut) {
		return nil, err
	}
	resp := w.Result()
	resp.Request = r
	resp.ContentLength = -1
	if n, perr := strconv.ParseInt(resp.Header.Get("Content-Length"), 10, 64); perr == nil {
		resp.ContentLength = n
	}
	if err != nil {
		resp.Body = io.NopCloser(io.MultiReader(resp.Body, errReader{io.ErrUnexpectedEOF}))
	}
	return resp, nil
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func (f *fake) serve(w http.ResponseWriter, r *http.Request) error {
	digest := f.digest
	if digest == "" {
		digest = digestOf(f.object)
	}
	w.Header().Set("ETag", `"`+digest+`"`)
	w.Header().Set("Repr-Digest", reprDigest(digest))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.object))
	return nil
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return digestPrefix + hex.EncodeToString(sum[:])
}

// problem is a refusal in the wire format.
func problem(status int, p api.Problem, headers ...string) step {
	return func(w http.ResponseWriter, r *http.Request) error {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		p.Status = status
		return json.NewEncoder(w).Encode(p)
	}
}

// plain is an answer of some proxy.
func plain(status int, headers ...string) step {
	return func(w http.ResponseWriter, r *http.Request) error {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		return nil
	}
}

func refused(http.ResponseWriter, *http.Request) error { return errRefused }

// queued is a place in the queue, in the way of D-2.3.
func queued(ticket string, wait api.Wait, retryAfter string) step {
	return problem(503, api.Problem{Code: "busy", Reason: api.ReasonQueued, Message: "waiting", Queue: &wait},
		"Retry-After", retryAfter, api.HeaderQueueTicket, ticket, api.HeaderDownloadClass, "bulk")
}

func repeat(n int, s step) []step {
	var out []step
	for range n {
		out = append(out, s)
	}
	return out
}

// log keeps what an operation reported.
type log struct{ events []Event }

func (l *log) add(e Event) { l.events = append(l.events, e) }

func eventsOf[E Event](l *log) (out []E) {
	for _, e := range l.events {
		if e, ok := e.(E); ok {
			out = append(out, e)
		}
	}
	return out
}

func newClient(t *testing.T, f *fake, retry Retry) *Client {
	t.Helper()
	c, err := New(Config{URL: "http://store.test", Key: "rsk_test", HTTP: &http.Client{Transport: f}, Retry: retry})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func content(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

// get downloads the fake's object in ranges of 1,000 bytes.
func get(t *testing.T, f *fake, edit func(*Download)) (Result, *log, error) {
	t.Helper()
	c := newClient(t, f, Retry{})
	l := &log{}
	req := Download{URL: c.FileURL("repo", "dir/file.bin"), File: filepath.Join(t.TempDir(), "file.bin"), RangeBytes: 1000, Events: l.add}
	if edit != nil {
		edit(&req)
	}
	result, err := c.Download(context.Background(), req)
	if err == nil {
		got, rerr := os.ReadFile(req.File)
		if rerr != nil || !bytes.Equal(got, f.object) {
			t.Fatalf("the file differs from the object (%d and %d bytes, %v)", len(got), len(f.object), rerr)
		}
		for _, left := range []string{PartialFile(req.File), checkpointFile(req.File)} {
			if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("%s is left behind", left)
			}
		}
	}
	return result, l, err
}
