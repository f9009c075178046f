package app

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/roadstead/roadstead/internal/delivery"
	"github.com/roadstead/roadstead/internal/serve"
	jsonapi "github.com/roadstead/roadstead/internal/serve/api"
	"github.com/roadstead/roadstead/internal/serve/files"
	"github.com/roadstead/roadstead/internal/serve/uploads"
)

// openServer makes the HTTP side and listens.
func (a *App) openServer(ctx context.Context) (err error) {
	a.health = &health{
		ping: a.store.Ping, free: a.freeDisk, reserve: a.cfg.DiskReserve, queue: a.downloads.Queue, settings: a.settings.Problem, journal: a.downloads.Journal,
		pools: a.run.dispatcher.Figures, census: a.run.auditor.Last,
	}
	a.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	a.metrics.MustRegister(a.downloads.Collectors()...)
	a.metrics.MustRegister(slices.Concat(a.run.dispatcher.Collectors(), a.run.attempts.Collectors(), a.store.Collectors())...)
	a.metrics.MustRegister(a.run.auditor, buildInfo(a.options.Version))
	resumable, err := uploads.New(a.artifacts)
	if err != nil {
		return err
	}
	bytes := files.New(a.downloads.Idle, a.artifacts, a.downloads, a.link)
	handler, err := serve.New(serve.Config{Proxies: a.cfg.TrustedProxies, Version: a.options.Version}, serve.Services{
		Auth: a.identity,
		API: jsonapi.Services{
			Accounts: a.identity, Keys: a.identity, Grants: a.identity, Artifacts: a.artifacts, Links: a.artifacts,
			Queue: a.downloads.Queue, Settings: a.settings, Bookings: a.downloads, Objects: a.artifacts,
			Packages: a.run.catalog, Secrets: a.run.secrets, Schedules: a.run.schedules, Runs: a.run.runs, Attempts: a.run.attempts, Pools: a.run.pools, Plan: a.run.planner,
		},
		Files:   bytes,
		Runners: a.run.pools,
		Runs:    &files.RunFiles{Handlers: bytes, Runs: a.run.runs, Attempts: a.run.attempts},
		Follow:  a.run.runs,
		Uploads: resumable,
		Health:  a.health, Metrics: a.metrics, Log: a.options.Log,
	})
	if err != nil {
		return err
	}
	if a.cfg.TLSCertFile != "" {
		if a.cert, err = openCertificate(a.cfg.TLSCertFile, a.cfg.TLSKeyFile); err != nil {
			return err
		}
	}
	var listen net.ListenConfig
	if a.listener, err = listen.Listen(ctx, "tcp", a.cfg.Listen); err != nil {
		return busyAddress(err, a.cfg.Listen)
	}
	a.server = &http.Server{
		Handler:           a.flights.wrap(handler),
		ConnContext:       delivery.ConnContext, // rates count what left the sockets, not what they swallowed
		ReadHeaderTimeout: 10 * time.Second,     // who dribbles a header holds a connection no longer than that
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		Protocols:         new(http.Protocols),
		ErrorLog:          slog.NewLogLogger(a.options.Log.Handler(), slog.LevelDebug),
	}
	a.server.Protocols.SetHTTP1(true)
	return nil
}

// buildInfo is the usual metric whose label says which version runs.
func buildInfo(version string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "roadstead_build_info", Help: "Always 1; the label is the version that runs.", ConstLabels: prometheus.Labels{"version": version},
	}, func() float64 { return 1 })
}

// freeDisk is what may still be written to the data directory's disk.
func (a *App) freeDisk() (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(a.cfg.Data, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
