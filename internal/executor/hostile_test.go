package executor_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/executor"
)

// control runs an attack without a sandbox, as root, yet in a mount namespace of its own, so that its mounts are nobody
// else's: it must succeed, or the sandbox has stopped nothing.
func control(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(payload, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Setpgid: true}
	said, err := os.Create(filepath.Join(t.TempDir(), "said")) // no pipe: what the attack leaves running would hold it open
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	err = cmd.Run()
	if killed := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); killed != nil && !errors.Is(killed, syscall.ESRCH) {
		t.Error(killed)
	}
	out, unread := os.ReadFile(said.Name())
	if err != nil || unread != nil || !strings.Contains(string(out), "SUCCESS") {
		t.Errorf("the control run failed, so the sandbox proves nothing: %v\n%.2000s", err, out)
	}
}

// host is what an attacker finds on the machine: a data folder, a key, a service on the loopback, a socket without a file.
type host struct {
	data, key, tcp, abstract string
	process                  string // a pid
}

func hostOf(t *testing.T) (h host) {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	// The files are open to everybody: what keeps the job out is that they are not in its world.
	h = host{data: filepath.Join(dir, "data"), key: filepath.Join(dir, "runner.key"), abstract: fmt.Sprintf("roadstead-test-%d", os.Getpid())}
	for path, text := range map[string]string{h.data: "rows of others", h.key: "rsk_private"} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	tcp, err1 := net.Listen("tcp", "127.0.0.1:0")
	unix, err2 := net.Listen("unix", "@"+h.abstract)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = tcp.Close(), unix.Close() })
	h.tcp = tcp.Addr().String()
	sleeper := exec.Command("/bin/sleep", "600")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait()
	})
	h.process = fmt.Sprint(sleeper.Process.Pid)
	return h
}

// A hostile package tries to get out: to mount, to read the data folder, the runner's key and another Attempt's files, to
// reach the loopback, to see and trace other processes. Each fails, and each succeeds in an unsandboxed control run.
func TestHostilePackageStaysInside(t *testing.T) {
	bothWays(t, hostilePackage)
}

func hostilePackage(t *testing.T, e *executor.Executor) {
	h := hostOf(t)
	neighbour := spec(t, "sleep")
	neighbour.AttemptID = "att_neighbour"
	l, err := e.Prepare(t.Context(), neighbour.AttemptID)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.Inputs, "theirs"), []byte("private"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Start(t.Context(), neighbour); err != nil {
		t.Fatal(err)
	}
	for name, attack := range map[string][]string{
		"remount":                  {"mount"},
		"user namespace":           {"namespace"},
		"data folder":              {"read", h.data},
		"runner's key":             {"read", h.key},
		"write the data":           {"write", h.data},
		"write the host":           {"write", "/usr/roadstead-test-" + fmt.Sprint(os.Getpid())},
		"another Attempt's input":  {"read", filepath.Join(l.Inputs, "theirs")},
		"another Attempt's output": {"write", filepath.Join(l.Outputs, "forged")},
		"passwords":                {"read", "/etc/shadow"},
		"loopback":                 {"connect", h.tcp},
		"abstract socket":          {"abstract", h.abstract},
		"trace":                    {"ptrace", h.process},
		"other processes":          {"see"},
		"devices":                  {"device"},
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t, e, spec(t, attack...))
			if r, said := wait(t, a), logOf(t, a); r.Reason != lifecycle.ExitCode || r.ExitCode != 1 || strings.Contains(said, "SUCCESS") || !strings.Contains(said, "denied") {
				t.Errorf("%+v\n%s", r, said)
			}
			if err := a.Remove(); err != nil {
				t.Error(err)
			}
			control(t, attack...)
		})
	}
	if err := os.Remove("/usr/roadstead-test-" + fmt.Sprint(os.Getpid())); err != nil {
		t.Error(err) // the control run has made it
	}
}

