package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/executor"
	"github.com/roadstead/roadstead/sdk"
)

const (
	startRounds = 60
	startWarm   = 3
	// The commits without which no Run can start: its submit, its assignment, the runner's leave to start it.
	startCommits = 3
)

// start measures how long it takes from the beginning of a submit over HTTP until the server hears that the process runs,
// on an idle server with the runner inside it, one Run after the other. Beside each one what that can't do without: as
// many plain durable commits, and a bare sandbox with the same namespaces and as many mounts, until its program speaks.
func (b *bench) start(ctx context.Context) error {
	plain, err := openPlain(ctx, filepath.Join(b.dir, "commits.db"))
	if err != nil {
		return err
	}
	defer func() { _ = plain.Close() }() // the folder goes next
	s, err := b.serve(ctx)
	if err != nil {
		return err
	}
	defer s.stop()
	client, err := s.operator()
	if err != nil {
		return err
	}
	bare, err := newSandbox(ctx, b.dir)
	if err != nil {
		return err
	}
	var own, base, commits, boxes []time.Duration
	var r ratios
	for round := range startWarm + startRounds {
		commit, err := timed(func() error { return repeat(startCommits, func() error { return plain.commit(ctx) }) })
		if err != nil {
			return err
		}
		box, err := bare.start(ctx)
		if err != nil {
			return err
		}
		run, err := submitted(ctx, client)
		if err != nil {
			return err
		}
		if round < startWarm {
			continue
		}
		r.add(run, commit+box)
		own, base, commits, boxes = append(own, run), append(base, commit+box), append(commits, commit), append(boxes, box)
	}
	b.atMost("runs_submit_to_process_p95_vs_commits_and_sandbox", p95(own).Seconds()/p95(base).Seconds(), 3)
	fmt.Printf("# a process starts %v after its submit began, p95 %v; %d commits take %v, a bare sandbox %v, both p95 %v; median of the ratios %.2f\n",
		ms(median(own)), ms(p95(own)), startCommits, ms(median(commits)), ms(median(boxes)), ms(p95(base)), r.median())
	return nil
}

// p95 is what nineteen in twenty are at or below.
func p95(all []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(all))[(len(all)*95+99)/100-1]
}

func ms(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

func repeat(n int, f func() error) error {
	for range n {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// submitted submits a Run, waits until it is over, and says how long it took to start.
func submitted(ctx context.Context, client *sdk.Client) (time.Duration, error) {
	began := time.Now()
	out, err := client.Submit(ctx, api.NewRun{Command: []string{"/bin/true"}}, sdk.Submission{})
	if err != nil {
		return 0, err
	}
	id := out.Runs[0].ID
	for {
		run, err := client.Run(ctx, id)
		if err != nil {
			return 0, err
		}
		if run.EndedAt != nil {
			if run.State != "succeeded" || len(run.Attempts) != 1 || run.Attempts[0].StartedAt == nil {
				return 0, fmt.Errorf("the Run ended as %s (%s)", run.State, run.Reason)
			}
			return run.Attempts[0].StartedAt.Sub(began), nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// child is the server as a process of its own.
type child struct {
	cmd    *exec.Cmd
	data   string
	url    string
	exited chan struct{}
}

const listen = "127.0.0.1:18431"

func (b *bench) serve(ctx context.Context) (*child, error) {
	program := filepath.Join(b.dir, "roadstead")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/roadstead/roadstead/cmd/roadstead").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the server: %w\n%s", err, out)
	}
	// As root Attempts run as users of their own, who must get through to their folders.
	if err := os.Chmod(b.dir, 0o711); err != nil {
		return nil, err
	}
	s := &child{data: filepath.Join(b.dir, "data"), url: "http://" + listen, exited: make(chan struct{})}
	log, err := os.Create(filepath.Join(b.dir, "server.log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the server has its own
	s.cmd = exec.Command(program, "serve", "--data", s.data, "--listen", listen)
	s.cmd.Env = append(os.Environ(), "ROADSTEAD_RUNNER_DIR="+filepath.Join(b.dir, "runner"), "ROADSTEAD_RUNNER_SLOTS=2")
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	go func() {
		_ = s.cmd.Wait() // how it ended is in its log
		close(s.exited)
	}()
	for limit := time.After(30 * time.Second); ; {
		if resp, err := http.Get(s.url + "/readyz"); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return s, nil
			}
		}
		select {
		case <-s.exited:
			return nil, errors.New("the server did not start: see " + log.Name())
		case <-limit:
			s.stop()
			return nil, errors.New("the server did not answer within 30 s")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *child) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(15 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
}

// operator is a client with the key that the first start left.
func (s *child) operator() (*sdk.Client, error) {
	key, err := os.ReadFile(filepath.Join(s.data, "operator.key"))
	if err != nil {
		return nil, err
	}
	return sdk.New(sdk.Config{URL: s.url, Key: strings.TrimSpace(string(key))})
}

// box is a bare sandbox: bubblewrap with the namespaces and mounts that an Attempt's has, and nothing of ours.
type box struct {
	args []string
	user uint32 // as whom it is started; 0: as this process
}

// newSandbox lays the box out as the executor would on this machine.
func newSandbox(ctx context.Context, dir string) (*box, error) {
	x := &box{args: []string{
		"--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup", "--unshare-net", "--hostname", "sandbox", "--die-with-parent", "--new-session",
		"--cap-drop", "ALL", "--clearenv",
	}}
	for _, name := range []string{"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		if link, err := os.Readlink("/" + name); err == nil {
			x.args = append(x.args, "--symlink", link, "/"+name)
		} else if _, err := os.Stat("/" + name); err == nil {
			x.args = append(x.args, "--ro-bind", "/"+name, "/"+name)
		}
	}
	for _, name := range []string{"alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "nsswitch.conf", "os-release", "protocols", "services",
		"ssl/certs", "hosts", "resolv.conf"} {
		if source, err := filepath.EvalSymlinks("/etc/" + name); err == nil {
			x.args = append(x.args, "--ro-bind", source, "/etc/"+name)
		}
	}
	x.args = append(x.args, "--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev", "--dir", "/roadstead")
	for i, name := range []string{"inputs", "checkpoint-in", "outputs", "scratch", "checkpoint", "tmp", "progress"} {
		source := filepath.Join(dir, "box", name)
		if err := os.MkdirAll(source, 0o755); err != nil {
			return nil, err
		}
		x.args = append(x.args, []string{"--ro-bind", "--bind"}[min(i/2, 1)], source, "/roadstead/"+name)
	}
	x.args = append(x.args, "--tmpfs", "/roadstead/secrets", "--remount-ro", "/roadstead/secrets", "--remount-ro", "/")
	if os.Geteuid() == 0 {
		x.user = executor.DefaultFirstUser
	}
	unprivileged := *x
	unprivileged.args = append([]string{"--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000"}, x.args...)
	if _, err := unprivileged.start(ctx); err == nil {
		return &unprivileged, nil
	}
	x.user = 0 // no user namespaces here: root makes the sandbox
	_, err := x.start(ctx)
	return x, err
}

// start runs a program in the box and says how long it took until it spoke.
func (x *box) start(ctx context.Context) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, "bwrap", append(x.args, "--", "/bin/echo", "runs")...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/bin:/bin"}
	if x.user != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: x.user, Gid: x.user}}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	_, spoke := bufio.NewReader(out).ReadString('\n')
	took := time.Since(began)
	if err := errors.Join(spoke, cmd.Wait()); err != nil {
		return 0, fmt.Errorf("start a bare sandbox: %w", err)
	}
	return took, nil
}
