package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// process is one of ours, to be started again after it was killed.
type process struct {
	argv   []string
	log    string
	cmd    *exec.Cmd
	exited chan struct{}
}

func (p *process) start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p.cmd = exec.Command(p.argv[0], p.argv[1:]...)
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = environment(), log, log
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.argv[1], err)
	}
	exited, cmd := make(chan struct{}), p.cmd
	p.exited = exited
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(exited)
	}()
	return nil
}

// end sends the signal and waits until the process is gone; one that does not go within 15 s is killed.
func (p *process) end(sig syscall.Signal) {
	if p.exited == nil {
		return
	}
	_ = p.cmd.Process.Signal(sig) // gone is as good
	select {
	case <-p.exited:
	case <-time.After(15 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

func (p *process) lastWords() string {
	text, _ := os.ReadFile(p.log)
	return strings.TrimSpace(string(text[max(0, len(text)-1500):]))
}

// The pace of leases in the worlds.
const (
	lease     = 6 * time.Second
	grace     = 3 * time.Second
	heartbeat = time.Second
)

// environment is ours without settings, and those of a world.
func environment() (env []string) {
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ROADSTEAD_") {
			env = append(env, v)
		}
	}
	return append(env, "ROADSTEAD_RUNNER_SLOTS=0", "ROADSTEAD_DISK_RESERVE=0", "ROADSTEAD_DRAIN_SECONDS=1", "ROADSTEAD_LOG_LEVEL=warn",
		fmt.Sprintf("ROADSTEAD_RUNNER_LEASE_SECONDS=%d", int(lease.Seconds())), fmt.Sprintf("ROADSTEAD_RUNNER_HEARTBEAT_SECONDS=%d", int(heartbeat.Seconds())))
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

// freePort is an address of this machine, of the ports from 18300 on, that nothing listens on, and no other world is given.
func (b *bench) freePort() (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ; b.ports < 100; b.ports++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 18300+b.ports))
		if err == nil {
			defer l.Close()
			b.ports++
			return l.Addr().String(), nil
		}
	}
	return "", fmt.Errorf("no port from 18300 to 18399 is free")
}
