package api_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/pools"
	jsonapi "github.com/roadstead/roadstead/internal/serve/api"
	"github.com/roadstead/roadstead/internal/serve/request"
	"github.com/roadstead/roadstead/internal/store"
)

// A pool over HTTP from its first policy to its end, with its shares, its runners and a budget.
func TestPoolsOverHTTP(t *testing.T) {
	db, err := store.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	clk := &wall{time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	if err := db.CreateTenant(t.Context(), identity.Tenant{ID: "t1", Name: "acme", CreatedAt: clk.at}, audit.Entry{ID: store.NewID(), At: clk.at}); err != nil {
		t.Fatal(err)
	}
	service, err := pools.New(pools.Config{NewID: store.NewID, Lease: 90 * time.Second, Heartbeat: 10 * time.Second}, db, clk)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	if _, err := jsonapi.Register(func(pattern string, h http.HandlerFunc) { mux.HandleFunc(pattern, h) }, "", jsonapi.Services{Pools: service}); err != nil {
		t.Fatal(err)
	}
	operator := identity.Principal{ID: "op", Kind: identity.User, Tenant: "t0", Operator: true}
	member := identity.Principal{ID: "ann", Kind: identity.User, Tenant: "t1"}
	ask := func(caller identity.Principal, method, path, body string) (int, string) {
		r := httptest.NewRequestWithContext(request.With(t.Context(), &request.Info{Caller: caller}), method, "/api/v1"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	const runner = `"name":"m1","protocol":1,"capacity":{"slots":2,"milliCpu":1000,"memoryBytes":1073741824,"diskBytes":1073741824}}`
	for _, s := range []struct {
		caller                     identity.Principal
		method, path, body, answer string
	}{
		{operator, "PUT", "/pools/Fast", `{"expectedRevision":0,"policy":{}}`, `400 "field":"pool"`},
		{operator, "PUT", "/pools/fast", `{"expectedRevision":0,"policy":{"pids":1}}`, `400 "field":"policy.pids"`},
		{operator, "PUT", "/pools/fast", `{"expectedRevision":0,"policy":{"priceMicroPerSlotSecond":25}}`, `200 "policy":{"priceMicroPerSlotSecond":25},"effective":{"excess":"queue"`},
		{operator, "PUT", "/pools/fast", `{"expectedRevision":3,"policy":{}}`, `409 revision_mismatch`},
		{member, "PUT", "/pools/fast", `{"expectedRevision":1,"policy":{}}`, `403 forbidden`},
		{member, "GET", "/pools", "", `200 "name":"fast"`},
		{member, "GET", "/pools/fast", "", `200 "state":"offline"`},
		{member, "GET", "/pools/none", "", `404 pool none`},
		{operator, "PUT", "/pools/fast/shares/t1", `{"weight":10001}`, `400 weight`},
		{operator, "PUT", "/pools/fast/shares/t1", `{"weight":300,"maxSlots":2}`, `200 "weight":300,"maxSlots":2`},
		{member, "GET", "/pools/fast/shares?limit=5", "", `200 "tenant":"t1"`},
		{member, "GET", "/pools/fast/fairness", "", `200 {"items":[]}`},
		{member, "POST", "/pools/fast/runner-tokens", "", `403 forbidden`},
		{operator, "POST", "/pools/fast/runner-tokens", "", `201 "token":"rst_`},
		{identity.Principal{}, "POST", "/runners/register", `{"token":"rst_x",` + runner, `401 token`},
		{operator, "POST", "/pools/fast/drain", `{"deadlineSeconds":60}`, `200 "state":"drained","drainBy":"2026-11-30T12:01:00Z"`},
		{operator, "POST", "/pools/fast/drain", `{"deadlineSeconds":604801}`, `400 deadlineSeconds`},
		{operator, "POST", "/pools/fast/drain", `{"deadlineSeconds":0,"resume":true}`, `200 "state":"offline"`},
		{member, "GET", "/budgets/t1", "", `200 "revision":0`},
		{operator, "PUT", "/budgets/t1", `{"expectedRevision":0,"limitMicro":-1}`, `400 limitMicro`},
		{operator, "PUT", "/budgets/t1", `{"expectedRevision":0,"limitMicro":5000000}`, `200 "limitMicro":5000000,"spentMicro":0,"heldMicro":0,"revision":1`},
		{operator, "PUT", "/budgets/t1", `{"expectedRevision":0,"limitMicro":5}`, `409 revision_mismatch`},
		{member, "PUT", "/budgets/t1", `{"expectedRevision":1,"limitMicro":5}`, `403 forbidden`},
		{member, "GET", "/budgets/t0", "", `404 tenant`},
		{operator, "DELETE", "/pools/fast", "", "204 "},
		{operator, "GET", "/pools/fast", "", "404 pool fast"},
	} {
		code, body := ask(s.caller, s.method, s.path, s.body)
		status, want, _ := strings.Cut(s.answer, " ")
		if status != strconv.Itoa(code) || !strings.Contains(body, want) {
			t.Errorf("%s %s %s: %d %s, want %s", s.method, s.path, s.body, code, body, s.answer)
		}
	}
	runnersOverHTTP(t, service, operator, ask)
}

// runnersOverHTTP: a runner from its token to its end.
func runnersOverHTTP(t *testing.T, service *pools.Service, operator identity.Principal, ask func(identity.Principal, string, string, string) (int, string)) {
	t.Helper()
	if err := service.EnsureDefault(t.Context()); err != nil {
		t.Fatal(err)
	}
	token, err := service.NewToken(t.Context(), operator, pools.DefaultPool)
	if err != nil {
		t.Fatal(err)
	}
	code, body := ask(identity.Principal{}, "POST", "/runners/register",
		`{"token":"`+token.Token+`","name":"m1","protocol":1,"capacity":{"slots":2,"milliCpu":1000,"memoryBytes":1073741824,"diskBytes":1073741824}}`)
	_, rest, _ := strings.Cut(body, `"runner":"`)
	id, _, _ := strings.Cut(rest, `"`)
	if code != http.StatusCreated || id == "" {
		t.Fatal(code, body)
	}
	for _, s := range [][4]string{
		{"GET", "/runners", "", `200 "state":"online"`}, {"GET", "/runners?pool=default", "", "200 " + id}, {"GET", "/runners?pool=none", "", "404 pool none"},
		{"GET", "/runners/" + id, "", `200 "name":"m1"`}, {"GET", "/runners/rnr_x", "", "404 runner"}, {"GET", "/pools/default", "", `200 "state":"open"`},
		{"POST", "/runners/" + id + "/drain", "{}", `200 "state":"draining"`}, {"POST", "/runners/" + id + "/drain", `{"resume":true}`, `200 "state":"online"`},
		{"DELETE", "/runners/" + id, "", "204 "}, {"DELETE", "/runners/" + id, "", "404 runner"}, {"GET", "/runners/" + id, "", `200 "state":"revoked"`},
	} {
		code, body := ask(operator, s[0], s[1], s[2])
		status, want, _ := strings.Cut(s[3], " ")
		if status != strconv.Itoa(code) || !strings.Contains(body, want) {
			t.Errorf("%s %s: %d %s, want %s", s[0], s[1], code, body, s[3])
		}
	}
}
