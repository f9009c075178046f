package sim

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/class"
)

// small is a fleet that takes minutes of virtual time: 60 clients x 40 MB at 40 MB/s.
func small() Config {
	c := Default()
	c.Clients, c.Sizes, c.Link, c.Seats, c.Reserve, c.Spread = 60, Sizes{40e6, 40e6}, 40e6, 4, 0, time.Second
	return c
}

func TestSimulatorWithPlainQueue(t *testing.T) {
	cfg := small()
	s, err := New(cfg, newFake(cfg.Seats), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Finished != cfg.Clients || r.Failed != 0 || r.Bytes != 60*40e6 || r.Left != (Left{}) {
		t.Errorf("report %+v", r)
	}
	// Four files at a time take four seconds; a seat stands empty at most until its owner's next poll.
	if r.Finish.First < 3.9 || r.Finish.First > 4.2 || r.Makespan < 60 || r.Makespan > 90 {
		t.Errorf("first finish after %.2f s, last byte after %.2f s", r.Finish.First, r.Makespan)
	}
	if math.Abs(r.Even.Last-60) > 1.1 || r.MeanRatio > 0.8 {
		t.Errorf("even sharing %+v, ratio %.3f", r.Even, r.MeanRatio)
	}
}

func TestSimulatorCatchesTooManySeats(t *testing.T) {
	cfg := small()
	f := newFake(cfg.Seats)
	f.greedy = true
	s, err := New(cfg, f, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "5 sessions are active on 4 seats") {
		t.Errorf("error %v", err)
	}
}

func TestRunEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cfg := small()
	cfg.Clients = 5000
	s, err := New(cfg, newFake(cfg.Seats), func(time.Duration, int, int) { cancel() })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// Under the shared strategy equal files that start together end together, after the time of all their bytes.
func TestSharedStrategy(t *testing.T) {
	cfg := small()
	cfg.Strategy, cfg.Spread, cfg.Latency = Shared, 0, 0
	r, err := Run(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Finished != 60 || math.Abs(r.Finish.First-60) > 1e-3 || math.Abs(r.Finish.Last-60) > 1e-3 || r.MeanRatio != 1 {
		t.Errorf("report %+v", r)
	}
}

func TestConfigNamesTheField(t *testing.T) {
	tests := map[string]func(*Config){
		"clients":      func(c *Config) { c.Clients = 0 },
		"sizes":        func(c *Config) { c.Sizes = Sizes{1000, 1000} },
		"link":         func(c *Config) { c.Link = 0 },
		"seats":        func(c *Config) { c.Seats = 0 },
		"reserve":      func(c *Config) { c.Reserve = 4 },
		"perPrincipal": func(c *Config) { c.PerPrincipal = 5 },
		"principals":   func(c *Config) { c.Principals = 61 },
		"spread":       func(c *Config) { c.Spread = -1 },
		"latency":      func(c *Config) { c.Latency = time.Hour },
		"vanish":       func(c *Config) { c.Vanish = math.NaN() },
		"stall":        func(c *Config) { c.Stall = 2 },
		"strategy":     func(c *Config) { c.Strategy = "fair" },
	}
	for field, spoil := range tests {
		c := small()
		spoil(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), field+": ") {
			t.Errorf("%s: error %v", field, err)
		}
	}
	if err := small().Validate(); err != nil {
		t.Error(err)
	}
}

// One option changed leaves the rest of the fleet as it was, so that two runs can be compared.
func TestFleetStreamsAreApart(t *testing.T) {
	cfg := small()
	cfg.Sizes = Sizes{20e6, 80e6}
	a := newFleet(cfg)
	cfg.Stall, cfg.Classes = 0.5, Mix{class.Bulk: 1}
	b := newFleet(cfg)
	for i := range a {
		if a[i].size != b[i].size || a[i].arrives != b[i].arrives {
			t.Fatalf("client %d is another one", i)
		}
	}
}
