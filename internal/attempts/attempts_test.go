package attempts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/runs"
)

const secret = "open-sesame"

func mask(line string) string { return strings.ReplaceAll(line, secret, "***") }

var caller = Caller{Runner: "r1", Pool: "p"}

func service(t *testing.T, w *world) *Service {
	t.Helper()
	n := 0
	s, err := New(Config{NewID: func() string { n++; return fmt.Sprint(n) }}, Ports{Records: w, Objects: stored{w}, Secrets: open{}, Usable: open{}, News: open{}}, w)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// reported is an Attempt with an uploaded result whose runner has reported success.
func reported(t *testing.T, w *world, s *Service) api.JobReport {
	t.Helper()
	w.spec.Outputs = []api.Output{{Name: "x"}}
	w.assign("a", 1, lifecycle.Running)
	digest := "sha256:" + strings.Repeat("0", 64)
	g, err := s.GrantUpload(t.Context(), caller, "a", api.NewGrant{Fence: 1, Kind: "result", Name: "x", Digest: digest, Size: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Upload(t.Context(), g.Grant, 2, strings.NewReader("hi")); err != nil {
		t.Fatal(err)
	}
	return api.JobReport{Fence: 1, Outcome: "exited", Manifest: []api.JobResult{{Name: "x", Digest: digest, Size: 2}}}
}

var errAway = errors.New("the object store is away")

// While the object store is away nothing succeeds: the Attempt stays finalizing, and is taken up again when the store is
// back. The runner's repeated report changes nothing of it.
func TestVerificationWaitsForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := service(t, w)
		report := reported(t, w, s)
		w.broken = errAway
		ctx, stop := context.WithCancel(t.Context())
		go func() { _ = s.Run(ctx) }()
		for range 3 {
			out, err := s.Report(t.Context(), caller, "a", report)
			if err != nil || out.State != "finalizing" {
				t.Fatalf("%+v %v", out, err)
			}
			<-time.After(time.Minute)
		}
		w.mu.Lock()
		w.broken = nil
		w.mu.Unlock()
		<-time.After(5 * time.Second)
		out, err := s.Report(t.Context(), caller, "a", report)
		if err != nil || out.State != "succeeded" || len(w.ends) != 1 || len(w.ends[0].Results) != 1 {
			t.Errorf("%+v %v; %+v", out, err, w.ends)
		}
		stop()
		synctest.Wait()
	})
}

// A store that stays away ends the Attempt after the limit, and no jump of the clock on the wall does so before, or keeps
// it from being taken up (R-6.4, R26).
func TestVerificationHasALimit(t *testing.T) {
	for name, jump := range map[string]time.Duration{"none": 0, "forty days ahead": 40 * 24 * time.Hour, "nine years back": -9 * 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				s := service(t, w)
				report := reported(t, w, s)
				w.broken = errAway
				ctx, stop := context.WithCancel(t.Context())
				go func() { _ = s.Run(ctx) }()
				if _, err := s.Report(t.Context(), caller, "a", report); err != nil {
					t.Fatal(err)
				}
				w.mu.Lock()
				w.jump = jump
				w.mu.Unlock()
				<-time.After(50 * time.Second)
				if w.mu.Lock(); len(w.ends) != 0 {
					t.Errorf("it ended at once: %+v", w.ends)
				}
				w.mu.Unlock()
				<-time.After(10 * time.Minute)
				if w.mu.Lock(); len(w.ends) != 1 || w.ends[0].Reason != lifecycle.ResultsUnverified {
					t.Errorf("after the limit: %+v", w.ends)
				}
				w.mu.Unlock()
				stop()
				synctest.Wait()
			})
		})
	}
}

// The first report counts: the same again is the same answer, another one a conflict, an old fence is lost (R-6.7, R15).
func TestReports(t *testing.T) {
	w := newWorld()
	s := service(t, w)
	report := reported(t, w, s)
	for range 2 {
		if out, err := s.Report(t.Context(), caller, "a", report); err != nil || out.State != "succeeded" || out.Reason != "done" {
			t.Errorf("%+v %v", out, err)
		}
	}
	other := report
	other.ExitCode = 1
	if _, err := s.Report(t.Context(), caller, "a", other); !fault.Is(err, fault.Conflict) {
		t.Errorf("another report: %v", err)
	}
	other.Fence = 2
	if _, err := s.Report(t.Context(), caller, "a", other); fault.From(err).Reason != api.ReasonLeaseLost {
		t.Errorf("another fence: %v", err)
	}
	if len(w.ends) != 1 {
		t.Errorf("it ended %d times", len(w.ends))
	}
}

