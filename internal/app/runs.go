package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"

	"github.com/roadstead/roadstead/internal/archive"
	"github.com/roadstead/roadstead/internal/attempts"
	"github.com/roadstead/roadstead/internal/catalog"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/dispatcher"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/plan"
	"github.com/roadstead/roadstead/internal/pools"
	"github.com/roadstead/roadstead/internal/runner"
	"github.com/roadstead/roadstead/internal/runs"
	"github.com/roadstead/roadstead/internal/schedules"
	"github.com/roadstead/roadstead/internal/secrets"
	"github.com/roadstead/roadstead/internal/store"
)

// runParts is the half of the server that runs things.
type runParts struct {
	catalog    *catalog.Service
	secrets    *secrets.Service
	pools      *pools.Service
	dispatcher *dispatcher.Service
	attempts   *attempts.Service
	runs       *runs.Service
	schedules  *schedules.Service
	auditor    *attempts.Auditor
	planner    *plan.Planner
}

// openRuns makes the services of Runs over the state. Those that call each other are connected at the end.
func (a *App) openRuns(_ context.Context, clk clock.Clock) (err error) {
	r := &a.run
	lease, heartbeat := a.cfg.RunnerLease, a.cfg.RunnerHeartbeat
	limits := archive.Limits{Entries: 100_000, Bytes: 64 << 30}
	if r.catalog, err = catalog.New(catalog.Config{
		NewID: store.NewID, CheckArchive: checkWith(limits), CheckImage: checkWith(limits),
	}, a.store, a.artifacts, clk); err != nil {
		return err
	}
	keys, err := secrets.OpenKeyring(a.data.file("secrets.key"))
	if err != nil {
		return err
	}
	if r.secrets, err = secrets.New(secrets.Config{NewID: store.NewID}, a.store, keys, clk); err != nil {
		return err
	}
	late := &lateNews{}
	if r.attempts, err = attempts.New(attempts.Config{NewID: store.NewID, Lease: lease, Heartbeat: heartbeat, Log: a.options.Log}, attempts.Ports{
		Records: a.store, Objects: a.objects(), Secrets: newAttemptSecrets(r.secrets), Usable: usable{r.catalog}, News: late,
	}, clk); err != nil {
		return err
	}
	if r.dispatcher, err = dispatcher.New(dispatcher.Config{
		NewID: store.NewID, Owner: "dsp_" + store.NewID(), Alone: true, Lease: lease, Grace: a.cfg.leaseGrace(), Heartbeat: heartbeat, Log: a.options.Log,
	}, a.store, r.attempts, clk, func(ids ...string) { late.runs.Changed(ids...) }); err != nil {
		return err
	}
	if r.pools, err = pools.New(pools.Config{NewID: store.NewID, Lease: lease, Heartbeat: heartbeat, Live: r.dispatcher}, a.store, clk); err != nil {
		return err
	}
	if r.runs, err = runs.New(runs.Config{NewID: store.NewID}, runs.Ports{
		Records: a.store, Pools: r.pools, Packages: packages{r.catalog}, Objects: storedFiles{a.artifacts}, Secrets: r.secrets, Places: r.dispatcher,
	}, clk); err != nil {
		return err
	}
	late.dispatcher, late.runs = r.dispatcher, r.runs
	r.schedules, err = schedules.New(schedules.Config{NewID: store.NewID, Log: a.options.Log}, a.store, templates{r.runs}, scheduled{r.runs, a.identity}, clk)
	return err
}

// openRunner makes the runner inside this server. A machine that can't hold Attempts to their limits has none, and says why.
func (a *App) openRunner(ctx context.Context, clk clock.Clock) (*runner.Runner, error) {
	if a.cfg.RunnerSlots == 0 {
		return nil, nil
	}
	dir, err := a.runnerDir()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, err
	}
	capacity := machineCapacity(dir)
	if a.cfg.RunnerSlots > 0 {
		capacity.Slots = int64(a.cfg.RunnerSlots)
	}
	cfg := runner.Config{
		Server: a.URL(), Dir: dir, Name: "embedded", Version: a.options.Version, Log: a.options.Log, Capacity: capacity, Executor: executorConfig(capacity.Slots),
	}
	if _, err := os.Stat(filepath.Join(dir, "registration.json")); errors.Is(err, os.ErrNotExist) {
		token, err := a.run.pools.NewToken(ctx, identity.Principal{Operator: true, Name: "server"}, pools.DefaultPool)
		if err != nil {
			return nil, err
		}
		cfg.Token = token.Token
	}
	r, err := runner.New(ctx, cfg, clk)
	if fault.Is(err, fault.Conflict) {
		a.options.Log.Warn("this server runs nothing itself; Runs wait until a runner registers", "reason", fault.From(err).Message)
		return nil, nil
	}
	return r, err
}

// runnerDir is where the runner inside this server works. As root its Attempts run as users of their own, who have to
// be let through to it; the data directory lets nobody through, so it lies elsewhere, by the data directory's name.
func (a *App) runnerDir() (string, error) {
	if a.cfg.RunnerDir != "" {
		return filepath.Abs(a.cfg.RunnerDir)
	}
	data, err := filepath.Abs(a.cfg.Data)
	if err != nil || os.Geteuid() != 0 {
		return filepath.Join(data, "runner"), err
	}
	sum := sha256.Sum256([]byte(data))
	return filepath.Join("/var/lib/roadstead", "runner-"+hex.EncodeToString(sum[:6])), nil
}

// startRunner starts the runner inside this server.
func (a *App) startRunner(ctx context.Context, start func(name string, run func(context.Context) error)) error {
	r, err := a.openRunner(ctx, clock.NewSystem())
	if err != nil || r == nil {
		return err
	}
	// It ends before the server is drained; its Attempts go on under their supervisors.
	start("runner", func(context.Context) error { return r.Run(ctx) })
	return nil
}
