package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/executor"
	"github.com/roadstead/roadstead/internal/executor/folder"
	"github.com/roadstead/roadstead/internal/executor/sandbox"
	"github.com/roadstead/roadstead/internal/fault"
)

// payload is the program that is supervisor, stage and job here, without a C library, so that it runs in any image.
var payload string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "roadstead-payload-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		payload = filepath.Join(dir, "payload")
		cmd := exec.Command("go", "build", "-o", payload, "./testdata/payload")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		err = cmd.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build the payload:", err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir) // only binaries
	os.Exit(code)
}

func config(t *testing.T) executor.Config {
	dir := t.TempDir()
	for d := dir; strings.HasPrefix(d, os.TempDir()) && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return executor.Config{Dir: filepath.Join(dir, "runner"), Command: []string{payload, "supervise"}, FirstUser: executor.DefaultFirstUser, Users: 8}
}

// fixture is an executor of this machine; where it can't hold a job to its limits the tests prove nothing.
func fixture(t *testing.T) *executor.Executor {
	t.Helper()
	e, err := executor.New(config(t))
	if err != nil {
		t.Fatal(err)
	}
	if r := e.Probe(t.Context()); len(r.Missing) > 0 {
		if os.Getenv("CI") != "" {
			t.Fatal(r.Missing)
		}
		t.Skip("needs root, bubblewrap and control groups: ", r.Missing)
	}
	t.Cleanup(func() { empty(t, e) })
	return e
}

// empty ends every Attempt and wipes its folder.
func empty(t *testing.T, e *executor.Executor) {
	kept, err := e.Sweep(func(string) bool { return false })
	for _, a := range kept {
		err = errors.Join(err, a.Cancel(lifecycle.CancelRequested))
		_, waited := a.Wait(context.Background())
		err = errors.Join(err, waited, a.Remove())
	}
	if err != nil {
		t.Error(err)
	}
}

func spec(t *testing.T, args ...string) executor.Spec {
	id := regexp.MustCompile(`[^A-Za-z0-9]`).ReplaceAllString(t.Name(), "-")
	return executor.Spec{
		AttemptID: "att_" + id[max(len(id)-60, 0):], Fence: 7, Argv: append([]string{"/roadstead/package/payload"}, args...), Package: filepath.Dir(payload),
		Limits: executor.Limits{Timeout: time.Minute, Memory: 128 << 20, CPUMilli: 2000, Pids: 64, Disk: 16 << 20, Log: 1 << 20},
		Grace:  time.Second,
	}
}

