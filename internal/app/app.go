package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/attempts"
	"github.com/roadstead/roadstead/internal/blob"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/downloads"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/governor"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/settings"
	"github.com/roadstead/roadstead/internal/store"
)

// Options are what a process gives its server besides the configuration.
type Options struct {
	Version string
	Log     *slog.Logger // nil: nowhere
	Out     io.Writer    // told once, at the first start, how to sign in; nil: nowhere
	// WrapResults puts something between Attempts and the store of their results, such as a slow line; nil: nothing.
	WrapResults func(attempts.Objects) attempts.Objects
}

// App is one server: Open, Run, Close.
type App struct {
	cfg     Config
	options Options

	data      *dataDir
	store     *store.Store
	blobs     *blob.Disk
	identity  *identity.Directory
	artifacts *artifacts.Service
	link      *governor.Governor
	downloads *downloads.Service
	settings  *settings.Service
	run       runParts
	health    *health
	cert      *certificate // nil without TLS
	metrics   *prometheus.Registry

	listener net.Listener
	server   *http.Server
	flights  flights
	reload   chan struct{} // asks for a new look at the certificate
}

// Open takes the data directory, opens everything in it and listens. Nothing runs and nobody is answered before Run.
func Open(ctx context.Context, cfg Config, o Options) (a *App, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	a = &App{cfg: cfg, options: o, reload: make(chan struct{}, 1), metrics: prometheus.NewRegistry()}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	for _, step := range []func(context.Context) error{a.openState, a.openServices, a.openServer} {
		if err := step(ctx); err != nil {
			return a, err
		}
	}
	return a, a.bootstrap(ctx)
}

// openState opens what survives the process.
func (a *App) openState(ctx context.Context) (err error) {
	if a.data, err = openDataDir(a.cfg.Data); err != nil {
		return err
	}
	if a.store, err = store.OpenSQLite(ctx, a.data.file("roadstead.db")); err != nil {
		return err
	}
	a.blobs, err = blob.New(blob.Config{Dir: a.data.file("blobs"), Reserve: a.cfg.DiskReserve})
	return err
}

// openServices makes the services over the state.
func (a *App) openServices(ctx context.Context) (err error) {
	clk := clock.NewSystem()
	if a.identity, err = identity.New(identity.Config{NewID: store.NewID}, a.store, clk); err != nil {
		return err
	}
	if a.artifacts, err = artifacts.New(artifacts.Config{NewID: store.NewID}, a.store, a.blobs, a.identity, clk); err != nil {
		return err
	}
	if a.link, err = governor.New(governor.Config{Total: a.cfg.Bandwidth, PerPrincipal: a.cfg.BandwidthPerPrincipal}, clk); err != nil {
		return err
	}
	if err := a.openDownloads(ctx, clk); err != nil {
		return err
	}
	if err := a.openRuns(ctx, clk); err != nil {
		return err
	}
	return a.openWatch(ctx, clk)
}

// Addr is the address the server listens on.
func (a *App) Addr() string { return a.listener.Addr().String() }

// URL is the server's address for clients on this machine.
func (a *App) URL() string {
	if a.cert != nil {
		return "https://" + a.Addr()
	}
	return "http://" + a.Addr()
}

// OperatorKeyFile is where the first start leaves the operator's API key.
func (a *App) OperatorKeyFile() string { return a.data.file("operator.key") }

// Reload looks at the certificate files now.
func (a *App) Reload() {
	select {
	case a.reload <- struct{}{}:
	default: // one look that has not begun yet is enough
	}
}

// bootstrap makes the operator and the default pool at the first start and says how to sign in, once.
func (a *App) bootstrap(ctx context.Context) error {
	made, err := a.identity.Bootstrap(ctx, func(secret string) error {
		return writeSecret(a.OperatorKeyFile(), secret+"\n")
	})
	if err != nil {
		return fmt.Errorf("making the operator: %w", err)
	}
	if err := a.run.pools.EnsureDefault(ctx); err != nil {
		return fmt.Errorf("making the default pool: %w", err)
	}
	if made {
		_, err = fmt.Fprintf(a.options.Out, `First start. The operator's API key is in %[1]s (only you can read it). To sign in:

  roadctl login %[2]s --key-file %[1]s
  curl -H "Authorization: Bearer $(cat %[1]s)" %[2]s/api/v1/whoami

`, a.OperatorKeyFile(), a.URL())
	}
	return err
}

