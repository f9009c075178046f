package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
)

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(context.Background())
}

// until waits for something that another goroutine or process does.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !cond(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 30 s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// Whatever the server answers or cuts while it is restarted, the job that runs is not said to have failed, and what it
// wrote of itself, whatever that is, keeps nobody from hearing of its end.
func TestServerAwayMakesNoJobFail(t *testing.T) {
	s := newServer(t, `echo "NaN of it" > "$ROADSTEAD_PROGRESS"; echo hello; sleep 1`)
	s.job.Secrets = []string{"token"}
	for _, kind := range []string{"starting", "secrets", "running", "logs", "report"} {
		s.refuse[kind] = []int{503, 0}
	}
	s.refuse["exchange"] = []int{500, 0}
	_, _ = begin(t, s, folder(t, s))
	if r := s.told(t); r.Outcome != "exited" || r.ExitCode != 0 || r.Fence != 3 {
		t.Errorf("%+v", r)
	}
	if s.unsaved != 0 {
		t.Error("acknowledged what was not on the disk")
	}
}

// A report is repeated, over a restart too and in the same bytes, until the server has it; then nothing of the Attempt is
// kept.
func TestReportIsRepeated(t *testing.T) {
	s := newServer(t, `exit 3`)
	dir := folder(t, s)
	away := make([]int, 1000)
	s.refuse["report"] = away
	_, stop := begin(t, s, dir)
	until(t, "a report is tried", func() bool { return s.count("report") >= 2 })
	kept, err := os.ReadFile(filepath.Join(dir, "reports", s.work.Attempt+".json"))
	if err != nil {
		t.Fatal(err)
	}
	stop()
	s.set(func() { s.refuse["report"] = []int{503} })
	_, stop = begin(t, s, dir)
	if r := s.told(t); r.Outcome != "exited" || r.ExitCode != 3 {
		t.Errorf("%+v", r)
	}
	if s.set(func() {}); s.reports[0] != string(kept) {
		t.Errorf("sent %s, kept %s", s.reports[0], kept)
	}
	until(t, "everything is forgotten", func() bool {
		a, _ := os.ReadDir(filepath.Join(dir, "assignments"))
		b, _ := os.ReadDir(filepath.Join(dir, "reports"))
		return len(a)+len(b) == 0
	})
	stop()
	if n, m := s.count("starting"), s.count("running"); n != 1 || m != 1 {
		t.Errorf("asked to start %d times, told that it runs %d times", n, m)
	}
}

// What can't be started is no start: the server is told the end alone (R10).
func TestWhatCannotStart(t *testing.T) {
	s := newServer(t, "")
	s.job.Command = []string{"no-such-program"}
	_, _ = begin(t, s, folder(t, s))
	if r := s.told(t); r.Outcome != "failed" || r.Reason != "cannot_start" || s.count("running") != 0 {
		t.Errorf("%+v; told that it runs %d times", r, s.count("running"))
	}
}

// A runner that is started again finds what its earlier process started, tells what was not told yet and starts nothing
// twice.
func TestRestartedRunnerFindsItsAttempts(t *testing.T) {
	s := newServer(t, `echo x >> "$ROADSTEAD_OUTPUTS/starts"; sleep 3; test "$(cat "$ROADSTEAD_OUTPUTS/starts")" = x`)
	dir := folder(t, s)
	s.refuse["running"] = make([]int, 1000)
	_, stop := begin(t, s, dir)
	until(t, "it runs", func() bool { return s.count("running") > 0 })
	stop()
	s.set(func() { s.refuse["running"] = nil })
	_, _ = begin(t, s, dir)
	if r := s.told(t); r.Outcome != "exited" || r.ExitCode != 0 {
		t.Errorf("%+v", r)
	}
	if s.set(func() {}); s.calls["running"] < 2 {
		t.Error("the server was never told that it runs")
	}
}

// A runner that took an Attempt over in an earlier life starts it only with a lease that it has heard of in this one: how
// old the other is, it can't know.
func TestFoundAttemptNeedsALease(t *testing.T) {
	s := newServer(t, `true`)
	dir := folder(t, s)
	r := open(t, s, dir)
	if err := r.state.saveAssignment(s.work); err != nil {
		t.Fatal(err)
	}
	s.silent = true
	_, _ = begin(t, s, dir)
	until(t, "it has leave to start", func() bool { return s.count("starting") > 0 })
	<-time.After(time.Second)
	if n := s.count("running"); n != 0 {
		t.Error("it was started without a lease")
	}
	s.set(func() { s.silent = false })
	if r := s.told(t); r.Outcome != "exited" {
		t.Errorf("%+v", r)
	}
}

// A lost Attempt is killed at once, its folder wiped and nothing reported (R15, R21).
func TestLostAttemptIsKilled(t *testing.T) {
	s := newServer(t, `sleep 50`)
	dir := folder(t, s)
	_, stop := begin(t, s, dir)
	until(t, "it runs", func() bool { return s.count("running") > 0 })
	s.set(func() { s.lost = true })
	until(t, "it is forgotten", func() bool {
		a, _ := os.ReadDir(filepath.Join(dir, "assignments"))
		b, _ := os.ReadDir(filepath.Join(dir, "attempts", "attempts"))
		return len(a)+len(b) == 0
	})
	stop()
	if n := s.count("report"); n != 0 {
		t.Errorf("%d reports of a lost Attempt", n)
	}
}

// An order that stands for as long as an Attempt takes to end, and a drain, are no reason to ask the server without a
// pause.
func TestStandingOrdersMakeNoStorm(t *testing.T) {
	for outcome, stand := range map[string]func(s *server){
		"cancelled": func(s *server) { s.cancel = true },
		"exited":    func(s *server) { s.drain = true },
	} {
		t.Run(outcome, func(t *testing.T) {
			s := newServer(t, `trap "" TERM; for i in 1 2 3 4 5 6; do sleep 0.5; done`)
			s.job.Grace = 2
			_, _ = begin(t, s, folder(t, s))
			until(t, "it runs", func() bool { return s.count("running") > 0 })
			s.set(func() { s.calls["exchange"] = 0; stand(s) })
			if r := s.told(t); r.Outcome != outcome {
				t.Errorf("%+v", r)
			}
			if n := s.count("exchange"); n > 12 {
				t.Errorf("%d calls in some seconds", n)
			}
		})
	}
}

// A file that changes while it is stored is given up, one that is no file is not waited for: neither holds up an Attempt
//
func TestStoringWhatChanges(t *testing.T) {
	s := newServer(t, ``)
	r := &Runner{client: newClient(s.URL)}
	h := &held{assignment: s.work}
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }() // only read from
	if err := root.WriteFile("f", []byte("some checkpoint"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.refuse["uploads"] = []int{503}
	s.onGrant = func() {
		if err := root.WriteFile("f", []byte("short"), 0o600); err != nil {
			t.Error(err)
		}
	}
	if _, err := r.store(t.Context(), h, root, "checkpoint", "f", "f"); !errors.Is(err, errChanged) {
		t.Errorf("a file that was cut: %v", err)
	}
	if err := syscall.Mkfifo(filepath.Join(root.Name(), "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.store(t.Context(), h, root, "checkpoint", "pipe", "pipe"); err == nil {
		t.Error("a pipe was stored")
	}
	s.onGrant = nil
	if out, err := r.store(t.Context(), h, root, "result", "f", "f"); err != nil || out != (api.JobResult{Name: "f", Digest: out.Digest, Size: 5}) {
		t.Errorf("%+v %v", out, err)
	}
}
