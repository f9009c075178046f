// Package runner is the agent on a machine that runs Attempts: it keeps leases, starts sandboxes, carries logs and
// results to the server, and says how each Attempt ended.
//
// It talks to the server by HTTP only, the embedded one too. What it took over it keeps on its disk before it says so,
// and a report until the server has it, so that its own death loses nothing: the Attempts live on under their
// supervisors and the next process finds them.
package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/executor"
	"github.com/roadstead/roadstead/internal/fault"
)

// Config says whose runner this is.
type Config struct {
	Server    string // URL
	Dir       string // of the runner's state, its cache and its Attempts
	Name      string
	Token     string // to register with, once; not needed when the folder knows a registration
	Capacity  api.Resources
	Labels    map[string]string
	Version   string
	CacheSize int64 // bytes of unpacked packages and images that are kept; default 10 GiB
	Log       *slog.Logger
	Executor  executor.Config
}

// Runner is the agent. New, Run.
type Runner struct {
	cfg    Config
	clock  clock.Clock
	exec   *executor.Executor
	state  *state
	client *client
	cache  *cache

	mu      sync.Mutex
	held    map[string]*held
	drained bool // nothing new is to come, the server says
	ending  bool // the drain's deadline is being waited for
	news    chan struct{}
	working sync.WaitGroup
}

// held is an Attempt that the runner has taken over and whose report the server doesn't have yet.
type held struct {
	assignment api.Assignment
	cancelled  bool
	lost       bool
	found      bool              // an earlier process of this runner took it over
	attempt    *executor.Attempt // once there is one
	renewed    time.Time         // until when it may run; zero while this process has not heard so
	stop       context.CancelFunc
}

// New opens the runner's folder. It refuses a machine that can't hold Attempts to their limits, saying what is missing.
func New(ctx context.Context, cfg Config, clk clock.Clock) (*Runner, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.CacheSize == 0 {
		cfg.CacheSize = 10 << 30
	}
	st, err := openState(cfg.Dir)
	if err != nil {
		return nil, err
	}
	cfg.Executor.Dir = st.folder("attempts")
	exec, err := executor.New(cfg.Executor)
	if err != nil {
		return nil, err
	}
	if report := exec.Probe(ctx); len(report.Missing) > 0 {
		return nil, fault.New(fault.Conflict, "this machine can't hold Attempts to their limits: %s", list(report.Missing))
	}
	r := &Runner{
		cfg: cfg, clock: clk, exec: exec, state: st, client: newClient(cfg.Server), held: map[string]*held{}, news: make(chan struct{}, 1),
	}
	r.cache, err = openCache(st.folder("cache"), cfg.CacheSize)
	return r, err
}

func list(words []string) string {
	out := ""
	for i, w := range words {
		if i > 0 {
			out += "; "
		}
		out += w
	}
	return out
}

// Run registers the runner if it has to, takes up what an earlier process left, and works until the context ends. The
// Attempts go on under their supervisors.
func (r *Runner) Run(ctx context.Context) error {
	if err := r.register(ctx); err != nil {
		return err
	}
	if err := r.recover(ctx); err != nil {
		return err
	}
	defer r.exec.Dismiss()
	defer r.working.Wait()
	wait := time.Second
	for ctx.Err() == nil {
		err := r.exchange(ctx)
		switch {
		case err == nil:
			wait = time.Second
			continue
		case ctx.Err() != nil:
			return nil
		case isCode(err, 401):
			return fmt.Errorf("the server doesn't know this runner any more (was it revoked?): %w", err)
		case isCode(err, 400):
			return err
		}
		r.cfg.Log.Warn("the server does not answer; what runs goes on until its lease ends", "error", err)
		pause(ctx, wait)
		wait = min(2*wait, r.heartbeat())
	}
	return nil
}

func (r *Runner) heartbeat() time.Duration {
	return seconds(max(1, r.state.registration.HeartbeatSeconds))
}

// pause waits, or returns early when the context ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (r *Runner) register(ctx context.Context) error {
	if r.state.registration.Key != "" {
		r.client.key = r.state.registration.Key
		return nil
	}
	if r.cfg.Token == "" {
		return fault.Invalid("token", "the runner is not registered yet: give it a token (roadctl pools token POOL)")
	}
	var out api.RegisteredRunner
	err := r.client.post(ctx, "/api/v1/runners/register", api.RegisterRunner{
		Token: r.cfg.Token, Name: r.cfg.Name, Capacity: r.cfg.Capacity, Labels: r.cfg.Labels, Protocol: api.RunnerProtocol, Version: r.cfg.Version,
	}, &out)
	if err != nil {
		return fmt.Errorf("registering with %s: %w", r.cfg.Server, err)
	}
	if err := r.state.saveRegistration(out); err != nil {
		return err
	}
	r.client.key = out.Key
	r.cfg.Log.Info("registered", "runner", out.Runner, "pool", out.Pool)
	return nil
}

