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

// routes answers by "METHOD path"; what isn't there is a teapot.
func routes(t *testing.T, m map[string]http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := m[r.Method+" "+r.URL.Path]
		if h == nil {
			t.Errorf("asked for %s %s", r.Method, r.URL)
			w.WriteHeader(http.StatusTeapot)
			return
		}
		h(w, r)
	}
}

func queuedRun() api.Run {
	position, early, start, late := 2, noon.Add(5*time.Minute), noon.Add(10*time.Minute), noon.Add(20*time.Minute)
	return api.Run{ID: "run_1", State: "queued", Package: "prices@1.0.0", Pool: "default", Class: "background", CreatedAt: noon, CreatedBy: "anna",
		Place: &api.Place{Known: true, Position: &position, StartP10: &early, StartP50: &start, StartP90: &late, Reason: "waiting_turn",
			Detail: "others come first by weight, or its runners are busy"}}
}

// What the flags say is what is asked for, each in its field.
func TestRunSaysWhatTheFlagsSay(t *testing.T) {
	manifest := api.PackageVersion{Manifest: &api.PackageManifest{Inputs: []api.PackageInput{
		{Name: "window", Type: "int"}, {Name: "title", Type: "string"}, {Name: "prices", Type: "file"}, {Name: "parts", Type: "file"}}}}
	for _, c := range []struct{ args, want string }{
		{"-- echo hi --wait", `{"command":["echo","hi","--wait"],"resources":{}}`},
		{"-p acme/prices@1.0.0 --pool fast --class build --priority -3 -- -v", `{"package":"acme/prices@1.0.0","command":["-v"],"pool":"fast","class":"build","priority":-3,"resources":{}}`},
		{"prices --timeout 90s --expected 1m --grace 1500ms --slots 2 --cpu 0.5 --memory 1GiB --disk 10GB", `{"package":"prices","timeoutSeconds":90,"expectedSeconds":60,"graceSeconds":2,` +
			`"resources":{"slots":2,"milliCpu":500,"memoryBytes":1073741824,"diskBytes":10000000000}}`},
		{"prices --array 0-99%10 --label sweep=june --placement zone=a", `{"package":"prices","resources":{},"placement":{"zone":"a"},"labels":{"sweep":"june"},"array":{"first":0,"last":99,"limit":10}}`},
		{"prices --array 7", `{"package":"prices","resources":{},"array":{"first":7,"last":7}}`},
		{"prices --retry 3,1 --not-before 12:30", `{"package":"prices","notBefore":"2026-11-30T12:30:00Z","resources":{},"retry":{"failures":3,"losses":1}}`},
		{"prices --retry never --key nightly --key-policy skip", `{"package":"prices","resources":{},"retry":{},"concurrency":{"key":"nightly","policy":"skip"}}`},
		{"prices --after run_a --after fail:run_b", `{"package":"prices","resources":{},"after":[{"run":"run_a","when":"ok"},{"run":"run_b","when":"fail"}]}`},
		{"-i prices=@data/p.csv -i parts=run:arr_1/part.csv -i window=30 -i title=30 -p prices", `{"package":"prices","resources":{},"after":[{"run":"arr_1","when":"ok"}],` +
			`"inputs":{"parts":{"result":{"run":"arr_1","output":"part.csv"}},"prices":{"file":"data/p.csv"},"title":{"value":"30"},"window":{"value":30}}}`},
		{"--image base/debian.tar --out sum=out/sum.txt --out log -e A=b=c --secret db -i n=5 -- sum", `{"image":"base/debian.tar","command":["sum"],"resources":{},"env":{"A":"b=c"},"secrets":["db"],` +
			`"inputs":{"n":{"value":"5"}},"outputs":[{"name":"sum","path":"out/sum.txt"},{"name":"log"}]}`},
	} {
		var got string
		serve := func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				answer(manifest)(w, r)
				return
			}
			got = strings.TrimSpace(readAll(t, r.Body))
			answer(api.Submitted{Count: 1, Runs: []api.Run{queuedRun()}})(w, r)
		}
		code, stdout, stderr := command{args: append([]string{"run", "--idempotency-key", "k"}, strings.Fields(c.args)...), serve: serve}.run(t)
		if code != 0 || stdout != "run_1\n" || got != c.want {
			t.Errorf("%s: code %d\nsent %s\nwant %s\n%s%s", c.args, code, got, c.want, stdout, stderr)
		}
	}
}