// start prepares and starts.
func start(t *testing.T, e *executor.Executor, s executor.Spec) *executor.Attempt {
	t.Helper()
	if _, err := e.Prepare(t.Context(), s.AttemptID); err != nil {
		t.Fatal(err)
	}
	a, err := e.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func wait(t *testing.T, a *executor.Attempt) executor.Record {
	t.Helper()
	r, err := a.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func logOf(t *testing.T, a *executor.Attempt) string {
	t.Helper()
	p, err := a.Logs(0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i, l := range p.Lines {
		if l.N != int64(i+1) || l.Millis == 0 {
			t.Fatalf("record %d is %+v", i, l)
		}
		fmt.Fprintf(&text, "%s: %s\n", l.Stream, l.Text)
	}
	return text.String()
}

// says waits until the job has written the words.
func says(t *testing.T, a *executor.Attempt, words string) {
	t.Helper()
	eventually(t, func() bool { return strings.Contains(logOf(t, a), words) }, "the job says "+words)
}

// eventually asks again and again, for at most half a minute.
func eventually(t *testing.T, is func() bool, what string) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(30 * time.Second); !is(); <-ticker.C {
		if time.Now().After(end) {
			t.Fatal("in vain: ", what)
		}
	}
}

// processes lists those whose command line holds the words.
func processes(t *testing.T, words string) (pids []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		b, err := os.ReadFile(path)
		if err == nil && strings.Contains(strings.ReplaceAll(string(b), "\x00", " "), words) {
			pids = append(pids, strings.Split(path, "/")[2])
		}
	}
	return pids
}

// A job gets its inputs, its secrets and the last checkpoint, and gives outputs, progress and a checkpoint; beyond those it
// writes nowhere, has no rights, no descriptors and no environment of ours.
func TestHonestJob(t *testing.T) {
	bothWays(t, honestJob)
}

// bothWays runs the test in the sandbox that this machine has, and in the one of a machine without user namespaces.
func bothWays(t *testing.T, test func(*testing.T, *executor.Executor)) {
	t.Run("as it is", func(t *testing.T) { test(t, fixture(t)) })
	t.Run("no user namespaces", func(t *testing.T) {
		fixture(t)
		e, err := executor.New(config(t))
		if err != nil {
			t.Fatal(err)
		}
		e.Privileged()
		t.Cleanup(func() { empty(t, e) })
		test(t, e)
	})
}

func honestJob(t *testing.T, e *executor.Executor) {
	s := spec(t, "tour")
	s.Env = map[string]string{"CUSTOM": "mine", "ROADSTEAD_INPUTS": "/evil"}
	s.Secrets = map[string][]byte{"token": []byte("geheim!")}
	l, err := e.Prepare(t.Context(), s.AttemptID)
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{filepath.Join(l.Inputs, "in.txt"): "in", filepath.Join(l.CheckpointIn, "state"): "before"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a, err := e.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	r := wait(t, a)
	if r.Reason != lifecycle.Done || r.ExitCode != 0 || r.Fence != 7 || r.StartedAt.IsZero() || r.EndedAt.Before(r.StartedAt) {
		t.Errorf("%+v\n%s", r, logOf(t, a))
	}
	if u := r.Usage; u.Wall <= 0 || u.User+u.System <= 0 || u.MemoryPeak <= 0 || u.Disk <= 0 || u.Log <= 0 {
		t.Errorf("usage %+v", u)
	}
	// Without a user namespace the job sees the host's number of its user.
	uid := map[bool]uint32{false: sandbox.InsideID, true: executor.DefaultFirstUser}[e.Probe(t.Context()).Privileged]
	want := fmt.Sprintf("out: uid=%d dir=/roadstead/package readonly=true rights=[NoNewPrivs:1 Seccomp:2] fds=[] ignored=false custom=mine path=true\n", uid)
	if got := logOf(t, a); !strings.Contains(got, want) || !strings.Contains(got, "err: and an error line\n") {
		t.Errorf("got  %swant %s", got, want)
	}
	for path, want := range map[string]string{filepath.Join(l.Outputs, "out.txt"): "in+7+before", filepath.Join(l.Checkpoint, "state"): "next"} {
		if b, err := os.ReadFile(path); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", path, b, err)
		}
	}
	if p, err := a.Progress(); err != nil || p != "0.5 half" {
		t.Errorf("progress %q, %v", p, err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(l.Outputs), "scratch")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the scratch folder is still there: %v", err)
	}
	if found, err := exec.Command("grep", "-rl", "geheim!", filepath.Dir(filepath.Dir(l.Outputs))).Output(); err == nil || len(found) > 0 {
		t.Errorf("the secret is on the disk: %s", found)
	}
	if err := a.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := e.Attach(s.AttemptID); !fault.Is(err, fault.NotFound) {
		t.Errorf("removed and attached: %v", err)
	}
}

// What the payload's exit says becomes a reason, and what can't start is over at once and holds nothing (R10).
func TestEndings(t *testing.T) {
	e := fixture(t)
	for name, c := range map[string]struct {
		argv   []string
		reason lifecycle.Reason
		code   int
		detail string
	}{
		"done":          {[]string{"sh", "-c", "exit 0"}, lifecycle.Done, 0, ""},
		"exit code":     {[]string{"sh", "-c", "exit 3"}, lifecycle.ExitCode, 3, "exit code 3"},
		"killed":        {[]string{"sh", "-c", "kill -SEGV $$"}, lifecycle.Killed, -1, "SIGSEGV"},
		"no program":    {[]string{"no-such-program"}, lifecycle.CannotStart, -1, "no-such-program"},
		"no file":       {[]string{"/roadstead/package/absent"}, lifecycle.CannotStart, -1, "no such file"},
		"no executable": {[]string{"/etc/ld.so.cache"}, lifecycle.CannotStart, -1, "permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec(t)
			s.Argv = c.argv
			a := start(t, e, s)
			r := wait(t, a)
			if r.Reason != c.reason || r.ExitCode != c.code || !strings.Contains(r.Detail, c.detail) || r.StartedAt.IsZero() != (c.reason == lifecycle.CannotStart) {
				t.Errorf("%+v\n%s", r, logOf(t, a))
			}
			if _, err := e.Start(t.Context(), s); !fault.Is(err, fault.Conflict) {
				t.Errorf("launched twice under one id: %v", err)
			}
			if _, err := e.Prepare(t.Context(), s.AttemptID); !fault.Is(err, fault.Conflict) {
				t.Errorf("prepared twice: %v", err)
			}
		})
	}
	t.Run("no package", func(t *testing.T) {
		s := spec(t, "tour")
		s.Package = "/no/such/folder"
		if r := wait(t, start(t, e, s)); r.Reason != lifecycle.CannotStart || !strings.Contains(r.Detail, "/no/such/folder") {
			t.Errorf("%+v", r)
		}
	})
}

