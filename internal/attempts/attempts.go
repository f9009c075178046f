// Package attempts hears what runners say of their Attempts: leases, starts, logs, results and how it ended.
//
// Every call carries the fence of the Attempt. It is compared in the transaction of whatever the call changes, so a
// runner that was taken for lost can change nothing any more, however late it wakes up (R-4.2, R15, R21).
package attempts

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/runs"
)

// Config is the pace of the service.
type Config struct {
	NewID       func() string
	Lease       time.Duration // what a renewal is worth; default 90 s
	Heartbeat   time.Duration // how often runners renew; default 10 s
	GrantLife   time.Duration // of leave to upload; default 15 min
	VerifyLimit time.Duration // for results to prove true; default 10 min
	ScanEvery   time.Duration // for unfinished endings; default 2 s
	MaxResult   int64         // bytes of one result or checkpoint; default 64 GiB
	Log         *slog.Logger  // nil: nowhere
}

// Validate fills defaults and refuses what makes no sense, naming the field.
func (c *Config) Validate() error {
	for _, d := range []struct {
		field    *time.Duration
		name     string
		default_ time.Duration
	}{
		{&c.Lease, "Lease", 90 * time.Second}, {&c.Heartbeat, "Heartbeat", 10 * time.Second}, {&c.GrantLife, "GrantLife", 15 * time.Minute},
		{&c.VerifyLimit, "VerifyLimit", 10 * time.Minute}, {&c.ScanEvery, "ScanEvery", 2 * time.Second},
	} {
		if *d.field == 0 {
			*d.field = d.default_
		}
		if *d.field < 0 {
			return fault.Invalid(d.name, "must be positive")
		}
	}
	if c.MaxResult == 0 {
		c.MaxResult = 64 << 30
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.NewID == nil:
		return fault.Invalid("NewID", "must be set")
	case c.Lease < 3*c.Heartbeat:
		return fault.Invalid("Lease", "must be at least three heartbeats, so that one lost call costs nothing")
	}
	return nil
}

// Caller is the runner that calls, as its key says.
type Caller struct {
	Runner   string
	Pool     string
	Draining bool
	DrainBy  time.Time // of the pool's drain; zero for none
}

// Service is the one door for runners.
type Service struct {
	cfg    Config
	ports  Ports
	clock  clock.Clock
	meters *meters

	draining  chan struct{} // closed when the server stops
	drainOnce sync.Once

	mu      sync.Mutex
	waiting map[string]chan struct{} // of runners whose exchange waits for news
	failing map[string]clock.Mono    // since when the results of an Attempt could not be verified
}

// Ports are what the service lies on.
type Ports struct {
	Records Records
	Objects Objects
	Secrets Secrets
	Usable  Usable
	News    News
}

// New makes the service.
func New(cfg Config, ports Ports, clk clock.Clock) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Service{cfg: cfg, ports: ports, clock: clk, meters: newMeters(), waiting: map[string]chan struct{}{}, failing: map[string]clock.Mono{}, draining: make(chan struct{})}, nil
}

func (s *Service) now() time.Time { return s.clock.Wall().UTC().Truncate(time.Millisecond) }

// Drain answers every exchange that waits, and those to come, at once: the server stops.
func (s *Service) Drain() { s.drainOnce.Do(func() { close(s.draining) }) }

// Lost is the refusal of a call whose fence is not the Attempt's any more: the runner stops the payload.
func Lost(attempt string) error {
	f := fault.New(fault.Conflict, "Attempt %s is not yours any more: its lease was lost, or it ended; stop it and report nothing", attempt)
	f.Reason = api.ReasonLeaseLost
	return f
}

// Run takes up endings that were reported and not finished, until the context ends.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(s.cfg.ScanEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			s.scan(ctx)
		}
	}
}

// changed tells the dispatcher and those who watch.
func (s *Service) changed(a runs.Attempt, ended *runs.Ended) {
	touched := []string{a.Run}
	if ended != nil {
		touched = append(append(touched, ended.Freed...), ended.Dropped...)
	}
	s.ports.News.Changed(a.Pool, touched...)
}

// cost is what an Attempt costs: the time of its slots as this server saw it, never more than was held, whatever the
// runner says.
func cost(a runs.Attempt, spec runs.Spec, until time.Time) int64 {
	if a.StartedAt.IsZero() || spec.PriceMicro == 0 {
		return 0
	}
	took := max(0, until.Sub(a.StartedAt))
	micro := int64(took.Seconds() * float64(spec.PriceMicro*spec.Resources.Slots))
	return min(micro, spec.HoldMicro)
}

// terminal is the end of an Attempt that a report without results to verify means.
func terminal(r api.JobReport) (lifecycle.Attempt, lifecycle.Reason) {
	switch {
	case r.Outcome == "cancelled":
		return lifecycle.AttemptCancelled, lifecycle.CancelRequested
	case r.Outcome == "interrupted":
		return lifecycle.AttemptInterrupted, reasonOr(r.Reason, lifecycle.RunnerLost)
	case r.Outcome == "exited" && r.ExitCode != 0:
		return lifecycle.AttemptFailed, lifecycle.ExitCode
	}
	return lifecycle.AttemptFailed, reasonOr(r.Reason, lifecycle.CannotStart)
}

func reasonOr(word string, otherwise lifecycle.Reason) lifecycle.Reason {
	switch r := lifecycle.Reason(word); r {
	case lifecycle.TimedOut, lifecycle.OutOfMemory, lifecycle.OutOfDisk, lifecycle.LogLimit, lifecycle.CannotStart, lifecycle.Killed,
		lifecycle.Drained, lifecycle.RunnerLost:
		return r
	}
	return otherwise
}