// exchange is one call to the server: leases are renewed, news come back.
func (r *Runner) exchange(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, 45*time.Second)
	defer cancel()
	in := api.Exchange{
		Protocol: api.RunnerProtocol, Acknowledged: r.state.acknowledged(), Holds: r.holds(), Capacity: &r.cfg.Capacity,
		WaitSeconds: int64(r.heartbeat() / time.Second), Draining: r.isDrained(),
	}
	sent := time.Now() // the lease counts from before the call: the server may have heard it at once
	stop := r.interruptible(limited, cancel)
	defer stop()
	var out api.Exchanged
	if err := r.client.post(limited, "/api/v1/runner/exchange", in, &out); err != nil {
		if errors.Is(err, context.Canceled) && ctx.Err() == nil {
			return nil // there was news here that the server should hear
		}
		return err
	}
	r.renew(in.Holds, sent.Add(worth(seconds(out.LeaseSeconds))))
	news := len(out.Assignments)
	if len(out.Orders) == 0 {
		news++ // it was waited for
	}
	for _, o := range out.Orders {
		if r.obey(o) {
			news++
		}
	}
	for _, a := range out.Assignments {
		if err := r.takeOver(ctx, a); err != nil {
			return err
		}
	}
	if len(out.Assignments) == 0 {
		r.state.acknowledge(out.Sequence)
	}
	r.drain(ctx, out)
	if news == 0 {
		pause(ctx, time.Second) // what is being ended is ordered again at once, until it is gone
	}
	return nil
}

// interruptible ends a waiting call when the runner has something new to say.
func (r *Runner) interruptible(ctx context.Context, cancel context.CancelFunc) (stop func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-r.news:
			cancel()
		case <-done:
		case <-ctx.Done():
		}
	}()
	return func() { close(done) }
}

// takeOver keeps an assignment on the disk and starts to work on it. Only then it is acknowledged.
func (r *Runner) takeOver(ctx context.Context, a api.Assignment) error {
	if err := r.state.saveAssignment(a); err != nil {
		return err
	}
	r.state.acknowledge(a.Sequence)
	r.work(ctx, a, false)
	return nil
}

// work follows one Attempt to its end in a goroutine of its own. What goes wrong on this machine is tried again: as long
// as the lease is renewed, nobody else looks after it.
func (r *Runner) work(ctx context.Context, a api.Assignment, found bool) {
	r.mu.Lock()
	if r.held[a.Attempt] != nil {
		r.mu.Unlock()
		return
	}
	inner, stop := context.WithCancel(ctx)
	h := &held{assignment: a, stop: stop, found: found}
	r.held[a.Attempt] = h
	r.mu.Unlock()
	r.working.Go(func() {
		defer stop()
		for {
			done, err := r.attempt(inner, h)
			if err != nil && ctx.Err() == nil {
				r.cfg.Log.Warn("an Attempt has trouble on this machine", "attempt", a.Attempt, "over", done, "error", err)
			}
			if done {
				r.forget(a.Attempt)
			}
			if done || ctx.Err() != nil {
				return
			}
			pause(inner, time.Second)
		}
	})
}

// forget drops an Attempt that is over for the server too.
func (r *Runner) forget(id string) {
	r.mu.Lock()
	h := r.held[id]
	delete(r.held, id)
	r.mu.Unlock()
	a, err := r.exec.Attach(id)
	if h != nil && err == nil {
		if err := a.Remove(); err != nil {
			r.cfg.Log.Warn("an Attempt's folder could not be wiped; the next start does it", "attempt", id, "error", err)
		}
	}
	if err := r.state.drop(id); err != nil {
		r.cfg.Log.Warn("an Attempt's record could not be removed", "attempt", id, "error", err)
	}
	select {
	case r.news <- struct{}{}: // the server has a free place to hear of
	default:
	}
}

// recover finds what an earlier process left: Attempts that run are followed, others are settled.
func (r *Runner) recover(ctx context.Context) error {
	known, err := r.state.assignments()
	if err != nil {
		return err
	}
	found, err := r.exec.Sweep(func(id string) bool { _, ok := known[id]; return ok })
	if err != nil {
		return fmt.Errorf("looking for Attempts of an earlier process: %w", err)
	}
	for _, a := range found {
		if _, ok := known[a.ID()]; !ok {
			// Nobody knows whose it is any more; its lease ends it.
			r.cfg.Log.Warn("an Attempt runs that nobody is known to have assigned", "attempt", a.ID())
		}
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		r.work(ctx, known[id], true)
	}
	return nil
}

func (r *Runner) isDrained() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.drained
}

// drain hears whether the server drains the pool, and ends what still runs when the deadline passes.
func (r *Runner) drain(ctx context.Context, out api.Exchanged) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drained = out.Drain
	left := seconds(out.DrainSeconds)
	if !out.Drain || left == 0 || r.ending || left > r.heartbeat() {
		return // nothing ends, or there will be another call before
	}
	r.ending = true
	r.working.Go(func() {
		pause(ctx, left)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ending = false
		if ctx.Err() != nil || !r.drained {
			return
		}
		for _, id := range slices.Sorted(maps.Keys(r.held)) {
			r.endLocked(r.held[id], lifecycle.Drained)
		}
	})
}