// An exchange is held until there is news and not longer than a heartbeat; an assignment is repeated until it is
// acknowledged, one that was begun is never sent again, and orders and the server's stop come at once.
func TestExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := service(t, w)
		exchange := func(ack int64, holds ...string) (api.Exchanged, time.Duration) {
			in := api.Exchange{Protocol: api.RunnerProtocol, Acknowledged: ack, WaitSeconds: 30}
			for _, id := range holds {
				in.Holds = append(in.Holds, api.HeldLease{Attempt: id, Fence: 1})
			}
			from := time.Now()
			out, err := s.Exchange(t.Context(), caller, in)
			if err != nil {
				t.Fatal(err)
			}
			return out, time.Since(from)
		}
		if out, took := exchange(0); took != 10*time.Second || len(out.Assignments) != 0 {
			t.Errorf("without news: %v, %+v", took, out)
		}
		go func() {
			<-time.After(300 * time.Millisecond)
			w.assign("a", 1, lifecycle.Assigned)
			s.Wake("r1")
		}()
		if out, took := exchange(0); took != 300*time.Millisecond || len(out.Assignments) != 1 || out.Sequence != 1 {
			t.Errorf("an assignment: %v, %+v", took, out)
		}
		if out, took := exchange(0); took != 0 || len(out.Assignments) != 1 {
			t.Errorf("not acknowledged: %v, %+v", took, out)
		}
		if out, _ := exchange(1); len(out.Assignments) != 0 || w.acked != 1 {
			t.Errorf("acknowledged: %+v", out)
		}
		w.assign("a", 1, lifecycle.Starting)
		if out, _ := exchange(0); len(out.Assignments) != 0 {
			t.Errorf("begun, and sent again: %+v", out)
		}
		w.cancel["run-a"] = true
		if out, took := exchange(1, "a", "stranger"); took != 0 || len(out.Orders) != 2 || out.Orders[0].Order != "cancel" || out.Orders[1] != (api.Order{Attempt: "stranger", Order: "lost"}) {
			t.Errorf("orders: %v, %+v", took, out)
		}
		s.Drain()
		if _, took := exchange(1); took != 0 {
			t.Errorf("a server that stops holds the call for %v", took)
		}
	})
}

// A server speaks its own version of the protocol and the one before, and names both to others.
func TestProtocol(t *testing.T) {
	s := service(t, newWorld())
	for version, good := range map[int]bool{api.RunnerProtocol: true, api.RunnerProtocol - 1: api.RunnerProtocol > 1, api.RunnerProtocol + 1: false, -1: false} {
		err := CheckProtocol(version)
		if good != (err == nil) || err != nil && !fault.Is(err, fault.InvalidInput) {
			t.Errorf("version %d: %v", version, err)
		}
	}
	if _, err := s.Exchange(t.Context(), caller, api.Exchange{Protocol: api.RunnerProtocol + 1}); !fault.Is(err, fault.InvalidInput) {
		t.Errorf("an exchange with a newer runner: %v", err)
	}
}

