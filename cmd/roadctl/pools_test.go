package main

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roadstead/roadstead/api"
)

func pool(edit func(p *api.Pool)) api.Pool {
	p := api.Pool{
		Name: "fast", Revision: 3, State: "open", Runners: 2, Capacity: api.Resources{Slots: 8, MilliCPU: 4000, MemoryBytes: 8e9}, Used: api.Resources{Slots: 3, MilliCPU: 1500},
		Queued: 7, Active: 3, OldestAge: 90, Policy: api.PoolPolicy{Excess: "reject"}, Effective: api.PoolPolicy{Excess: "reject", Pids: 256},
	}
	if edit != nil {
		edit(&p)
	}
	return p
}

func TestPoolsCommands(t *testing.T) {
	one := pool(nil)
	seen := noon.Add(-time.Minute)
	runner := api.Runner{ID: "rnr_1", Name: "m1", Pool: "fast", State: "online", Capacity: one.Capacity, Used: one.Used, Attempts: 3, SeenAt: &seen,
		Labels: map[string]string{"zone": "a", "gpu": "no"}, CreatedAt: noon}
	share := api.PoolShare{Pool: "fast", Tenant: "t1", Weight: 300}
	budget := api.Budget{Tenant: "t1", LimitMicro: 10_000_000, SpentMicro: 9_000_000, HeldMicro: 2_500_000, Revision: 4}
	mismatch := refuse(409, api.Problem{Code: "revision_mismatch", Message: "now at revision 4"})
	for _, c := range []struct {
		args  string
		serve http.HandlerFunc
		code  int
		want  []string
	}{
		{"pools list", answer(api.Page[api.Pool]{Items: []api.Pool{one}}), 0, []string{"fast  open   2        3 of 8  3       7       1 min 30 s\n"}},
		{"pools show fast", answer(one), 0, []string{"for       all tenants", "cpus      1.5 of 4", "excess    reject\n", "pids      256 (default)\n"}},
		{"pools show fast -o json", answer(one), 0, []string{`"excess": "reject"`}},
		{"pools show none", refuse(404, api.Problem{Code: "not_found", Message: "pool none not found"}), 1, []string{"roadctl pools list"}},
		{"pools set fast pids=9", inTurn(answer(one), mismatch), 6, []string{"revision 4"}},
		{"pools set fast pids=many", nil, 2, []string{`pids: must be a whole number, is "many"`}},
		{"pools set fast network=maybe", nil, 2, []string{"true or false"}},
		{"pools set fast colour=red", nil, 2, []string{`no "colour"`, "tenantSoftDepth"}},
		{"pools set fast pids", nil, 2, []string{"KEY=VALUE"}},
		{"pools rm fast", refuse(204, api.Problem{}), 0, []string{"deleted fast"}},
		{"pools rm fast", refuse(409, api.Problem{Code: "conflict", Message: "pool fast still has Runs"}), 6, []string{"still has Runs"}},
		{"pools token fast", answer(api.RunnerToken{Pool: "fast", Token: "rst_x", ExpiresAt: noon.Add(time.Hour)}), 0, []string{"rst_x\n", "13:00 (in 1 h)"}},
		{"pools resume fast", answer(one), 0, []string{"fast: open\n"}},
		{"pools shares fast", answer(api.Page[api.PoolShare]{Items: []api.PoolShare{share}}), 0, []string{"t1      300     -\n"}},
		{"pools share fast t1", nil, 2, []string{"--weight"}},
		{"pools fairness fast", answer(api.Page[api.TenantShare]{Items: []api.TenantShare{{Tenant: "t1", Weight: 300, Served: 1.5, Error: 0.25, Bound: 2, Formula: "a + b"}}}), 0,
			[]string{"t1      300     1.500   0.250  2.000\n", "bound: a + b"}},
		{"runners list --pool fast", answer(api.Page[api.Runner]{Items: []api.Runner{runner}}), 0, []string{"rnr_1  m1    fast  online  3 of 8  3         11:59 (1 min ago)\n"}},
		{"runners show rnr_1", answer(runner), 0, []string{"labels    gpu=no zone=a\n"}},
		{"runners drain rnr_1", answer(runner), 0, []string{"m1: online, 3 still run\n"}},
		{"runners revoke rnr_1", refuse(204, api.Problem{}), 0, []string{"revoked rnr_1"}},
		{"runners revoke rnr_1", refuse(404, api.Problem{Code: "not_found", Message: "runner rnr_1 not found"}), 1, []string{"roadctl runners list"}},
		{"budgets show", inTurn(answer(api.Whoami{Tenant: "t1"}), answer(budget)), 0, []string{"t1      10.00  9.00   2.50  -1.50  4\n"}},
		{"budgets show t2", answer(api.Budget{Tenant: "t2"}), 0, []string{"t2 has no budget, and no bound\n"}},
		{"budgets set t1 many", nil, 2, []string{"250.50"}},
		{"budgets set t1 1.0000001", nil, 2, []string{"six decimals"}},
		{"budgets set t1 5", refuse(403, api.Problem{Code: "forbidden", Message: "only a system operator"}), 3, []string{"only a system operator"}},
	} {
		code, stdout, stderr := command{args: strings.Fields(c.args), serve: c.serve}.run(t)
		if code != c.code {
			t.Errorf("%s: exit code %d, want %d\n%s%s", c.args, code, c.code, stdout, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(stdout+stderr, want) {
				t.Errorf("%s: %q is not in\n%s%s", c.args, want, stdout, stderr)
			}
		}
	}
}

// What is set lies over what was set before, at the revision that was read or that the user names.
func TestPoolChangesAreSent(t *testing.T) {
	was := pool(nil)
	missing := refuse(404, api.Problem{Code: "not_found", Message: "pool fast not found"})
	share := answer(api.Page[api.PoolShare]{Items: []api.PoolShare{{Pool: "fast", Tenant: "t1", Weight: 300, MaxSlots: 4}}})
	for _, c := range []struct {
		args  string
		first http.HandlerFunc
		want  string
	}{
		{"pools set fast pids=9 network=true", answer(was), `{"expectedRevision":3,"policy":{"excess":"reject","network":true,"pids":9}}`},
		{"pools set fast excess= network= --revision 7", answer(was), `{"expectedRevision":7,"policy":{}}`},
		{"pools set fast --tenant t1", missing, `{"expectedRevision":0,"tenant":"t1","policy":{}}`},
		{"pools share fast t1 --weight 5", share, `{"weight":5,"maxSlots":4}`},
		{"pools share fast t1 --max-slots 0", share, `{"weight":300}`},
		{"pools share fast t2 --max-slots 3", share, `{"weight":100,"maxSlots":3}`},
		{"budgets set t1 250.5", answer(api.Budget{Tenant: "t1", Revision: 4}), `{"expectedRevision":4,"limitMicro":250500000}`},
		{"budgets set t1 0 --revision 2", answer(api.Budget{Tenant: "t1", Revision: 4}), `{"expectedRevision":2,"limitMicro":0}`},
	} {
		var got, want any
		serve := inTurn(c.first, func(w http.ResponseWriter, r *http.Request) {
			if err := json.NewDecoder(r.Body).Decode(&got); err != nil || r.Method != http.MethodPut {
				t.Errorf("%s: %s %v", c.args, r.Method, err)
			}
			answer(struct{}{})(w, r)
		})
		code, _, stderr := command{args: strings.Fields(c.args), serve: serve}.run(t)
		if err := json.Unmarshal([]byte(c.want), &want); err != nil || code != 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d %s, sent %v, want %v", c.args, code, stderr, got, want)
		}
	}
}

