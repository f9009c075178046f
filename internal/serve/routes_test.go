package serve

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/serve/files"
)

type oneKey struct{}

func (oneKey) Authenticate(_ context.Context, secret string) (identity.Principal, error) {
	if secret != "rsk_good" {
		return identity.Principal{}, fault.New(fault.Unauthorized, "wrong key")
	}
	return identity.Principal{ID: "u1", Kind: identity.User, Name: "ada"}, nil
}

type health struct{ ready bool }

func (h health) Ready(context.Context) Readiness {
	return Readiness{Ready: h.ready, Checks: []Check{{Name: "database", OK: h.ready, Detail: "detail"}}, Queue: Sums{LastTickSeconds: .5}}
}

func newTestHandler(t *testing.T, h Health) (http.Handler, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewRegistry()
	handler, err := New(Config{Version: "1.2.3"}, Services{
		Auth: oneKey{}, Files: files.New(nil, nil, nil, nil), Uploads: http.NotFoundHandler(), Health: h, Metrics: reg, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return handler, reg
}

func ask(h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(`{"nane": 3}`))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Whatever is refused is refused in one form, also what ServeMux and huma refuse by themselves.
func TestEveryRefusalIsAProblem(t *testing.T) {
	h, _ := newTestHandler(t, health{true})
	const key, good = "Authorization", "Bearer rsk_good"
	cases := []struct {
		name, method, path string
		headers            []string
		status             int
		code, field        string
	}{
		{"no route", "GET", "/nowhere", nil, 404, "not_found", ""},
		{"a folder without its slash", "GET", "/files", nil, 404, "not_found", ""},
		{"method", "POST", "/files/r/x", nil, 405, "invalid_input", "method"},
		{"method of the API", "PUT", "/api/v1/keys", []string{key, good}, 405, "invalid_input", "method"},
		{"empty segment is not merged", "GET", "/files/r//x", []string{key, good}, 400, "invalid_input", "path"},
		{"dots are not resolved", "PUT", "/files/r/../x", []string{key, good}, 400, "invalid_input", "path"},
		{"encoded slash", "GET", "/files/r/a%2Fb", []string{key, good}, 400, "invalid_input", "path"},
		{"no key", "GET", "/api/v1/whoami", nil, 401, "unauthorized", ""},
		{"wrong key", "GET", "/files/r/x", []string{key, "Bearer rsk_bad"}, 401, "unauthorized", ""},
		{"two keys", "GET", "/files/r/x", []string{key, good, key, good}, 401, "unauthorized", ""},
		{"unknown scheme", "GET", "/files/r/x", []string{key, "Digest rsk_good"}, 401, "unauthorized", ""},
		{"unknown field in JSON", "POST", "/api/v1/tenants", []string{key, good, "Content-Type", "application/json"}, 400, "invalid_input", "nane"},
		{"not JSON", "POST", "/api/v1/tenants", []string{key, good, "Content-Type", "text/xml"}, 400, "invalid_input", ""},
		{"limit", "GET", "/api/v1/repositories?limit=many", []string{key, good}, 400, "invalid_input", "limit"},
		{"limit too high", "GET", "/api/v1/repositories?limit=100000", []string{key, good}, 400, "invalid_input", "limit"},
		{"unknown query", "GET", "/api/v1/repositories?lmit=1", []string{key, good}, 400, "invalid_input", "lmit"},
		{"another site's page", "DELETE", "/files/r/x", []string{key, good, "Sec-Fetch-Site", "cross-site"}, 403, "forbidden", ""},
		{"not an operator", "GET", "/api/v1/system/downloads/queue", []string{key, good}, 403, "forbidden", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := ask(h, c.method, c.path, c.headers...)
			var p api.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
				t.Fatalf("%d %s: %v", w.Code, w.Body, err)
			}
			if w.Code != c.status || p.Status != c.status || p.Code != c.code || p.RequestID == "" || p.Message == "" || p.Type == "" {
				t.Errorf("got %d %+v", w.Code, p)
			}
			if ct := w.Header().Get("Content-Type"); ct != "application/problem+json" {
				t.Errorf("content type %q", ct)
			}
			found := c.field == ""
			for _, d := range p.Details {
				found = found || d.Field == c.field
			}
			if !found {
				t.Errorf("no detail names %s: %+v", c.field, p.Details)
			}
		})
	}
}

func TestKeyAsBearerAndAsBasicPassword(t *testing.T) {
	h, _ := newTestHandler(t, health{true})
	r := httptest.NewRequest("GET", "/api/v1/whoami", nil)
	r.SetBasicAuth("anything", "rsk_good")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	for _, w := range []*httptest.ResponseRecorder{w, ask(h, "GET", "/api/v1/whoami", "Authorization", "bearer rsk_good")} {
		var who api.Whoami
		if err := json.Unmarshal(w.Body.Bytes(), &who); err != nil || who.ID != "u1" || who.Version != "1.2.3" {
			t.Errorf("got %d %s %v", w.Code, w.Body, err)
		}
	}
}

func TestProbes(t *testing.T) {
	h, _ := newTestHandler(t, health{true})
	if w := ask(h, "GET", "/livez"); w.Code != 200 {
		t.Errorf("livez %d", w.Code)
	}
	if w := ask(h, "GET", "/readyz"); w.Code != 200 || strings.Contains(w.Body.String(), "detail") || !strings.Contains(w.Body.String(), "lastTickSeconds") {
		t.Errorf("readyz %d %s", w.Code, w.Body)
	}
	if w := ask(h, "GET", "/readyz?verbose"); !strings.Contains(w.Body.String(), "detail") {
		t.Errorf("readyz?verbose %s", w.Body)
	}
	h, _ = newTestHandler(t, health{false})
	if w := ask(h, "GET", "/readyz"); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("not ready: %d", w.Code)
	}
	if w := ask(h, "GET", "/livez"); w.Code != 200 {
		t.Errorf("a process that only waits for its database must live: %d", w.Code)
	}
}

func TestMetricsPassTheLinter(t *testing.T) {
	h, reg := newTestHandler(t, health{true})
	ask(h, "GET", "/livez")
	ask(h, "GET", "/files/secret/path", "Authorization", "Bearer rsk_good")
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	w := ask(h, "GET", "/metrics")
	if w.Code != 200 || !strings.Contains(w.Body.String(), "roadstead_http_requests_total") || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("metrics: %d %s", w.Code, w.Body)
	}
}
