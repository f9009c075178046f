package sdk

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roadstead/roadstead/api"
)

// Each call about Runs says the right thing to the right address.
func TestRunCallsOnTheWire(t *testing.T) {
	var got string
	c := serveJSON(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.URL.RequestURI() + " " + string(body)
		if r.Method == http.MethodPost && r.URL.Path != "/api/v1/runs/cancel" && r.URL.Path != "/api/v1/runs/r/cancel" && r.Header.Get("Idempotency-Key") == "" {
			t.Errorf("no key with %s", got)
		}
		_, _ = io.WriteString(w, "{}")
	})
	ctx := t.Context()
	labels := map[string]string{"team": "a b"}
	for _, tt := range []struct {
		want string
		call func() error
	}{
		{`POST /api/v1/runs {"command":["true"],"resources":{}}`, func() error {
			_, err := c.Submit(ctx, api.NewRun{Command: []string{"true"}}, Submission{})
			return err
		}},
		{`POST /api/v1/runs/batch {"runs":[{"name":"a","run":{"package":"p","resources":{}}}]}`, func() error {
			_, err := c.SubmitBatch(ctx, api.RunBatch{Runs: []api.BatchRun{{Name: "a", Run: api.NewRun{Package: "p"}}}}, Submission{})
			return err
		}},
		{"POST /api/v1/runs/r/rerun ", func() error { _, err := c.Rerun(ctx, "r", Submission{}); return err }},
		{"GET /api/v1/runs/r%2F1 ", func() error { _, err := c.Run(ctx, "r/1"); return err }},
		{"GET /api/v1/runs?all=true&array=a&label=team%3Da+b&limit=50&package=p&pool=x&state=queued&state=active ", func() error {
			f := RunFilter{States: []string{"queued", "active"}, Pool: "x", Package: "p", Array: "a", Labels: labels, All: true}
			_, err := first(c.Runs(ctx, f, 50))
			return err
		}},
		{"POST /api/v1/runs/r/cancel ", func() error { _, err := c.CancelRun(ctx, "r"); return err }},
		{"POST /api/v1/runs/cancel?label=team%3Da+b ", func() error { _, err := c.CancelRuns(ctx, RunFilter{Labels: labels}); return err }},
		{"GET /api/v1/runs/r/events?after=7&limit=1000 ", func() error { _, err := first(c.RunEvents(ctx, "r", 7)); return err }},
		{"GET /api/v1/runs/r/logs?after=0&limit=1000 ", func() error { _, err := first(c.RunLogs(ctx, "r", 0)); return err }},
	} {
		if err := tt.call(); err != nil || got != tt.want {
			t.Errorf("%v: sent %q, want %q", err, got, tt.want)
		}
	}
	if _, err := c.CancelRuns(ctx, RunFilter{All: true}); err == nil {
		t.Error("everything may be cancelled by mistake")
	}
}

// first is the first item of a listing, if there is one.
func first[T any](seq func(func(T, error) bool)) (item T, err error) {
	seq(func(i T, e error) bool { item, err = i, e; return false })
	return item, err
}

// A submit whose answer was lost is sent again with the same key, so that it has its effect once.
func TestSubmitIsRepeatedWithItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys []string
		f := &fake{other: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if keys = append(keys, r.Header.Get("Idempotency-Key")); len(keys) < 3 {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			if r.Header.Get("traceparent") != "00-x" {
				t.Error("the trace is lost")
			}
			_ = json.NewEncoder(w).Encode(api.Submitted{Count: 1, Repeat: true})
		})}
		out, err := newClient(t, f, Retry{}).Submit(t.Context(), api.NewRun{Package: "p"}, Submission{Traceparent: "00-x"})
		if err != nil || !out.Repeat || len(keys) != 3 || keys[0] == "" || keys[1] != keys[0] || keys[2] != keys[0] {
			t.Errorf("%v, %+v, keys %q", err, out, keys)
		}
	})
}

// A full queue is asked again when it says so, up to the wait limit; then its words come back.
func TestSubmitWaitsForAFullQueue(t *testing.T) {
	full := api.Problem{Code: "rate_limited", Reason: "queue_full", Message: "pool default: 9 Runs are queued there"}
	for _, c := range []struct {
		name    string
		refused int // so many times
		limit   time.Duration
		most    time.Duration
		asked   int
		fails   bool
	}{
		{"it empties", 3, 0, 100 * time.Second, 4, false},
		{"it stays full", 1000, time.Minute, 62 * time.Second, 3, true},
		{"not to be waited for", 1, -1, 0, 1, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			n, begin, l := 0, time.Now(), &log{}
			f := &fake{other: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if n++; n <= c.refused {
					_ = problem(429, full, "Retry-After", "30")(w, r)
					return
				}
				_, _ = io.WriteString(w, "{}")
			})}
			_, err := newClient(t, f, Retry{}).Submit(t.Context(), api.NewRun{Package: "p"}, Submission{WaitLimit: c.limit, Events: l.add})
			took := time.Since(begin)
			if (err != nil) != c.fails || took > c.most || n != c.asked || len(eventsOf[Waiting](l)) == 0 {
				t.Errorf("%s: %v after %v, asked %d times", c.name, err, took, n)
			}
			if refusal, ok := errors.AsType[*Error](err); c.fails && (!errors.Is(err, ErrWaitLimit) || !ok || refusal.Reason != "queue_full") {
				t.Errorf("%s: the refusal is lost in %v", c.name, err)
			}
		})
	}
}

// Events and lines come page by page, up to the present end.
func TestChaptersAreWalked(t *testing.T) {
	c := serveJSON(t, func(w http.ResponseWriter, r *http.Request) {
		after := r.URL.Query().Get("after")
		page := map[string]any{"items": []api.LogLine{}, "ended": true}
		if after == "0" || after == "1000" {
			var lines []api.LogLine
			var from int64
			if after == "1000" {
				from = 1000
			}
			for i := range int64(1000) {
				lines = append(lines, api.LogLine{Seq: from + i + 1})
			}
			page["items"], page["ended"] = lines, false
		}
		_ = json.NewEncoder(w).Encode(page)
	})
	last, n := int64(0), 0
	for line, err := range c.RunLogs(t.Context(), "r", 0) {
		if err != nil || line.Seq != last+1 {
			t.Fatalf("%v, line %d after %d", err, line.Seq, last)
		}
		last = line.Seq
		n++
	}
	if n != 2000 {
		t.Errorf("%d lines", n)
	}
}

// A result is a download like any: it waits its turn, and only verified bytes are put in place (R-6.4, D-8.5).
func TestDownloadResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{object: content(2500), script: []step{queued("t", api.Wait{}, "2")}}
		c := newClient(t, f, Retry{})
		file := filepath.Join(t.TempDir(), "table.csv")
		r, err := c.DownloadResult(t.Context(), "run_1", "table.csv", Download{File: file, Digest: digestOf(f.object)})
		if err != nil || !r.Verified || r.Size != 2500 {
			t.Fatalf("%+v %v", r, err)
		}
		if got := f.requests[0].Get("Test-URL"); got != "http://store.test/api/v1/runs/run_1/results/table.csv" {
			t.Error(got)
		}
		if f.requests[0].Get("Authorization") == "" {
			t.Error("asked without the key")
		}
		_, err = c.DownloadResult(t.Context(), "run_1", "table.csv", Download{File: file, Digest: digestOf([]byte("other"))})
		if !errors.Is(err, ErrChanged) {
			t.Errorf("other bytes than the Run's: %v", err)
		}
	})
}