// What can't be meant is refused before anything is asked of the server.
func TestRunRefusesNonsense(t *testing.T) {
	file := filepath.Join(t.TempDir(), "batch.json")
	if err := os.WriteFile(file, []byte(`{"runs":[{"name":"a","run":{"packge":"p"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"run":                                 "name a package, or a command after --",
		"run a b":                             "what a command is given comes after --",
		"run a -p b":                          "name one package",
		"run a --array 9-1":                   "no element",
		"run a --array 0-9%0":                 "no element",
		"run a --array x":                     "must look like 0-99",
		"run a --retry often":                 "never",
		"run a --after soon:run_1":            "fail:RUN",
		"run a --key-policy skip":             "needs --key",
		"run a --label x":                     "NAME=VALUE",
		"run a --env A=1 --env A=2":           "gives A twice",
		"run a --input x":                     "NAME=VALUE",
		"run a --input x=run:run_1":           "x=run:RUN/OUTPUT",
		"run a --cpu -1":                      "--cpu",
		"run a --memory much":                 "2GiB",
		"run --out = -- true":                 "NAME=PATH",
		"run --batch " + file + " a":          "name one of them",
		"run --batch " + file + " --pool x":   "the file says it",
		"run --batch " + file:                 `unknown field "packge"`,
		"runs cancel":                         "select them with",
		"runs cancel run_1 --label a=b":       "not both",
		"runs list --limit 0":                 "at least 1",
		"runs results":                        "the form is",
		"run -o yaml -- true":                 "table or json",
		"runs frob":                           "unknown command",
		"runs list --label x":                 "NAME=VALUE",
		"run a --not-before soon":             "--not-before",
		"run --batch /nonexistent/batch.json": "no such file",
	} {
		code, _, stderr := command{args: strings.Fields(args), serve: func(http.ResponseWriter, *http.Request) { t.Errorf("%s: asked the server", args) }}.run(t)
		if code != exitUsage && !strings.Contains(args, "/nonexistent") || !strings.Contains(stderr, want) {
			t.Errorf("%s: code %d, %s", args, code, stderr)
		}
	}
}

// An int that is none is refused with the type; a file needs @ or run:.
func TestRunChecksInputsByTheManifest(t *testing.T) {
	serve := answer(api.PackageVersion{Manifest: &api.PackageManifest{Inputs: []api.PackageInput{{Name: "window", Type: "int"}, {Name: "prices", Type: "file"}}}})
	for args, want := range map[string]string{"window=x": "must be of type int", "prices=p.csv": "prices=@REPO/PATH"} {
		if code, _, stderr := (command{args: []string{"run", "prices", "--input", args}, serve: serve}).run(t); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d %s", args, code, stderr)
		}
	}
}

// Without --wait the answer is the id, with the place beside it; a dry run tells place, cost and blockers.
func TestRunWithoutWaiting(t *testing.T) {
	first := queuedRun()
	index := 0
	element := first
	element.Index, element.Array = &index, "arr_1"
	until := noon.Add(time.Hour - time.Millisecond)
	dry := first
	place := *first.Place
	place.CostMicro = 1_250_000
	dry.ID, dry.Place = "", &place
	for _, c := range []struct {
		args           string
		out            api.Submitted
		stdout, stderr string
	}{
		{"run p", api.Submitted{Count: 1, Runs: []api.Run{first}}, "run_1\n", "queued: 3rd, starts about 12:10 (in 10 min), between 12:05 and 12:20\n"},
		{"run p", api.Submitted{Count: 1, Runs: []api.Run{first}, Repeat: true}, "run_1\n", "*submitted before*"},
		{"run p --array 0-4", api.Submitted{Count: 5, Array: "arr_1", Runs: []api.Run{element}}, "arr_1\n", "5 Runs, indexes 0-4\n"},
		{"run p --dry-run", api.Submitted{Count: 1, DryRun: true, Runs: []api.Run{dry}, Blocked: []api.Blocker{{Reason: "not_before", Until: &until}}},
			"DRY RUN  \nruns     1\nplace    3rd, starts about 12:10 (in 10 min), between 12:05 and 12:20\ncost     at most 1.25 each\nblocked  not before, until 13:00 (in 1 h)\n", ""},
		{"run p -o json", api.Submitted{Count: 1, Runs: []api.Run{first}}, "*\"position\": 2*", ""},
		{"runs rerun run_0", api.Submitted{Count: 1, Runs: []api.Run{first}}, "run_1\n", "*queued: 3rd*"},
	} {
		code, stdout, stderr := command{args: strings.Fields(c.args), serve: answer(c.out)}.run(t)
		if code != 0 || !matches(stdout, c.stdout) || !matches(stderr, c.stderr) {
			t.Errorf("%s: code %d\n%s%s", c.args, code, stdout, stderr)
		}
	}
	full := refuse(429, api.Problem{Code: "rate_limited", Reason: "queue_full", Message: "pool default: 9 Runs are queued there"}, "Retry-After", "30")
	code, _, stderr := command{args: strings.Fields("run p --wait-limit 0s"), serve: full}.run(t)
	if code != exitNetwork || !strings.Contains(stderr, "not taken yet: the pool's queue is full, asking again in 30 s\n") || !strings.Contains(stderr, "not submitted: pool default: 9 Runs") {
		t.Errorf("a full queue: %d %s", code, stderr)
	}
}

// A key that was used for another submit is a conflict; 422 alone would read as wrong bytes.
func TestRunWithAUsedKey(t *testing.T) {
	serve := refuse(422, api.Problem{Code: "idempotency_mismatch", Message: "used before"})
	if code, _, stderr := (command{args: strings.Fields("run p --idempotency-key once"), serve: serve}).run(t); code != exitConflict {
		t.Errorf("%d %s", code, stderr)
	}
}

// The Runs of a batch carry labels to be found by, beside their own.
func TestRunBatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "batch.json")
	text := `{"runs":[{"name":"each","run":{"package":"p","array":{"first":0,"last":3}}},{"name":"join","run":{"package":"j","labels":{"a":"b"},"after":[{"run":"@each"}]}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var sent api.RunBatch
	serve := routes(t, map[string]http.HandlerFunc{"POST /api/v1/runs/batch": func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil || r.Header.Get("Idempotency-Key") != "june" {
			t.Error(err, r.Header)
		}
		answer(api.Submitted{Count: 5, Runs: []api.Run{{ID: "run_1"}, {ID: "run_2"}}})(w, r)
	}})
	code, stdout, stderr := command{args: []string{"run", "--batch", file, "--idempotency-key", "june"}, serve: serve}.run(t)
	if code != 0 || stdout != "run_1\nrun_2\n" || stderr != "find them again with --label roadctl.batch=june\nand 3 more\n" {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
	if got := labelWords(sent.Runs[1].Run.Labels); got != "a=b, roadctl.batch=june, roadctl.name=join" {
		t.Error(got)
	}
}
