package problem_test

import (
	"encoding/json"
	"errors"
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

func TestWrite(t *testing.T) {
	cases := []struct {
		name       string
		err        error
		status     int
		code       string
		retryAfter string
		details    int
	}{
		{"field", fault.Invalid("path", "must not be empty"), 400, "invalid_input", "", 1},
		{"not signed in", fault.New(fault.Unauthorized, "sign in"), 401, "unauthorized", "", 0},
		{"missing", fault.Missing("file"), 404, "not_found", "", 0},
		{"busy rounds up", fault.Later(fault.Busy, api.ReasonQueued, 1500*time.Millisecond, "queued"), 503, "busy", "2", 0},
		{"full disk", fault.New(fault.CapacityExceeded, "disk is full"), 507, "capacity_exceeded", "", 0},
		{"too large", &http.MaxBytesError{Limit: 5}, 413, "too_large", "", 0},
		{"unknown stays hidden", errors.New("dial tcp: password=hunter2"), 500, "internal", "", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			info := &request.Info{ID: "req-1"}
			r := httptest.NewRequest("GET", "/", nil)
			r = r.WithContext(request.With(r.Context(), info))
			w := httptest.NewRecorder()
			problem.Write(w, r, c.err)
			var p api.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
				t.Fatal(err)
			}
			if w.Code != c.status || p.Status != c.status || p.Code != c.code || len(p.Details) != c.details || p.RequestID != "req-1" {
				t.Errorf("got %d %+v", w.Code, p)
			}
			if got := w.Header().Get("Retry-After"); got != c.retryAfter {
				t.Errorf("Retry-After %q, want %q", got, c.retryAfter)
			}
			if w.Header().Get("Content-Type") != problem.ContentType {
				t.Errorf("content type %q", w.Header().Get("Content-Type"))
			}
			if strings.Contains(w.Body.String(), "hunter2") {
				t.Error("the cause reached the client")
			}
			if info.Cause == nil {
				t.Error("the cause is lost to the log")
			}
			if c.status == 401 && len(w.Header().Values("WWW-Authenticate")) != 2 {
				t.Error("a client is not told how to sign in")
			}
		})
	}
}