// Cancel is TERM to all, then KILL, within the grace and 2 s: also those that daemonised and don't listen (Cancel, R-9.2).
func TestCancelEndsDaemonsToo(t *testing.T) {
	e := fixture(t)
	marker := fmt.Sprintf("marker-%d", os.Getpid())
	a := start(t, e, spec(t, "daemon", marker, "stay"))
	says(t, a, "daemons left")
	if n := len(processes(t, "daemon "+marker)); n < 4 {
		t.Fatalf("%d processes; three daemons and their parent expected", n)
	}
	from := time.Now()
	if err := a.Cancel(lifecycle.CancelRequested); err != nil {
		t.Fatal(err)
	}
	if err := a.Cancel(lifecycle.LeaseLost); err != nil {
		t.Fatal(err)
	}
	r := wait(t, a)
	if took := time.Since(from); took > 3*time.Second || took < time.Second || r.Reason != lifecycle.CancelRequested {
		t.Errorf("took %v: %+v", took, r)
	}
	if left := processes(t, "daemon "+marker); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A job that listens to TERM ends by itself, with its last words, before KILL.
func TestCancelIsPolite(t *testing.T) {
	e := fixture(t)
	s := spec(t, "sleep")
	s.Grace = time.Minute
	a := start(t, e, s)
	says(t, a, "sleeping")
	if err := a.Cancel(lifecycle.Drained); err != nil {
		t.Fatal(err)
	}
	if r := wait(t, a); r.Reason != lifecycle.Drained || r.ExitCode != 0 || !strings.Contains(logOf(t, a), "got TERM") {
		t.Errorf("%+v\n%s", r, logOf(t, a))
	}
}

// What a job leaves running ends with it.
func TestDaemonsEndWithTheJob(t *testing.T) {
	e := fixture(t)
	marker := fmt.Sprintf("left-%d", os.Getpid())
	if r := wait(t, start(t, e, spec(t, "daemon", marker))); r.Reason != lifecycle.Done {
		t.Errorf("%+v", r)
	}
	if left := processes(t, "daemon "+marker); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// asRunner starts a process that starts the Attempt, as a runner would.
func asRunner(t *testing.T, c executor.Config, s executor.Spec) *exec.Cmd {
	t.Helper()
	conf, err1 := json.Marshal(c)
	sp, err2 := json.Marshal(s)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(payload, "runner", string(conf), string(sp))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// A runner that is dead or frozen leaves no payload past its deadline, and one that comes back finds its Attempts.
func TestRunnerLost(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"dead": syscall.SIGKILL, "frozen": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			fixture(t)
			c := config(t)
			marker := fmt.Sprintf("orphan-%s-%d", name, os.Getpid())
			s := spec(t, "daemon", marker, "stay")
			s.Limits.Timeout = 2 * time.Second
			runner := asRunner(t, c, s)
			if err := runner.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = runner.Process.Kill()
				_ = runner.Wait()
			}()
			e, err := executor.New(c)
			if err != nil {
				t.Fatal(err)
			}
			a, err := e.Attach(s.AttemptID)
			if err != nil {
				t.Fatal(err)
			}
			if r, over, err := a.Record(); over || err != nil {
				t.Fatalf("over already: %+v, %v", r, err)
			}
			says(t, a, "daemons left")
			if err := a.Remove(); !fault.Is(err, fault.Conflict) {
				t.Errorf("removed while it runs: %v", err)
			}
			r := wait(t, a)
			if r.Reason != lifecycle.TimedOut || r.Usage.Wall < 2*time.Second || r.Usage.Wall > 5*time.Second {
				t.Errorf("%+v", r)
			}
			if left := processes(t, "daemon "+marker); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			empty(t, e)
		})
	}
}

