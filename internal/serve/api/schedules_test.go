package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/schedules"
	jsonapi "github.com/roadstead/roadstead/internal/serve/api"
	"github.com/roadstead/roadstead/internal/serve/request"
	"github.com/roadstead/roadstead/internal/store"
)

// wall is a clock that stands.
type wall struct{ at time.Time }

func (w *wall) Now() clock.Mono { return clock.Mono(w.at.UnixNano()) }
func (w *wall) Wall() time.Time { return w.at }

// runs takes every template that names a pool, and makes a Run of every fire.
type runs struct{ fires []schedules.Fire }

func (*runs) CheckTemplate(_ context.Context, _ identity.Principal, template json.RawMessage) (schedules.Shape, error) {
	var t api.NewRun
	if err := json.Unmarshal(template, &t); err != nil || t.Pool == "" {
		return schedules.Shape{}, fault.Invalid("pool", "must be given")
	}
	return schedules.Shape{Pool: t.Pool, Slots: 1, Duration: time.Minute}, nil
}

func (r *runs) SubmitScheduled(_ context.Context, f schedules.Fire) (string, error) {
	r.fires = append(r.fires, f)
	return "run_1", nil
}

// scheduled is the routes over a real store and service.
func scheduled(t *testing.T) (ask func(method, path, body string) (int, string), s *schedules.Service, clk *wall, made *runs) {
	t.Helper()
	db, err := store.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	clk, made = &wall{time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}, &runs{}
	if err := db.CreateTenant(t.Context(), identity.Tenant{ID: "t1", Name: "acme", CreatedAt: clk.at}, audit.Entry{ID: store.NewID(), At: clk.at}); err != nil {
		t.Fatal(err)
	}
	s, err = schedules.New(schedules.Config{NewID: store.NewID}, db, made, made, clk)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	if _, err := jsonapi.Register(func(pattern string, h http.HandlerFunc) { mux.HandleFunc(pattern, h) }, "", jsonapi.Services{Schedules: s}); err != nil {
		t.Fatal(err)
	}
	caller := identity.Principal{ID: "ann", Kind: identity.User, Tenant: "t1", Name: "ann"}
	return func(method, path, body string) (int, string) {
		r := httptest.NewRequestWithContext(request.With(t.Context(), &request.Info{Caller: caller}), method, "/api/v1/schedules"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}, s, clk, made
}

// A schedule over HTTP from its first plan to its end: what it fired is listed, and wrong fields are named as they stand
// in the body.
func TestSchedulesOverHTTP(t *testing.T) {
	ask, service, clk, made := scheduled(t)
	const plan = `{"rule":"30 13 * * *","zone":"Europe/Berlin","template":{"pool":"default","command":["true"]}}`
	steps := func(all [][4]string) {
		t.Helper()
		for _, s := range all {
			code, body := ask(s[0], s[1], s[2])
			status, want, _ := strings.Cut(s[3], " ")
			if http.StatusText(code) != strings.ReplaceAll(status, "_", " ") || !strings.Contains(body, want) {
				t.Errorf("%s %s: %d %s, want %s", s[0], s[1], code, body, s[3])
			}
		}
	}
	steps([][4]string{
		{"GET", "/nightly", "", "Not_Found not_found"},
		{"PUT", "/nightly", `{"plan":` + strings.Replace(plan, "30 13", "30 25", 1) + `,"expectedRevision":0}`, `Bad_Request "field":"plan.rule"`},
		{"PUT", "/nightly", `{"plan":` + strings.Replace(plan, "* * *", "31 2 *", 1) + `,"expectedRevision":0}`, `Bad_Request never fires`},
		{"PUT", "/nightly", `{"plan":` + strings.Replace(plan, `"pool":"default",`, "", 1) + `,"expectedRevision":0}`, `Bad_Request "field":"plan.template.pool"`},
		{"PUT", "/nightly", `{"plan":` + strings.Replace(plan, `{"rule"`, `{"overlap":"maybe","rule"`, 1) + `,"expectedRevision":0}`, `Bad_Request "field":"plan.overlap"`},
		{"PUT", "/Night!", `{"plan":` + plan + `,"expectedRevision":0}`, `Bad_Request "field":"name"`},
		{"PUT", "/nightly", `{"plan":` + plan + `,"expectedRevision":3}`, `Not_Found schedule`},
		{"POST", "/nightly/preview", `{"plan":` + plan + `}`, `OK "peaks":[{"at":"2026-11-30T12:30:00Z"`},
		{"PUT", "/nightly", `{"plan":` + plan + `,"expectedRevision":0}`, `OK "nextAt":"2026-11-30T12:30:00Z"`},
		{"PUT", "/nightly", `{"plan":` + plan + `,"expectedRevision":0}`, `Conflict revision_mismatch`},
		{"GET", "", "", `OK "overlap":"skip"`},
		{"GET", "?tenant=other", "", `Not_Found tenant`},
	})
	clk.at = clk.at.Add(31 * time.Minute)
	if err := service.Fire(t.Context()); err != nil || len(made.fires) != 1 || string(made.fires[0].Order.Template) != `{"pool":"default","command":["true"]}` {
		t.Fatalf("%v, fires %+v", err, made.fires)
	}
	steps([][4]string{
		{"GET", "/nightly/fires", "", `OK "state":"submitted","run":"run_1"`},
		{"GET", "/nightly/fires?after=2026-11-30T12:30:00Z", "", `OK {"items":[]}`},
		{"GET", "/nightly/fires?after=x", "", `Bad_Request next of the page`},
		{"POST", "/nightly/pause", "", `OK "paused":true`},
		{"POST", "/nightly/resume", "", `OK "nextAt":"2026-12-01T12:30:00Z"`},
		{"DELETE", "/nightly?revision=1", "", `Conflict revision_mismatch`},
		{"DELETE", "/nightly", "", `Bad_Request "field":"revision"`},
		{"DELETE", "/nightly?revision=3", "", `No_Content `},
		{"GET", "/nightly", "", "Not_Found not_found"},
	})
}

// Without the service there are no routes, and the document of the server does not tell of them.
func TestWithoutSchedules(t *testing.T) {
	document, err := jsonapi.Register(func(pattern string, _ http.HandlerFunc) {
		if strings.Contains(pattern, "schedules") {
			t.Error(pattern)
		}
	}, "", jsonapi.Services{})
	if err != nil || strings.Contains(string(document), "/schedules") {
		t.Error("the document tells of schedules", err)
	}
}
