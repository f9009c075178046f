package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

// endedRun is a Run with one Attempt, in the state and for the reason.
func endedRun(state, reason string, exit int) api.Run {
	r := queuedRun()
	begun, ended := noon.Add(-2*time.Minute), noon.Add(-time.Minute)
	r.Place, r.State, r.Reason, r.StartedAt, r.EndedAt = nil, state, reason, &begun, &ended
	r.Spec = &api.NewRun{Package: "prices", Command: []string{"-v"}}
	r.Attempts = []api.Attempt{{ID: "att_1", Number: 1, State: state, Reason: reason, Runner: "run-a", ExitCode: &exit, Usage: &api.Usage{WallMillis: 60_000, CPUMillis: 1_500, MemoryBytes: 5e6}}}
	return r
}

func resultOf(name, text string) api.Result {
	return api.Result{Name: name, Size: int64(len(text)), Digest: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text)))}
}

// told is a Run's stream.
func told(messages ...any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i, m := range messages {
			name := "event"
			if _, isLine := m.(api.LogLine); isLine {
				name = "log"
			}
			text, _ := json.Marshal(m)
			_, _ = fmt.Fprintf(w, "id: %d.0\nevent: %s\ndata: %s\n\n", i+1, name, text)
		}
		_, _ = fmt.Fprint(w, "id: 99.0\nevent: end\ndata: {}\n\n")
	}
}

// One who waits hears the place, then what the Run writes where it writes it, then the results; the exit code is the
// Run's outcome.
func TestRunWaits(t *testing.T) {
	done := endedRun("succeeded", "done", 0)
	done.Results = []api.Result{resultOf("table.csv", "a,b\n"), resultOf("chart.svg", "<svg/>")}
	stream := told(api.RunEvent{Seq: 1, Kind: "submitted"}, api.LogLine{Stream: "stdout", Text: "reading\tall"}, api.LogLine{Stream: "stderr", Text: "careful"},
		api.RunEvent{Seq: 2, Kind: "retry", Reason: "lease_lost", At: noon}, api.LogLine{Stream: "system", Text: "ended"})
	serve := func(end api.Run) http.HandlerFunc {
		return routes(t, map[string]http.HandlerFunc{
			"POST /api/v1/runs": answer(api.Submitted{Count: 1, Runs: []api.Run{queuedRun()}}), "GET /api/v1/runs/run_1/follow": stream,
			"GET /api/v1/runs/run_1": answer(end), "GET /api/v1/runs/run_1/results/table.csv": object([]byte("a,b\n")), "GET /api/v1/runs/run_1/results/chart.svg": object([]byte("<svg/>")),
		})
	}
	code, stdout, stderr := command{args: strings.Fields("run prices --wait"), serve: serve(done)}.run(t)
	if code != 0 || stdout != "reading\tall\n" {
		t.Errorf("code %d, stdout %q", code, stdout)
	}
	for _, want := range []string{"run_1\n", "queued: 3rd, starts about 12:10", "careful\n", "ended\n", "12:00:00  retry: lease lost\n", "run_1: succeeded, after 1 min\n", "result table.csv, 4 B\n", "roadctl runs results run_1 --dir DIR"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no %q in\n%s", want, stderr)
		}
	}
	dir := filepath.Join(t.TempDir(), "out")
	code, stdout, stderr = command{args: []string{"run", "prices", "--results", dir, "-o", "json"}, serve: serve(done)}.run(t)
	text, err := os.ReadFile(filepath.Join(dir, "table.csv"))
	var shown api.Run
	if code != 0 || err != nil || string(text) != "a,b\n" || json.Unmarshal([]byte(stdout), &shown) != nil || shown.State != "succeeded" || !strings.Contains(stderr, "reading\tall\n") {
		t.Errorf("code %d, %v %q\n%s%s", code, err, text, stdout, stderr)
	}
	for _, c := range []struct {
		state, reason string
		exit, code    int
		words         string
	}{
		{"failed", "exit_code", 3, 1, "run_1: failed with exit code 3, after 1 min\nerror: the Run failed\nto do: see \"roadctl runs show run_1\"\n"},
		{"interrupted", "lease_lost", 0, 9, "interrupted: lease lost"}, {"cancelled", "cancel_requested", 0, 10, "cancelled: cancel requested"}, {"expired", "too_old", 0, 11, "expired: too old"},
	} {
		code, _, stderr := command{args: strings.Fields("runs wait run_1"), serve: serve(endedRun(c.state, c.reason, c.exit))}.run(t)
		if code != c.code || !strings.Contains(stderr, c.words) {
			t.Errorf("%s: code %d\n%s", c.state, code, stderr)
		}
	}
}

