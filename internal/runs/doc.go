// Package runs is a tenant's side of Runs: submit, look, follow, cancel, run again.
//
// Who starts next is not decided here but by the dispatch machine; what a runner says of its Attempts is heard elsewhere.
package runs

import (
	"context"
	"sync"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// Config bounds the service.
type Config struct {
	NewID       func() string // makes unique ids that sort by their making
	MaxElements int           // of an array; default 10,000
	MaxSpec     int           // bytes of a Run's specification as stored; default 256 KiB
}

// Ports are what the service lies on.
type Ports struct {
	Records  Records
	Pools    Pools
	Packages Packages
	Objects  Objects
	Secrets  Secrets
	Places   Places
}

// Service is the one door for tenants to their Runs. What is another tenant's is fault not_found.
type Service struct {
	cfg   Config
	ports Ports
	clock clock.Clock

	draining  chan struct{} // closed when the server stops
	drainOnce sync.Once

	mu       sync.Mutex
	watchers map[string][]chan struct{} // of a Run, woken when it changed
}

// New makes the service.
func New(cfg Config, ports Ports, clk clock.Clock) (*Service, error) {
	if cfg.NewID == nil {
		return nil, fault.Invalid("NewID", "must be set")
	}
	if cfg.MaxElements == 0 {
		cfg.MaxElements = 10_000
	}
	if cfg.MaxSpec == 0 {
		cfg.MaxSpec = 256 << 10
	}
	return &Service{cfg: cfg, ports: ports, clock: clk, watchers: map[string][]chan struct{}{}, draining: make(chan struct{})}, nil
}

// Drain ends what follows Runs: the server stops.
func (s *Service) Drain() { s.drainOnce.Do(func() { close(s.draining) }) }

// Draining is closed when the server stops.
func (s *Service) Draining() <-chan struct{} { return s.draining }

// now is the wall time to store, in the store's resolution.
func (s *Service) now() time.Time { return s.clock.Wall().UTC().Truncate(time.Millisecond) }

func (s *Service) entry(p identity.Principal, tenant, action, target, detail string) audit.Entry {
	return audit.Entry{ID: s.cfg.NewID(), At: s.now(), Tenant: tenant, Actor: p.ID, Action: action, Target: target, Detail: detail}
}

// visible finds a Run that the caller may see.
func (s *Service) visible(ctx context.Context, p identity.Principal, id string) (Run, error) {
	r, err := s.ports.Records.Run(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && r.Tenant != p.Tenant && !p.Operator || p.Kind == identity.Link {
		return Run{}, fault.Missing("Run " + id)
	}
	return r, err
}

// Changed tells watchers that something happened to these Runs.
func (s *Service) Changed(runs ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range runs {
		for _, w := range s.watchers[id] {
			select {
			case w <- struct{}{}:
			default: // one call that was not heard yet is enough
			}
		}
	}
}

// Watch gives a channel that is written to when the Run may have changed in this process, until stop is called. What
// happens in other processes is not told: look now and then as well.
func (s *Service) Watch(run string) (changed <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[run] = append(s.watchers[run], c)
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		rest := s.watchers[run][:0]
		for _, w := range s.watchers[run] {
			if w != c {
				rest = append(rest, w)
			}
		}
		if s.watchers[run] = rest; len(rest) == 0 {
			delete(s.watchers, run)
		}
	}
}

// wire is a Run as clients see it.
func (s *Service) wire(r Run) api.Run {
	out := api.Run{
		ID: r.ID, Tenant: r.Tenant, State: string(r.State), Reason: string(r.Reason), Pool: r.Pool, Package: r.Package,
		Class: r.Class, Priority: r.Priority, Array: r.Array, CreatedAt: r.CreatedAt, CreatedBy: r.CreatedName,
		StartedAt: optional(r.StartedAt), EndedAt: optional(r.EndedAt), CancelRequested: r.Cancel && !r.State.Ended(), SpentMicro: r.SpentMicro,
	}
	if r.Array != "" {
		index := r.Index
		out.Index = &index
	}
	if r.NextEligible.After(r.CreatedAt) {
		out.NotBefore = optional(r.NextEligible)
	}
	return out
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
