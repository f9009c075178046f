package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/serve/problem"
	"github.com/roadstead/roadstead/internal/serve/request"
)

// serveOne sends one request through the edge to h and returns the answer and the log.
func serveOne(t *testing.T, h handler, change func(r *http.Request)) (*httptest.ResponseRecorder, string) {
	t.Helper()
	var log bytes.Buffer
	proxies, err := ParseProxies("p", "10.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	e := newEdge(proxies, slog.New(slog.NewJSONHandler(&log, nil)))
	r := httptest.NewRequest("GET", "/x", nil)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	e.wrap(e.handle(small, h)).ServeHTTP(w, r)
	return w, log.String()
}

func ok(w http.ResponseWriter, _ *http.Request) error {
	_, err := io.WriteString(w, "ok")
	return err
}

func TestRequestIDCountsFromTrustedProxiesOnly(t *testing.T) {
	for _, c := range []struct {
		peer, id string
		kept     bool
	}{
		{"10.0.0.1:1", "abc-1", true},
		{"203.0.113.1:1", "abc-1", false},
		{"10.0.0.1:1", "bad id\x00", false},
		{"10.0.0.1:1", strings.Repeat("x", 65), false},
	} {
		w, _ := serveOne(t, ok, func(r *http.Request) {
			r.RemoteAddr = c.peer
			r.Header[api.HeaderRequestID] = []string{c.id}
		})
		if got := w.Header().Get(api.HeaderRequestID); (got == c.id) != c.kept || got == "" {
			t.Errorf("%+v: got id %q", c, got)
		}
	}
}

// The log line of a poll is for debugging: those of a million that wait would fill a disk (D-11.3).
func TestPollsAreLoggedForDebugging(t *testing.T) {
	for level, lines := range map[slog.Level]int{slog.LevelInfo: 0, slog.LevelDebug: 1} {
		var log bytes.Buffer
		e := newEdge(nil, slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: level})))
		h := e.wrap(e.handle(stream, func(_ http.ResponseWriter, r *http.Request) error {
			request.From(r.Context()).Poll = true
			return fault.Later(fault.Busy, api.ReasonQueued, time.Second, "wait")
		}))
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil))
		if got := strings.Count(log.String(), "\n"); got != lines {
			t.Errorf("%v: %d lines: %s", level, got, log.String())
		}
	}
}

func TestLogHoldsNoSecrets(t *testing.T) {
	_, log := serveOne(t, func(_ http.ResponseWriter, _ *http.Request) error { return fault.Missing("link") }, func(r *http.Request) {
		r.URL.Path = "/l/TOKENTOKEN"
		r.URL.RawQuery = "key=QUERYQUERY"
		r.Header.Set("Authorization", "Bearer rsk_SECRET")
		r.Header.Set(api.HeaderQueueTicket, "2.TICKET")
	})
	for _, secret := range []string{"TOKENTOKEN", "QUERYQUERY", "SECRET", "TICKET"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %s: %s", secret, log)
		}
	}
	if !strings.Contains(log, `"status":404`) || !strings.Contains(log, `"requestId"`) {
		t.Errorf("the log line is poor: %s", log)
	}
}

func TestPanicBecomesAProblem(t *testing.T) {
	w, log := serveOne(t, func(http.ResponseWriter, *http.Request) error { panic("boom") }, nil)
	if w.Code != 500 || w.Header().Get("Content-Type") != problem.ContentType || strings.Contains(w.Body.String(), "boom") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if !strings.Contains(log, "boom") {
		t.Error("the panic is not in the log")
	}
}

// A short body must never end cleanly: the client would take it for the file.
func TestLateFailureCutsTheConnection(t *testing.T) {
	for name, h := range map[string]handler{
		"error after the header": func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(200)
			return errors.New("disk gone")
		},
		"panic after the header": func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(200)
			panic("boom")
		},
		"abort": func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if v := recover(); v != http.ErrAbortHandler {
					t.Errorf("recovered %v", v)
				}
			}()
			serveOne(t, h, nil)
			t.Error("no panic reached net/http")
		})
	}
}

func TestCheckPath(t *testing.T) {
	for path, good := range map[string]bool{
		"/": true, "/files/r/a": true, "/files/r/a/": true, "/api/v1/x": true,
		"//": false, "/files//a": false, "/files/../x": false, "/files/.": false, "/a/./b": false, "/a\x00b": false, "/a\nb": false, "": false,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.Path = path
		if err := checkPath(r); (err == nil) != good {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestBodyIsBounded(t *testing.T) {
	w, _ := serveOne(t, func(w http.ResponseWriter, r *http.Request) error {
		_, err := io.ReadAll(r.Body)
		return err
	}, func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(strings.Repeat("x", 2<<20))) })
	var p api.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Code != string(fault.TooLarge) || w.Code != 413 {
		t.Errorf("got %d %+v %v", w.Code, p, err)
	}
}