// A hostile package tries to use more than it may: processes, memory, disk in every way, log. Each ends by its limit, and
// each goes through in an unsandboxed control run, kept small.
func TestHostilePackageStaysWithinLimits(t *testing.T) {
	e := fixture(t)
	const writable = "/roadstead/outputs /roadstead/scratch /roadstead/checkpoint /tmp"
	for name, c := range map[string]struct {
		attack string
		dirs   []string
		reason lifecycle.Reason
	}{
		"memory":         {"memory 300000000", nil, lifecycle.OutOfMemory},
		"many files":     {"disk 67108864", strings.Fields(writable), lifecycle.OutOfDisk},
		"deleted files":  {"held 67108864", []string{"/roadstead/scratch"}, lifecycle.OutOfDisk},
		"mapped files":   {"mapped 67108864", []string{"/roadstead/outputs"}, lifecycle.OutOfDisk},
		"a deep tree":    {"deep 60", []string{"/roadstead/outputs"}, lifecycle.OutOfDisk},
		"a large log":    {"flood 67108864", nil, lifecycle.LogLimit},
		"processes":      {"fork 200", nil, lifecycle.ExitCode},
		"one large file": {"bigfile 67108864", []string{"/tmp"}, lifecycle.ExitCode},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec(t, append(strings.Fields(c.attack), c.dirs...)...)
			a := start(t, e, s)
			r, said := wait(t, a), logOf(t, a)
			if r.Reason != c.reason || strings.Contains(said, "SUCCESS") {
				t.Errorf("%+v\n%.2000s", r, said)
			}
			// Twice the limit is what the disk takes between two looks, generously; the figure is printed for who wants to know.
			// The kernel counts memory in batches of 64 pages, so its peak may lie that much above the limit it held.
			if u := r.Usage; u.MemoryPeak > s.Limits.Memory+256<<10 || u.Log > s.Limits.Log+16<<10 || c.attack[:4] != "deep" && u.Disk > 2*s.Limits.Disk {
				t.Errorf("beyond its limits: %+v", u)
			} else {
				t.Logf("%s: %+v", c.reason, u)
			}
			if err := a.Remove(); err != nil {
				t.Error(err)
			}
			free := strings.Fields(c.attack)
			for range c.dirs {
				free = append(free, t.TempDir())
			}
			control(t, free...)
		})
	}
}

// What a job prints of its secret is masked before it is on any disk.
func TestSecretInTheLog(t *testing.T) {
	e := fixture(t)
	s := spec(t, "print")
	s.Secrets = map[string][]byte{"token": []byte("hunter2-is-a-secret\n"), "empty": nil}
	a := start(t, e, s)
	if r := wait(t, a); r.Reason != lifecycle.Done {
		t.Errorf("%+v", r)
	}
	if said := logOf(t, a); !strings.Contains(said, "the token is ***") || strings.Contains(said, "hunter2") {
		t.Error(said)
	}
}

// The network is there only by permission; then the loopback is the host's.
func TestNetworkByPermission(t *testing.T) {
	e := fixture(t)
	h := hostOf(t)
	for permitted, reason := range map[bool]lifecycle.Reason{false: lifecycle.ExitCode, true: lifecycle.Done} {
		s := spec(t, "connect", h.tcp)
		s.AttemptID, s.Network = fmt.Sprintf("att_net_%v", permitted), permitted
		a := start(t, e, s)
		if r := wait(t, a); r.Reason != reason {
			t.Errorf("permitted %v: %+v\n%s", permitted, r, logOf(t, a))
		}
	}
}

// imageOf is a root that holds one program and nothing of the host.
func imageOf(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	from, err := os.Open(payload)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	if err := errors.Join(os.Chmod(filepath.Dir(root), 0o755), os.Chmod(root, 0o755), os.MkdirAll(filepath.Join(root, "opt/bin"), 0o755), os.Mkdir(filepath.Join(root, "etc"), 0o755),
		os.Symlink("opt/bin", filepath.Join(root, "bin")), os.Mkdir(filepath.Join(root, "roadstead"), 0o755),
		os.WriteFile(filepath.Join(root, "etc/release"), []byte("of the image"), 0o644)); err != nil {
		t.Fatal(err)
	}
	to, err := os.OpenFile(filepath.Join(root, "opt/bin/payload"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return root
}

// In an image the image's files are the root, read-only, and nothing of the host is there.
func TestImage(t *testing.T) {
	e := fixture(t)
	root := imageOf(t)
	run := func(name string, args ...string) (executor.Record, string) {
		s := spec(t, args...)
		s.AttemptID, s.Package, s.Image, s.Argv = "att_"+name, "", root, append([]string{"payload"}, args...)
		a := start(t, e, s)
		return wait(t, a), logOf(t, a)
	}
	if r, said := run("read", "read", "/etc/release"); r.Reason != lifecycle.Done || !strings.Contains(said, "of the image") {
		t.Errorf("%+v\n%s", r, said)
	}
	if r, said := run("host", "read", "/etc/os-release"); r.Reason != lifecycle.ExitCode {
		t.Errorf("%+v\n%s", r, said)
	}
	if r, said := run("write", "write", "/etc/release"); r.Reason != lifecycle.ExitCode {
		t.Errorf("%+v\n%s", r, said)
	}
}