// supervisorOf is the pid of the Attempt's supervisor.
func supervisorOf(t *testing.T, dir, id string) int {
	t.Helper()
	l, err := folder.Folder(filepath.Join(dir, "attempts", id)).Launch()
	if err != nil {
		t.Fatal(err)
	}
	return l.Supervisor
}

// With its supervisor the payload dies, and the record says that nobody knows: it is never launched again.
func TestSupervisorLost(t *testing.T) {
	fixture(t)
	c := config(t)
	e, err := executor.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer empty(t, e)
	marker := fmt.Sprintf("lost-%d", os.Getpid())
	s := spec(t, "daemon", marker, "stay")
	a := start(t, e, s)
	says(t, a, "daemons left")
	if err := unix.Kill(supervisorOf(t, c.Dir, s.AttemptID), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r := wait(t, a)
	if r.Reason != lifecycle.RunnerLost || r.StartedAt.IsZero() || r.ExitCode != -1 || r.Usage.Wall <= 0 || r.Usage.User+r.Usage.System <= 0 {
		t.Errorf("%+v", r)
	}
	if left := processes(t, "daemon "+marker); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := e.Start(t.Context(), s); !fault.Is(err, fault.Conflict) {
		t.Errorf("launched again: %v", err)
	}
}

// A supervisor that was stopped, and so kills nothing at the deadline, is killed by whoever waits, and its payload with it.
func TestSupervisorFrozen(t *testing.T) {
	fixture(t)
	c := config(t)
	e, err := executor.New(c)
	if err != nil {
		t.Fatal(err)
	}
	e.Overdue(time.Second)
	defer empty(t, e)
	marker := fmt.Sprintf("frozen-%d", os.Getpid())
	s := spec(t, "daemon", marker, "stay")
	s.Limits.Timeout = time.Second
	a := start(t, e, s)
	if err := unix.Kill(supervisorOf(t, c.Dir, s.AttemptID), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if r := wait(t, a); r.Reason != lifecycle.RunnerLost || r.Usage.Wall < 2*time.Second || r.Usage.Wall > 6*time.Second {
		t.Errorf("%+v", r)
	}
	if left := processes(t, "daemon "+marker); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A lease that isn't renewed ends the payload without any runner's help; one that is renewed does not.
func TestLease(t *testing.T) {
	e := fixture(t)
	s := spec(t, "daemon", fmt.Sprintf("lease-%d", os.Getpid()), "stay")
	s.Lease = time.Minute
	a := start(t, e, s)
	says(t, a, "daemons left")
	from := time.Now()
	if err := a.Renew(from.Add(2 * time.Second)); err != nil {
		t.Fatal(err)
	}
	r := wait(t, a)
	if took := time.Since(from); r.Reason != lifecycle.LeaseLost || took > 3*time.Second {
		t.Errorf("after %v: %+v", took, r)
	}
}

// After a crash of the machine or the runner nothing of an Attempt is left but what is wanted.
func TestSweep(t *testing.T) {
	fixture(t)
	c := config(t)
	e, err := executor.New(c)
	if err != nil {
		t.Fatal(err)
	}
	over, trap, running := spec(t, "exit", "0"), spec(t, "leave"), spec(t, "sleep")
	over.AttemptID, trap.AttemptID, running.AttemptID = "att_over", "att_trap", "att_running"
	for _, s := range []executor.Spec{over, trap} {
		if r := wait(t, start(t, e, s)); r.Reason != lifecycle.Done {
			t.Fatalf("%+v", r)
		}
	}
	live := start(t, e, running)
	if _, err := e.Prepare(t.Context(), "att_prepared"); err != nil {
		t.Fatal(err)
	}
	again, err := executor.New(c)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := again.Sweep(func(id string) bool { return id == "att_over" })
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, a := range kept {
		ids = append(ids, a.ID())
	}
	if fmt.Sprint(ids) != "[att_over att_running]" {
		t.Errorf("kept %v", ids)
	}
	left, err := os.ReadDir(filepath.Join(c.Dir, "attempts"))
	if err != nil || len(left) != 2 {
		t.Errorf("on the disk: %v, %v", left, err)
	}
	if _, err := os.Stat("/etc/shadow"); err != nil {
		t.Errorf("the wiping followed a link: %v", err)
	}
	if err := live.Cancel(lifecycle.CancelRequested); err != nil {
		t.Error(err)
	}
	empty(t, again)
}

// Every Attempt whose folder is there has a user of its own; there are as many as were given.
func TestUsers(t *testing.T) {
	fixture(t)
	c := config(t)
	c.Users = 2
	e, err := executor.New(c)
	if err != nil {
		t.Fatal(err)
	}
	owner := func(id string) uint32 {
		l, err := e.Prepare(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := unix.Stat(l.Outputs, &st); err != nil {
			t.Fatal(err)
		}
		return st.Uid
	}
	if a, b := owner("att_a"), owner("att_b"); a != c.FirstUser || b != c.FirstUser+1 {
		t.Errorf("users %d and %d", a, b)
	}
	if _, err := e.Prepare(t.Context(), "att_c"); !fault.Is(err, fault.CapacityExceeded) {
		t.Errorf("a third of two: %v", err)
	}
	empty(t, e)
	if got := owner("att_d"); got != c.FirstUser {
		t.Errorf("user %d", got)
	}
	empty(t, e)
}

// What makes no sense is refused with the field.
func TestRefusals(t *testing.T) {
	for field, change := range map[string]func(*executor.Spec){
		"AttemptID":       func(s *executor.Spec) { s.AttemptID = "../evil" },
		"Argv":            func(s *executor.Spec) { s.Argv = nil },
		"Limits.Timeout":  func(s *executor.Spec) { s.Limits.Timeout = 0 },
		"Limits.Memory":   func(s *executor.Spec) { s.Limits.Memory = -1 },
		"Limits.CPUMilli": func(s *executor.Spec) { s.Limits.CPUMilli = 0 },
		"Limits.Pids":     func(s *executor.Spec) { s.Limits.Pids = 0 },
		"Limits.Disk":     func(s *executor.Spec) { s.Limits.Disk = 0 },
		"Limits.Log":      func(s *executor.Spec) { s.Limits.Log = 0 },
		"Grace":           func(s *executor.Spec) { s.Grace = 0 },
		"Lease":           func(s *executor.Spec) { s.Lease = -1 },
		"Env":             func(s *executor.Spec) { s.Env = map[string]string{"A=B": "c"} },
		"Secrets":         func(s *executor.Spec) { s.Secrets = map[string][]byte{"../up": nil} },
		"Package":         func(s *executor.Spec) { s.Package = "relative" },
	} {
		s := spec(t, "tour")
		change(&s)
		if f := fault.From(s.Validate()); f == nil || f.Code != fault.InvalidInput || len(f.Details) != 1 || f.Details[0].Field != field {
			t.Errorf("%s: %v", field, s.Validate())
		}
	}
	for field, c := range map[string]executor.Config{
		"Dir":       {Dir: "here", FirstUser: executor.DefaultFirstUser, Users: 1},
		"FirstUser": {Dir: "/x", FirstUser: 1000, Users: 1},
		"Users":     {Dir: "/x", FirstUser: executor.DefaultFirstUser},
	} {
		if _, err := executor.New(c); fault.From(err).Details[0].Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
