// Package dispatcher runs the dispatch machine of each pool it owns: it feeds the machine with rows, commits what the
// machine decides, watches the leases, and tells every queued Run its place.
//
// Nothing is true before it is committed: a decision that the database refuses is taken back from the machine, and
// after any error whose outcome is unknown the pool is built again from its rows.
package dispatcher

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
)

// Config is the pace of the service.
type Config struct {
	NewID     func() string
	Owner     string        // id of this process among dispatchers
	Alone     bool          // no other process can own a pool: take them over at once
	Lease     time.Duration // of an Attempt; default 90 s
	Grace     time.Duration // beyond the lease before an Attempt is lost; default 15 s
	Heartbeat time.Duration // of runners; default 10 s
	Poll      time.Duration // how often the rows are looked at when nobody calls; default 1 s
	Batch     int           // decisions in one transaction; default 200
	Log       *slog.Logger  // nil: nowhere
}

// Validate fills defaults and refuses what makes no sense, naming the field.
func (c *Config) Validate() error {
	fill := func(d *time.Duration, otherwise time.Duration) {
		if *d == 0 {
			*d = otherwise
		}
	}
	fill(&c.Lease, 90*time.Second)
	fill(&c.Grace, 15*time.Second)
	fill(&c.Heartbeat, 10*time.Second)
	fill(&c.Poll, time.Second)
	if c.Batch == 0 {
		c.Batch = 200
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.NewID == nil:
		return fault.Invalid("NewID", "must be set")
	case c.Owner == "":
		return fault.Invalid("Owner", "must be set")
	case c.Batch < 1 || c.Batch > 1000:
		return fault.Invalid("Batch", "must be from 1 to 1000")
	case c.Lease < 3*c.Heartbeat:
		return fault.Invalid("Lease", "must be at least three heartbeats")
	}
	return nil
}

// Service owns pools and decides in them.
type Service struct {
	cfg     Config
	records Records
	runners Runners
	clock   clock.Clock
	wake    chan struct{} // something was put into a pool's dirty set
	watch   func(runs ...string)
	meters  *meters

	mu    sync.Mutex // guards the map and the dirty sets; taken before a pool's own lock, never after
	pools map[string]*pool
	stray map[string]bool // Runs that changed in a pool that the caller didn't know
}

// New makes the service. watch is told which Runs changed by what is decided here; nil: nobody.
func New(cfg Config, records Records, runners Runners, clk clock.Clock, watch func(runs ...string)) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if watch == nil {
		watch = func(...string) {}
	}
	return &Service{
		cfg: cfg, records: records, runners: runners, clock: clk, watch: watch,
		meters: newMeters(), wake: make(chan struct{}, 1), pools: map[string]*pool{}, stray: map[string]bool{},
	}, nil
}

// Wake says that rows of these Runs changed: they are looked at now instead of at the next poll. Without a pool, all pools
// look whether one is theirs. Without Runs, the pool's runners changed.
func (s *Service) Wake(name string, runs ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pools[name]; p != nil {
		p.call(runs)
	} else {
		for _, id := range runs {
			s.stray[id] = true
		}
	}
	select {
	case s.wake <- struct{}{}:
	default: // one call that was not heard yet is enough
	}
}

// Run owns pools and decides until the context ends.
func (s *Service) Run(ctx context.Context) error {
	poll := time.NewTicker(s.cfg.Poll)
	defer poll.Stop()
	s.discover(ctx)
	for {
		polled := false
		select {
		case <-ctx.Done():
			s.flush(context.WithoutCancel(ctx))
			return nil
		case <-s.wake:
		case <-poll.C:
			polled = true
			s.discover(ctx)
		}
		s.sortStrays(ctx)
		for _, p := range s.owned() {
			s.step(ctx, p, polled)
		}
	}
}

// owned lists the pools in the order of their names.
func (s *Service) owned() []*pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*pool, 0, len(s.pools))
	for _, name := range sortedKeys(s.pools) {
		all = append(all, s.pools[name])
	}
	return all
}

// discover finds pools that are new, and takes those over whose owner is gone.
func (s *Service) discover(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	all, err := s.records.PoolStates(limited)
	if err != nil {
		if ctx.Err() == nil {
			s.cfg.Log.Warn("the pools could not be read; what runs goes on", "error", err)
		}
		return
	}
	for _, state := range all {
		s.mu.Lock()
		p := s.pools[state.Name]
		if p == nil {
			p = newPool(state.Name)
			s.pools[state.Name] = p
		}
		s.mu.Unlock()
		p.configure(s, state)
	}
}

// sortStrays gives Runs that were called without their pool to the pool they are in.
func (s *Service) sortStrays(ctx context.Context) {
	s.mu.Lock()
	ids := sortedKeys(s.stray)
	s.stray = map[string]bool{}
	s.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	rows, err := s.records.RunRows(ctx, ids)
	if err != nil {
		return // the poll finds them
	}
	for _, row := range rows {
		s.mu.Lock()
		if p := s.pools[row.Run.Pool]; p != nil {
			p.call([]string{row.Run.ID})
		}
		s.mu.Unlock()
	}
}