// A result whose name leads elsewhere is not written.
func TestResultsStayInTheirFolder(t *testing.T) {
	r := endedRun("succeeded", "done", 0)
	r.Results = []api.Result{resultOf("../evil", "x")}
	dir := t.TempDir()
	code, _, stderr := command{args: []string{"runs", "results", "run_1", "-d", filepath.Join(dir, "in")}, serve: answer(r)}.run(t)
	left, _ := os.ReadDir(dir)
	if code == 0 || len(left) != 0 {
		t.Errorf("code %d, left %v\n%s", code, left, stderr)
	}
}

// Ctrl-C ends the waiting and not the Run, and says how to look again.
func TestInterruptedWaitGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		serve := func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/follow"):
				<-r.Context().Done()
			case r.Method == http.MethodPost:
				answer(api.Submitted{Count: 1, Runs: []api.Run{queuedRun()}})(w, r)
			default:
				answer(queuedRun())(w, r)
			}
		}
		time.AfterFunc(5*time.Second, func() { cancel(errInterrupted) })
		code, _, stderr := command{args: strings.Fields("run prices -w"), serve: serve, ctx: ctx}.run(t)
		if code != exitInterrupt || !strings.Contains(stderr, "interrupted\nkept: run_1 goes on; look again with \"roadctl runs wait run_1\"\n") || strings.Count(stderr, "3rd") != 1 {
			t.Errorf("code %d\n%s", code, stderr)
		}
	})
}