// A grant is for one output or checkpoint of the Run, and good for an upload that takes longer than it lives.
func TestGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := service(t, w)
		report := reported(t, w, s)
		good := api.NewGrant{Fence: 1, Kind: "result", Name: "x", Digest: report.Manifest[0].Digest, Size: 2}
		for field, spoil := range map[string]func(g *api.NewGrant){
			"no output": func(g *api.NewGrant) { g.Name = "y" }, "a kind": func(g *api.NewGrant) { g.Kind = "log" }, "negative": func(g *api.NewGrant) { g.Size = -1 },
			"too large": func(g *api.NewGrant) { g.Size = 1 << 62 }, "a path": func(g *api.NewGrant) { g.Kind, g.Name = "checkpoint", "../x" },
		} {
			bad := good
			spoil(&bad)
			if _, err := s.GrantUpload(t.Context(), caller, "a", bad); !fault.Is(err, fault.InvalidInput) {
				t.Errorf("%s: %v", field, err)
			}
		}
		g, err := s.GrantUpload(t.Context(), caller, "a", good)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Upload(t.Context(), g.Grant, 3, strings.NewReader("hi!")); !fault.Is(err, fault.IntegrityMismatch) {
			t.Errorf("another length: %v", err)
		}
		if err := s.Upload(t.Context(), g.Grant, 2, slow{strings.NewReader("hi"), 20 * time.Minute}); err != nil {
			t.Errorf("a slow upload: %v", err)
		}
		if err := s.Upload(t.Context(), g.Grant, 2, strings.NewReader("hi")); !fault.Is(err, fault.NotFound) {
			t.Errorf("an old grant: %v", err)
		}
	})
}

// slow takes its time before it is read.
type slow struct {
	io.Reader
	wait time.Duration
}

func (s slow) Read(p []byte) (int, error) {
	<-time.After(s.wait)
	return s.Reader.Read(p)
}

// A secret is hidden before a long line is cut, so that no half of it is left.
func TestLogsAreMaskedBeforeTheyAreCut(t *testing.T) {
	w := newWorld()
	s := service(t, w)
	w.assign("a", 1, lifecycle.Running)
	line := strings.Repeat("x", maxLine-6) + secret
	if err := s.Logs(t.Context(), caller, "a", api.JobLogs{Fence: 1, First: 1, Lines: []api.JobLine{{Stream: "stdout", Text: line}}}); err != nil {
		t.Fatal(err)
	}
	if got := w.lines[0].Text; len(got) > maxLine || strings.Contains(got, secret[:5]) {
		t.Errorf("stored: ...%s", got[len(got)-20:])
	}
}

// What a job costs is the time of its slots as the server saw it, at most what was held.
func TestCost(t *testing.T) {
	w := newWorld()
	w.spec.PriceMicro, w.spec.HoldMicro, w.spec.Resources.Slots = 10, 1000, 2
	w.assign("a", 1, lifecycle.Running)
	a := *w.attempts["a"]
	at := time.Now()
	if c := cost(a, w.spec, at); c != 0 {
		t.Errorf("never started: %d", c)
	}
	a.StartedAt = at
	for took, want := range map[time.Duration]int64{0: 0, 3 * time.Second: 60, time.Hour: 1000, -time.Hour: 0} {
		if c := cost(a, w.spec, at.Add(took)); c != want {
			t.Errorf("%v cost %d, not %d", took, c, want)
		}
	}
}

// away is a catalog that answers with an error.
type away struct{ err error }

func (a away) Check(context.Context, string, runs.Spec) error { return a.err }

// While the catalog is away nothing new starts, and nothing ends for it; a package that may not be used any more ends the
// Attempt at once, with its reason, and it holds nothing (R-6.5, R10).
func TestStartAsksTheCatalog(t *testing.T) {
	w := newWorld()
	s := service(t, w)
	w.assign("a", 1, lifecycle.Assigned)
	s.ports.Usable = away{errAway}
	if _, err := s.Start(t.Context(), caller, "a", 1); !errors.Is(err, errAway) || len(w.ends) != 0 {
		t.Errorf("%v; %+v", err, w.ends)
	}
	s.ports.Usable = open{}
	if job, err := s.Start(t.Context(), caller, "a", 1); err != nil || job.Attempt != "a" {
		t.Errorf("%+v %v", job, err)
	}
	w.assign("b", 2, lifecycle.Assigned)
	s.ports.Usable = away{fault.Missing("package")}
	if _, err := s.Start(t.Context(), caller, "b", 1); fault.From(err).Reason != api.ReasonLeaseLost {
		t.Errorf("the runner is told %v", err)
	}
	if len(w.ends) != 1 || w.ends[0].Reason != lifecycle.PackageUnavailable || w.ends[0].State != lifecycle.AttemptFailed {
		t.Errorf("%+v", w.ends)
	}
}
