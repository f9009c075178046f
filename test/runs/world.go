package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/roadstead/roadstead/api"
)

// world is a server, its runners and those who listen to the jobs, in one folder.
type world struct {
	dir     string
	program string
	url     string
	key     string
	server  *process
	runners []*process
	heard   *collector
	client  *http.Client
}

const runnersWanted = 3

// newWorld starts everything and waits until the runners are there.
func newWorld(ctx context.Context) (w *world, err error) {
	dir, err := os.MkdirTemp("", "roadstead-runs-")
	if err != nil {
		return nil, err
	}
	w = &world{dir: dir, client: &http.Client{Timeout: 10 * time.Second}}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close(false))
		}
	}()
	if err := os.Chmod(dir, 0o711); err != nil { // the jobs' users have to get through
		return w, err
	}
	if w.program, err = build(ctx, dir); err != nil {
		return w, err
	}
	if w.heard, err = listen(); err != nil {
		return w, err
	}
	addr, err := freePort()
	if err != nil {
		return w, err
	}
	w.url = "http://" + addr
	w.server = w.process("server", "serve", "--data", filepath.Join(dir, "data"), "--listen", addr)
	if err := w.startServer(ctx); err != nil {
		return w, err
	}
	key, err := os.ReadFile(filepath.Join(dir, "data", "operator.key"))
	if err != nil {
		return w, err
	}
	w.key = strings.TrimSpace(string(key))
	return w, w.furnish(ctx)
}

func (w *world) process(name string, args ...string) *process {
	return &process{name: name, argv: append([]string{w.program}, args...), env: environment(), log: filepath.Join(w.dir, name+".log")}
}

func (w *world) startServer(ctx context.Context) error {
	if err := w.server.start(); err != nil {
		return err
	}
	if err := wait(ctx, "the server answers", 30*time.Second, func() bool { return answers(w.url + "/readyz") }); err != nil {
		return fmt.Errorf("%w: %s", err, w.server.lastWords())
	}
	return nil
}

// furnish lets the jobs use the network, with which they reach the collector, prices the pool and starts the runners.
func (w *world) furnish(ctx context.Context) error {
	var pool api.Pool
	if err := w.call(ctx, http.MethodGet, "/api/v1/pools/default", "", nil, &pool); err != nil {
		return err
	}
	pool.Policy.Network, pool.Policy.PriceMicro, pool.Policy.Pids = true, 100, 64
	pool.Policy.DefaultMemory, pool.Policy.DefaultMilliCPU, pool.Policy.DefaultDisk = 32<<20, 100, 16<<20
	if err := w.call(ctx, http.MethodPut, "/api/v1/pools/default", "", api.PoolChange{ExpectedRevision: pool.Revision, Policy: pool.Policy}, nil); err != nil {
		return err
	}
	for i := range runnersWanted {
		if err := w.addRunner(ctx, i); err != nil {
			return err
		}
	}
	return wait(ctx, "the runners register", 30*time.Second, func() bool {
		var pool api.Pool
		return w.call(ctx, http.MethodGet, "/api/v1/pools/default", "", nil, &pool) == nil && pool.Runners == runnersWanted
	})
}

func (w *world) addRunner(ctx context.Context, i int) error {
	var token api.RunnerToken
	if err := w.call(ctx, http.MethodPost, "/api/v1/pools/default/runner-tokens", "", struct{}{}, &token); err != nil {
		return err
	}
	file := filepath.Join(w.dir, fmt.Sprintf("token-%d", i))
	if err := os.WriteFile(file, []byte(token.Token), 0o600); err != nil {
		return err
	}
	r := w.process(fmt.Sprintf("runner-%d", i), "runner", "--server", w.url, "--token-file", file, "--dir", filepath.Join(w.dir, fmt.Sprintf("runner-%d", i)),
		"--slots", "4", "--cpus", "4", "--memory", "1GiB", "--disk", "1GiB")
	w.runners = append(w.runners, r)
	return r.start()
}

// close ends every process of the world. The supervisors' jobs die with their leases; here nobody waits for that.
func (w *world) close(keep bool) error {
	for _, p := range append(w.runners, w.server) {
		if p != nil {
			p.signal(syscall.SIGCONT)
			p.kill()
		}
	}
	for _, s := range w.supervisors() {
		_ = syscall.Kill(s, syscall.SIGKILL) // its job dies with it
	}
	if w.heard != nil {
		_ = w.heard.listener.Close() // nobody is left to connect
	}
	if keep {
		say("kept: %s", w.dir)
		return nil
	}
	return os.RemoveAll(w.dir)
}

// call asks the server until it answers: it may be dead at the moment.
func (w *world) call(ctx context.Context, method, path, idempotency string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	for {
		status, text, err := w.once(ctx, method, path, idempotency, body)
		switch {
		case err == nil && status < 300:
			if out == nil || len(text) == 0 {
				return nil
			}
			return json.Unmarshal(text, out)
		case err == nil && status < 500 && status != http.StatusTooManyRequests:
			return fmt.Errorf("%s %s: %d %s", method, path, status, text)
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (w *world) once(ctx context.Context, method, path, idempotency string, body []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, w.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+w.key)
	if method != http.MethodGet {
		req.Header.Set("Content-Type", "application/json")
	}
	if idempotency != "" {
		req.Header.Set("Idempotency-Key", idempotency)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, text, err
}

// freePort is an address of this machine that nothing listens on.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
