package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
)

func nightly() api.Schedule {
	next := noon.Add(14*time.Hour + 30*time.Minute)
	return api.Schedule{
		ID: "sch_1", Name: "nightly", Owner: "ann", Pool: "default", Revision: 3, NextAt: &next,
		Plan: api.SchedulePlan{
			Rule: "30 2 * * *", Zone: "Europe/Berlin", SpreadSeconds: 600, Overlap: "skip", Refused: "retry",
			CatchUp: &api.CatchUp{Policy: "all", Max: 3, MaxAgeSeconds: 86400}, Template: json.RawMessage(`{"command":["true"]}`),
		},
	}
}

func TestSchedulesOutput(t *testing.T) {
	paused := nightly()
	paused.Paused, paused.NextAt = true, nil
	curve := api.LoadCurve{
		Pool: "default", From: noon, StepSeconds: 300,
		Buckets: []api.LoadBucket{{At: noon, MeanSlots: 6, MaxSlots: 10}, {At: noon.Add(5 * time.Minute), MaxSlots: 40, MeanSlots: 6}, {At: noon.Add(time.Hour)}},
		Peaks:   []api.LoadPeak{{At: noon.Add(5 * time.Minute), Slots: 40, Own: []api.PeakPart{{Name: "nightly", Slots: 30}}, Others: 10}},
		Spreads: []api.SpreadEffect{{SpreadSeconds: 900, Alone: 20, Together: 12}}, NotCounted: 7,
	}
	fires := api.Page[api.ScheduleFire]{Items: []api.ScheduleFire{
		{Instant: noon.Add(-time.Hour), State: "submitted", Run: "run_1"}, {Instant: noon.Add(-2 * time.Hour), State: "dropped", Reason: "queue full"}}}
	for _, c := range []struct {
		args   string
		serve  http.HandlerFunc
		code   int
		stdout []string
		stderr []string
	}{
		{args: "schedules list", serve: answer(api.Page[api.Schedule]{Items: []api.Schedule{nightly(), paused}}), stdout: []string{
			"nightly  30 2 * * *  Europe/Berlin  default  tomorrow 02:30 (in 14 h 30 min)\n", "default  paused\n"}},
		{args: "schedules get nightly", serve: answer(nightly()), stdout: []string{"rule      30 2 * * * in Europe/Berlin\n", "catch-up  all, 3 at most, none older than 1 d\n", "spread    10 min\n", "refused   retry\n"}},
		{args: "schedules pause nightly", serve: answer(paused), stdout: []string{"nightly: next fire paused\n"}},
		{args: "schedules resume nightly", serve: answer(nightly()), stdout: []string{"tomorrow 02:30"}},
		{args: "schedules rm nightly", serve: inTurn(answer(nightly()), answer(nil))},
		{args: "schedules fires nightly", serve: answer(fires), stdout: []string{"11:00 (1 h ago)  submitted  run_1", "dropped           queue full"}},
		{args: "schedules fires nightly --limit 1 -o json", serve: answer(fires), stdout: []string{`"run": "run_1"`}},
		{args: "schedules preview nightly --week", serve: inTurn(answer(nightly()), answer(curve)), stdout: []string{
			"12:00  1.0   40    " + strings.Repeat("#", 40), "peak 12:05: 40 slots (nightly 30, other tenants 10)", "with a spread of 15 min: 20 slots at most; 12 if all yours"},
			stderr: []string{"7 more schedules"}},
		{args: "schedules set nightly --rule @often", serve: inTurn(answer(nightly()), refuse(400, api.Problem{Code: "invalid_input", Message: "plan.rule: must be five fields"})), code: 2, stderr: []string{"plan.rule"}},
		{args: "schedules set new --rule @daily", serve: refuse(404, api.Problem{Code: "not_found", Message: "schedule not found"}), code: 2, stderr: []string{"needs --rule and --template"}},
		{args: "schedules set", code: 2, stderr: []string{"the form is"}},
		{args: "schedules frob", code: 2, stderr: []string{"unknown command"}},
	} {
		code, stdout, stderr := command{args: append(strings.Fields(c.args), "--url", "http://store.example"), serve: c.serve, env: map[string]string{"ROADSTEAD_API_KEY": "k"}}.run(t)
		if code != c.code {
			t.Errorf("%s: code %d: %s", c.args, code, stderr)
		}
		for _, want := range c.stdout {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: no %q in\n%s", c.args, want, stdout)
			}
		}
		for _, want := range c.stderr {
			if !strings.Contains(stderr, want) {
				t.Errorf("%s: no %q in\n%s", c.args, want, stderr)
			}
		}
	}
}

// What a change does not name stays as it is, and goes back at the revision it was read at.
func TestSchedulesSetSendsTheWholePlan(t *testing.T) {
	template := filepath.Join(t.TempDir(), "run.json")
	if err := os.WriteFile(template, []byte(`{"command": ["date"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, check := range map[string]func(c api.ScheduleChange) bool{
		"--rule @daily": func(c api.ScheduleChange) bool {
			return c.ExpectedRevision == 3 && c.Plan.Rule == "@daily" && c.Plan.Zone == "Europe/Berlin" && c.Plan.SpreadSeconds == 600 && c.Plan.CatchUp.Max == 3
		},
		"--catch-up last --catch-up-age 2d --spread 1h --revision 2": func(c api.ScheduleChange) bool {
			return c.ExpectedRevision == 2 && *c.Plan.CatchUp == api.CatchUp{Policy: "last", MaxAgeSeconds: 2 * 86400} && c.Plan.SpreadSeconds == 3600 && c.Plan.Refused == "retry"
		},
		"--template " + template: func(c api.ScheduleChange) bool { return string(c.Plan.Template) == `{"command":["date"]}` },
	} {
		var got api.ScheduleChange
		serve := inTurn(answer(nightly()), func(w http.ResponseWriter, r *http.Request) {
			if err := json.NewDecoder(r.Body).Decode(&got); err != nil || r.Method != "PUT" || r.URL.Query().Get("tenant") != "acme" {
				t.Errorf("%s %s: %v", r.Method, r.URL, err)
			}
			answer(nightly())(w, r)
		})
		all := append(strings.Fields("schedules set nightly --tenant acme --url http://store.example"), strings.Fields(args)...)
		code, _, stderr := command{args: all, serve: serve, env: map[string]string{"ROADSTEAD_API_KEY": "k"}}.run(t)
		if code != 0 || !check(got) {
			t.Errorf("%s: code %d %s, sent %+v", args, code, stderr, got)
		}
	}
}