// Run answers requests until ctx ends, then drains: those waiting are told to come back, running downloads may finish
// within the drain limit (D-7.4). It returns nil after an orderly stop.
func (a *App) Run(ctx context.Context) error {
	// The services outlive ctx by the drain.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	failed := make(chan error, 16)
	var running sync.WaitGroup
	start := func(name string, run func(context.Context) error) {
		running.Go(func() {
			if err := run(work); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("%s: %w", name, err)
			}
		})
	}
	start("identity", a.identity.Run)
	start("artifacts", func(ctx context.Context) error { return a.artifacts.Run(ctx, a.options.Log) })
	start("downloads", a.downloads.Run)
	start("settings", a.settings.Run)
	start("attempts", a.run.attempts.Run)
	start("dispatcher", a.run.dispatcher.Run)
	start("schedules", a.run.schedules.Run)
	start("auditor", a.run.auditor.Run)
	if a.cert != nil {
		start("certificate", func(ctx context.Context) error {
			a.cert.watch(ctx, 10*time.Second, a.reload, a.options.Log)
			return nil
		})
	}
	start("http", func(context.Context) error { return a.serve() })
	if err := a.startRunner(ctx, start); err != nil && ctx.Err() == nil {
		failed <- err
	}
	a.options.Log.Info("serving", "url", a.URL(), "version", a.options.Version, "data", a.cfg.Data)

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	a.drain()
	stop()
	running.Wait()
	select {
	case late := <-failed:
		err = errors.Join(err, late)
	default:
	}
	a.options.Log.Info("stopped")
	return err
}

func (a *App) serve() error {
	if a.cert != nil {
		return a.server.Serve(tls.NewListener(a.listener, a.cert.config()))
	}
	return a.server.Serve(a.listener)
}

// quiet returns when nothing is being sent and nobody is between two ranges of a download, or with the context's error.
func (a *App) quiet(ctx context.Context) error {
	for {
		if err := a.flights.wait(ctx); err != nil {
			return err
		}
		if a.downloads.Sending() == 0 {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// drain lets running answers finish. New requests are still answered meanwhile, so that waiting clients that ask again
// hear "come back later" instead of a closed door.
func (a *App) drain() {
	a.options.Log.Info("draining", "seconds", a.cfg.Drain.Seconds())
	a.health.stop.Store(true)
	a.server.SetKeepAlivesEnabled(false)
	a.downloads.Drain()
	a.run.attempts.Drain()
	a.run.runs.Drain()
	limit, cancel := context.WithTimeout(context.Background(), a.cfg.Drain)
	defer cancel()
	if err := a.quiet(limit); err != nil {
		a.options.Log.Warn("the drain limit passed; running answers are cut")
	}
	// What came between the wait and here has a second; the connections of the rest are closed.
	last, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := a.server.Shutdown(last); err != nil {
		_ = a.server.Close() // nothing is left to do about a connection that does not close
	}
}

// Close gives back what Open took. Call it after Run has returned, or instead of it.
func (a *App) Close() error {
	var errs []error
	if a.server != nil {
		errs = append(errs, a.server.Close())
	}
	if a.listener != nil {
		if err := a.listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if a.blobs != nil {
		errs = append(errs, a.blobs.Close())
	}
	if a.store != nil {
		errs = append(errs, a.store.Close())
	}
	if a.data != nil {
		errs = append(errs, a.data.Close())
	}
	return errors.Join(errs...)
}

// busyAddress names the setting when the address can't be had. Only one that is taken may be had later.
func busyAddress(err error, listen string) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return fault.Invalid(envOf("listen"), "must be an address of this machine with a port that may be used: %v", err)
	}
	return fault.Wrap(fault.Conflict, err, "cannot listen on %s (%s)", listen, envOf("listen"))
}