// A drain that is waited for tells how much is left, and fails when somebody resumes the pool.
func TestPoolDrainWaits(t *testing.T) {
	by := noon.Add(30 * time.Minute)
	left := func(state string, active int) http.HandlerFunc {
		return answer(pool(func(p *api.Pool) { p.State, p.Active, p.DrainBy = state, active, &by }))
	}
	for _, c := range []struct {
		serve http.HandlerFunc
		code  int
		want  []string
	}{
		{inTurn(left("draining", 3), left("draining", 3), left("draining", 1), left("drained", 0)), 0,
			[]string{"fast: drained\n", "draining, 3 still run, what is left is stopped 12:30 (in 30 min)", "draining, 1 still run"}},
		{inTurn(left("draining", 3), left("open", 3)), 1, []string{"the pool was resumed", "kept: "}},
		{left("drained", 0), 0, []string{"fast: drained\n"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			code, stdout, stderr := command{args: strings.Fields("pools drain fast --deadline 30m --wait"), serve: c.serve}.run(t)
			if code != c.code || strings.Count(stderr, "3 still run") > 1 {
				t.Errorf("%d\n%s%s", code, stdout, stderr)
			}
			for _, want := range c.want {
				if !strings.Contains(stdout+stderr, want) {
					t.Errorf("%q is not in\n%s%s", want, stdout, stderr)
				}
			}
		})
	}
}
