package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

// world is a server with runners and tenants, in one folder.
type world struct {
	*bench
	dir     string
	url     string
	op      *sdk.Client
	server  *process     // nil: it is part of this process
	stop    func() error // of such a server
	runners []*process
	victim  *tenant // has a secret and results that nobody else may reach
	spy     *tenant
	canary  string // is in all of the victim's things

	mu    sync.Mutex
	calls []time.Duration // of the control API
}

// tenant is somebody who submits.
type tenant struct {
	id  string
	key string
	*sdk.Client
}

const slots = 4 // of a runner

func newWorld(ctx context.Context, b *bench, name string) (w *world, err error) {
	w = &world{bench: b, dir: filepath.Join(b.dir, name)}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if err := os.Mkdir(w.dir, 0o711); err != nil {
		return w, err
	}
	addr, err := b.freePort()
	if err != nil {
		return w, err
	}
	w.url = "http://" + addr
	if name == "slow" {
		err = w.openSlow(ctx, addr)
	} else {
		w.server = &process{argv: []string{b.program(), "serve", "--data", w.data(), "--listen", addr}, log: filepath.Join(w.dir, "server.log")}
		err = w.startServer(ctx)
	}
	if err != nil {
		return w, err
	}
	key, err := os.ReadFile(filepath.Join(w.data(), "operator.key"))
	if err != nil {
		return w, err
	}
	if w.op, err = w.client(strings.TrimSpace(string(key))); err != nil {
		return w, err
	}
	return w, w.furnish(ctx)
}

func (w *world) data() string { return filepath.Join(w.dir, "data") }

func (w *world) client(key string) (*sdk.Client, error) {
	return sdk.New(sdk.Config{URL: w.url, Key: key, HTTP: &http.Client{Transport: timed{w}}})
}

// timed notes how long calls took that are no streams and no waits.
type timed struct{ w *world }

func (t timed) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && resp.StatusCode < 300 {
		t.w.mu.Lock()
		t.w.calls = append(t.w.calls, time.Since(began))
		t.w.mu.Unlock()
	}
	return resp, err
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

// furnish makes the pool's runner and the two tenants between whom nothing may pass.
func (w *world) furnish(ctx context.Context) (err error) {
	if err := w.addPool(ctx, "default"); err != nil {
		return err
	}
	if err := w.addRunner(ctx, "default"); err != nil {
		return err
	}
	if w.victim, err = w.addTenant(ctx, "victim"); err != nil {
		return err
	}
	if w.spy, err = w.addTenant(ctx, "spy"); err != nil {
		return err
	}
	w.canary = "canary-" + sdk.NewKey()
	_, err = w.op.CreateSecret(ctx, w.victim.id, "canary", []byte(w.canary), nil)
	return err
}

// addPool makes a pool whose Runs are small, or makes those of one that is there small.
func (w *world) addPool(ctx context.Context, name string) error {
	var pool api.Pool
	if status, err := w.ask(ctx, http.MethodGet, "/api/v1/pools/"+name, w.operatorKey(), nil, &pool); err != nil || status != 200 && status != 404 {
		return fmt.Errorf("reading pool %s: %d %w", name, status, err)
	}
	pool.Policy.DefaultMemory, pool.Policy.DefaultMilliCPU, pool.Policy.DefaultDisk = 32<<20, 100, 16<<20
	status, err := w.ask(ctx, http.MethodPut, "/api/v1/pools/"+name, w.operatorKey(), api.PoolChange{ExpectedRevision: pool.Revision, Policy: pool.Policy}, nil)
	if err == nil && status >= 300 {
		err = fmt.Errorf("making pool %s: %d", name, status)
	}
	return err
}

func (w *world) addRunner(ctx context.Context, pool string) error {
	var token api.RunnerToken
	status, err := w.ask(ctx, http.MethodPost, "/api/v1/pools/"+pool+"/runner-tokens", w.operatorKey(), struct{}{}, &token)
	if err != nil || status >= 300 {
		return fmt.Errorf("a token for a runner: %d %w", status, err)
	}
	name := fmt.Sprintf("runner-%d", len(w.runners))
	file := filepath.Join(w.dir, name+".token")
	if err := os.WriteFile(file, []byte(token.Token), 0o600); err != nil {
		return err
	}
	r := &process{argv: []string{w.program(), "runner", "--server", w.url, "--token-file", file, "--dir", filepath.Join(w.dir, name), "--name", name,
		"--slots", fmt.Sprint(slots), "--cpus", fmt.Sprint(slots), "--memory", "1GiB", "--disk", "1GiB"}, log: filepath.Join(w.dir, name+".log")}
	w.runners = append(w.runners, r)
	if err := r.start(); err != nil {
		return err
	}
	id := fmt.Sprintf("roadstead_pool_runners{pool=%q,state=\"active\"}", pool)
	want, _ := w.metric(ctx, id) // none yet is 0
	if err := wait(ctx, "the runner registers", 30*time.Second, func() bool { n, err := w.metric(ctx, id); return err == nil && n > want }); err != nil {
		return fmt.Errorf("%w: %s", err, r.lastWords())
	}
	return nil
}

// addTenant makes a tenant with one user.
func (w *world) addTenant(ctx context.Context, name string) (*tenant, error) {
	made, err := w.op.CreateTenant(ctx, name)
	if err != nil {
		return nil, err
	}
	user, err := w.op.CreateUser(ctx, api.NewAccount{Tenant: made.ID, Name: name})
	if err != nil {
		return nil, err
	}
	key, err := w.op.CreateKey(ctx, user.ID, "scenario", 24*time.Hour)
	if err != nil {
		return nil, err
	}
	c, err := w.client(key.Secret)
	return &tenant{made.ID, key.Secret, c}, err
}

// close ends every process of the world.
func (w *world) close() error {
	for _, p := range w.runners {
		p.end(syscall.SIGTERM)
	}
	w.endSupervisors()
	if w.server != nil {
		w.server.end(syscall.SIGTERM)
	}
	if w.stop != nil {
		return w.stop()
	}
	return nil
}
