package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/roadstead/roadstead/api"
)

// TestMain lets the test binary be roadctl itself, for the tests that kill it.
func TestMain(m *testing.M) {
	if os.Getenv("ROADCTL_TEST_MAIN") == "1" {
		os.Exit(realMain())
	}
	goleak.VerifyTestMain(m)
}

// memory is a server without sockets, so that commands that wait can be run in a synctest bubble.
type memory struct{ http.Handler }

func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	if r.Body != nil {
		_ = r.Body.Close()
	}
	resp := w.Result()
	resp.Request, resp.ContentLength = r, -1
	if n, err := strconv.ParseInt(resp.Header.Get("Content-Length"), 10, 64); err == nil {
		resp.ContentLength = n
	}
	return resp, nil
}

// command is one run of the program.
type command struct {
	args  []string
	stdin string
	env   map[string]string
	serve http.HandlerFunc
	now   func() time.Time
	ctx   context.Context
}

func (c command) run(t *testing.T) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if c.env == nil {
		c.env = map[string]string{}
	}
	if c.env["HOME"] == "" {
		c.env["HOME"] = t.TempDir()
	}
	if c.now == nil {
		c.now = func() time.Time { return noon }
	}
	if c.ctx == nil {
		c.ctx = t.Context()
	}
	a := &app{in: strings.NewReader(c.stdin), out: &out, err: &errs, env: func(k string) string { return c.env[k] }, now: c.now}
	if c.serve != nil {
		a.http = &http.Client{Transport: memory{c.serve}}
	}
	code = run(c.ctx, c.args, a)
	return code, out.String(), errs.String()
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func answer(v any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(v) }
}

func refuse(status int, p api.Problem, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		p.Status = status
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(p)
	}
}

func object(body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.Sum256(body)
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sum))
		w.Header().Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	}
}

// inTurn answers each request by the next handler, the last one from then on.
func inTurn(handlers ...http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := handlers[0]
		if len(handlers) > 1 {
			handlers = handlers[1:]
		}
		h(w, r)
	}
}

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
