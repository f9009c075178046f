package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The pace of the leases under test.
const (
	lease     = 6 * time.Second
	grace     = 3 * time.Second
	heartbeat = time.Second
)

// process is one of ours that is started again after each kill.
type process struct {
	name string
	argv []string
	env  []string
	log  string

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{}
}

func (p *process) start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(exited)
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd, p.exited = cmd, exited
	return nil
}

func (p *process) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(sig) // gone is as good
	}
}

// kill ends the process without a warning, and returns when it is gone.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	p.mu.Lock()
	exited := p.exited
	p.mu.Unlock()
	if exited != nil {
		<-exited
	}
}

func (p *process) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exited == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// lastWords is the end of its log.
func (p *process) lastWords() string {
	text, _ := os.ReadFile(p.log)
	return strings.TrimSpace(string(text[max(0, len(text)-1500):]))
}

// environment is ours without settings, and those of the test.
func environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ROADSTEAD_") {
			env = append(env, v)
		}
	}
	return append(env, "ROADSTEAD_RUNNER_SLOTS=0", "ROADSTEAD_DISK_RESERVE=0", "ROADSTEAD_DRAIN_SECONDS=1", "ROADSTEAD_LOG_LEVEL=warn",
		fmt.Sprintf("ROADSTEAD_RUNNER_LEASE_SECONDS=%d", int(lease.Seconds())), fmt.Sprintf("ROADSTEAD_RUNNER_HEARTBEAT_SECONDS=%d", int(heartbeat.Seconds())))
}

// build makes the program in the folder, whose path names every process of this test.
func build(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "roadstead")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/roadstead/roadstead/cmd/roadstead").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the server: %w\n%s", err, out)
	}
	return program, nil
}

// wait asks until the condition holds.
func wait(ctx context.Context, what string, limit time.Duration, cond func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !cond() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %v", what, limit)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

func answers(url string) bool {
	resp, err := http.Get(url)
	if err != nil {
		return false
	}
	_ = resp.Body.Close() // the status was all
	return resp.StatusCode == http.StatusOK
}