// An array is waited for as a whole; the worst end of its elements is the exit code.
func TestArrayIsWaitedFor(t *testing.T) {
	element := func(i int, state string) api.Run {
		r := endedRun(state, "", 0)
		r.ID, r.Array, r.Index = fmt.Sprintf("run_%d", i), "arr_1", &i
		r.Results = []api.Result{resultOf("part.csv", "x")}
		return r
	}
	wait := func(last, dir string) (int, string, string) {
		var code int
		var stdout, stderr string
		synctest.Test(t, func(t *testing.T) {
			looks := 0
			serve := func(w http.ResponseWriter, r *http.Request) {
				q := r.URL.Query()
				switch {
				case r.Method == http.MethodPost:
					answer(api.Submitted{Count: 3, Array: "arr_1", Runs: []api.Run{queuedRun()}})(w, r)
				case strings.HasSuffix(r.URL.Path, "/part.csv"):
					object([]byte("x"))(w, r)
				case r.URL.Path == "/api/v1/runs/run_0":
					answer(element(0, "succeeded"))(w, r)
				case r.URL.Path == "/api/v1/runs/run_1":
					answer(element(1, "succeeded"))(w, r)
				case q.Get("array") != "arr_1":
					t.Errorf("asked for %s", r.URL)
				case q.Get("state") == "":
					answer(api.Page[api.Run]{Items: []api.Run{element(0, "succeeded"), element(1, "succeeded"), element(2, last)}})(w, r)
				default:
					if looks++; looks > 2 {
						answer(api.Page[api.Run]{})(w, r)
						return
					}
					answer(api.Page[api.Run]{Items: []api.Run{element(1, "active"), element(2, "queued")}})(w, r)
				}
			}
			code, stdout, stderr = command{args: []string{"run", "p", "--array", "0-2", "--results", dir}, serve: serve}.run(t)
		})
		return code, stdout, stderr
	}
	dir := t.TempDir()
	code, _, stderr := wait("failed", dir)
	if code != 1 || !strings.Contains(stderr, "array arr_1: 3 Runs\n1 queued, 1 active\n") || !strings.Contains(stderr, "arr_1: 2 succeeded, 1 failed\n") || !strings.Contains(stderr, "error: 1 of 3 Runs failed\n") || !strings.Contains(stderr, "roadctl runs list --array arr_1 --state failed") {
		t.Errorf("code %d\n%s", code, stderr)
	}
	for _, file := range []string{"0/part.csv", "1/part.csv"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
	if code, _, stderr := wait("interrupted", dir); code != 9 {
		t.Errorf("code %d\n%s", code, stderr)
	}
}

func TestRunsOutput(t *testing.T) {
	failed := endedRun("failed", "exit_code", 3)
	failed.Labels, failed.SpentMicro, failed.Priority = map[string]string{"b": "2", "a": "1"}, 10_000, 2
	active := queuedRun()
	begun := noon.Add(-time.Minute)
	active.ID, active.State, active.Place, active.StartedAt, active.CancelRequested = "run_2", "active", nil, &begun, true
	active.Attempts = []api.Attempt{{Number: 2, State: "running", StartedAt: &begun}}
	active.Progress = &api.Progress{Fraction: 0.25, Message: "half\x1b way"}
	done := endedRun("succeeded", "done", 0)
	done.Results = []api.Result{resultOf("table.csv", "a,b\n")}
	lines := map[string]any{"items": []api.LogLine{{Seq: 1, Stream: "stdout", Text: "one", At: noon}, {Seq: 2, Stream: "stderr", Text: "two", At: noon}}, "ended": true}
	events := map[string]any{"items": []api.RunEvent{{Seq: 1, Kind: "submitted", At: noon}, {Seq: 2, Kind: "failed", At: noon, Reason: "exit_code", Detail: "3", Attempt: "att_1"}}, "ended": true}
	cancelled := endedRun("cancelled", "cancel_requested", 0)
	for _, c := range []struct {
		args           string
		serve          http.HandlerFunc
		code           int
		stdout, stderr string
	}{
		{args: "runs list", serve: answer(api.Page[api.Run]{Items: []api.Run{queuedRun(), active, failed}}), stdout: "" +
			"RUN    STATE   WHAT          POOL     MADE             TOOK   REASON\n" +
			"run_1  queued  prices@1.0.0  default  12:00 (0 s ago)  -      3rd, starts about 12:10 (in 10 min), between 12:05 and 12:20\n" +
			"run_2  active  prices@1.0.0  default  12:00 (0 s ago)  1 min  -\n" +
			"run_1  failed  prices@1.0.0  default  12:00 (0 s ago)  1 min  ended with an error\n"},
		{args: "runs ls --limit 1", serve: answer(api.Page[api.Run]{Items: []api.Run{active, active}}), stdout: "*run_2*", stderr: "there are more; see them with a larger --limit\n"},
		{args: "runs show run_1", serve: answer(failed), stdout: "*priority  2\ncost      0.01\n\nATTEMPT  STATE   REASON               EXIT  RUNNER  TOOK   CPU  MEMORY\natt_1    failed  ended with an error  3     run-a   1 min  2 s  5.0 MB\n"},
		{args: "runs show run_1", serve: answer(failed), stdout: "*what      prices@1.0.0 -v\n*"},
		{args: "runs show run_1", serve: answer(done), stdout: "*table.csv  4 B*"},
		{args: "runs show run_1 -o json", serve: answer(failed), stdout: "*\"exitCode\": 3*"},
		{args: "runs why run_1", serve: answer(queuedRun()), stdout: "queued: 3rd, starts about 12:10 (in 10 min), between 12:05 and 12:20; others come first by weight, or its runners are busy\n"},
		{args: "runs why run_2", serve: answer(active), stdout: "running, try 2 for 1 min, to be cancelled, 25 % half? way\n"},
		{args: "runs why run_1 -o json", serve: answer(failed), stdout: "*\"reason\": \"exit_code\"*"},
		{args: "runs logs run_1", serve: answer(lines), stdout: "one\ntwo\n"},
		{args: "runs logs run_1 -t", serve: answer(lines), stdout: "12:00:00.000 stdout: one\n12:00:00.000 stderr: two\n"},
		{args: "runs logs run_1 -f", serve: told(api.RunEvent{Kind: "running"}, api.LogLine{Text: "live"}), stdout: "live\n"},
		{args: "runs logs run_1 -o json", serve: answer(lines), stdout: "*\"text\":\"two\"}\n"},
		{args: "runs events run_1", serve: answer(events), stdout: "12:00:00  submitted\n12:00:00  failed: ended with an error (3)  att_1\n"},
		{args: "runs events run_1 -f", serve: told(api.LogLine{Text: "live"}, api.RunEvent{Kind: "running", At: noon}), stdout: "12:00:00  running\n"},
		{args: "runs results run_1", serve: answer(done), stdout: "*table.csv  4 B*"},
		{args: "runs results run_1 gone", serve: answer(done), code: 2, stderr: "*no result \"gone\"*"},
		{args: "runs results run_1", serve: answer(failed), stdout: "RESULT  SIZE  TYPE  DIGEST\n", stderr: "run_1 has no results: failed with exit code 3, after 1 min\n"},
		{args: "runs cancel run_1 run_1", serve: answer(cancelled), stderr: "run_1: cancelled: cancel requested, after 1 min\nrun_1: cancelled: cancel requested, after 1 min\n"},
		{args: "runs cancel run_9", serve: refuse(404, api.Problem{Code: "not_found", Message: "Run run_9 not found"}), code: 1, stderr: "*roadctl runs list*"},
		{args: "runs cancel --pool p", serve: answer(api.Page[api.Run]{Items: []api.Run{active, active}}), code: 2, stderr: "*2 Runs would be cancelled; add --yes to do it*"},
		{args: "runs cancel --pool p --state queued --yes", serve: inTurn(answer(api.Page[api.Run]{Items: []api.Run{queuedRun(), done}}), at("/api/v1/runs/run_1/cancel")), stdout: "1 Run cancelled\n"},
		{args: "runs cancel --pool p --yes", serve: answer(map[string]int{"cancelled": 2}), stdout: "2 Runs cancelled\n"},
	} {
		code, stdout, stderr := command{args: strings.Fields(c.args), serve: c.serve}.run(t)
		if code != c.code || !matches(stdout, c.stdout) || !matches(stderr, c.stderr) {
			t.Errorf("%s: code %d\nstdout:\n%s\nstderr:\n%s", c.args, code, stdout, stderr)
		}
	}
}

// A terminal gets no control characters of strangers, and one line that is repainted below what the Run writes.
func TestScreenOfATerminal(t *testing.T) {
	var out, errs strings.Builder
	a := &app{out: &out, err: &errs, now: func() time.Time { return noon }, errTTY: true, outTTY: true}
	s := &screen{a: a}
	s.status("queued: next")
	if err := s.message(sdk.RunMessage{Log: &api.LogLine{Stream: "stdout", Text: "red\x1b[31m\ttext"}}); err != nil {
		t.Fatal(err)
	}
	s.clear()
	if out.String() != "red?[31m\ttext\n" || errs.String() != "\r\x1b[2Kqueued: next\r\x1b[2K\r\x1b[2Kqueued: next\r\x1b[2K" {
		t.Errorf("%q %q", out.String(), errs.String())
	}
}
