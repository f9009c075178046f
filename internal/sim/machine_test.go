package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/core/session"
)

// fleets are what the properties are checked on.
func fleets() map[string]Config {
	one := GateFleet(0)
	one.Clients = 80
	shared := one
	shared.Principals = 7
	troubled := replayFleet(0)
	short := small()
	short.Clients, short.Latency = 200, time.Millisecond
	stock := short
	stock.Stock, stock.Principals, stock.Seats, stock.Reserve = 0.5, 5, 8, 1
	slow := one
	slow.Clients, slow.ClientRate, slow.Latency = 40, 50e6, 80*time.Millisecond
	lost := short
	lost.Vanish, lost.Stall, lost.Stock, lost.Spread = 0.5, 0.5, 0.3, time.Minute
	lost.Classes = Mix{class.Interactive: 0.25, class.Release: 0.25, class.Bulk: 0.25, class.Background: 0.25}
	single := short
	single.Clients, single.Seats = 50, 1
	return map[string]Config{
		"one principal each": one, "shared principals": shared, "trouble in every class": troubled, "short files": short,
		"stock tools": stock, "slow clients": slow, "most clients lost": lost, "one seat": single,
	}
}

// Everybody who stays finishes, the link carries no more than it can, no seat is given twice, and nothing is left in
// the machine once the last record has expired.
func TestFleetProperties(t *testing.T) {
	for name, cfg := range fleets() {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(4) {
				cfg.Seed = seed
				s, err := New(cfg, watch(t, cfg), nil)
				if err != nil {
					t.Fatal(err)
				}
				r, err := s.Run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if r.Failed != 0 || r.Finished+r.Vanished != cfg.Clients || cfg.Vanish == 0 && r.Vanished != 0 {
					t.Errorf("seed %d: %d finished, %d failed, %d left", seed, r.Finished, r.Failed, r.Vanished)
				}
				if r.Left != (Left{}) {
					t.Errorf("seed %d: left in the machine: %+v", seed, r.Left)
				}
				if limit := float64(cfg.Link) * (r.Makespan + 1e-3); float64(r.Bytes) > limit {
					t.Errorf("seed %d: %d bytes over a link for %.0f", seed, r.Bytes, limit)
				}
				checkNoShows(t, s)
				checkOrder(t, s)
			}
		})
	}
}

// checkNoShows: who asks in time is never dropped, who stops asking is, once (D-2.11). Who leaves or falls silent in
// mid-file may have given its seat up first (D-4.5): then it is one that waits and does not ask.
func checkNoShows(t *testing.T, s *Simulation) {
	t.Helper()
	silent, midFile := 0, 0
	for _, c := range s.fleet {
		switch {
		case c.fate == leavesQueue && c.state == gone && !c.cancels:
			silent++
		case c.fate == leavesFile || c.silence > 0:
			midFile++
		}
	}
	if n := s.tally.noShows; n < silent || n > silent+midFile {
		t.Errorf("seed %d: %d no-shows, %d clients stopped asking, %d more in mid-file", s.cfg.Seed, n, silent, midFile)
	}
}

// checkOrder: in a class of a principal sessions start by arrival, save that of those marked at once the first to
// come takes the seat (D-2.12, D-3.1). At most twice the free and ending seats are marked, and more only while a seat
// stays free.
func checkOrder(t *testing.T, s *Simulation) {
	t.Helper()
	type group struct {
		principal int
		class     class.Class
	}
	started := map[group][]*client{}
	for _, c := range s.fleet {
		if c.begun && c.fate != leavesQueue {
			started[group{c.principal, c.class}] = append(started[group{c.principal, c.class}], c)
		}
	}
	most := 4 * s.cfg.Seats
	for g, clients := range started {
		byStart := slices.Clone(clients)
		slices.SortStableFunc(byStart, func(a, b *client) int { return int(a.started - b.started) })
		for i, c := range byStart {
			if at := slices.Index(clients, c); at-i > most {
				t.Errorf("seed %d: the %d-th of principal %d starts as the %d-th", s.cfg.Seed, at+1, g.principal, i+1)
			}
		}
	}
}

// The machine scores the interval the client was told, not another one (D-6.3).
func TestMachineScoresWhatWasTold(t *testing.T) {
	cfg := small()
	w := watch(t, cfg)
	s, err := New(cfg, w, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	scored := 0
	for _, e := range w.starts {
		c := s.byKey[e.Key]
		if e.Promised != c.promised {
			t.Errorf("client %d was told an interval: %t, the machine says %t", c.index, c.promised, e.Promised)
		}
		if !e.Promised {
			continue
		}
		scored++
		near := func(a, b int64) bool { return a-b < 5e6 && b-a < 5e6 }
		if p := c.promise; !near(int64(e.Point), int64(p.Start)) || !near(int64(e.Earliest), int64(p.Earliest)) || !near(int64(e.Latest), int64(p.Latest)) {
			t.Errorf("client %d was told %s in %s..%s, scored %s in %s..%s", c.index, time.Duration(p.Start), time.Duration(p.Earliest),
				time.Duration(p.Latest), time.Duration(e.Point), time.Duration(e.Earliest), time.Duration(e.Latest))
		}
	}
	if scored < cfg.Clients/2 {
		t.Errorf("only %d starts were scored", scored)
	}
}

// A replay makes the same decisions at the same instants, whatever happens to the fleet (D-13.1).
func TestReplayIsTheSame(t *testing.T) {
	cfg := replayFleet(7)
	cfg.Clients = 50
	first := ""
	for i := range 20 {
		r, err := Run(t.Context(), cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = r.Hash
		}
		if r.Hash != first {
			t.Fatalf("run %d has another hash", i+1)
		}
	}
	cfg.Seed++
	if r, err := Run(t.Context(), cfg, nil); err != nil || r.Hash == first {
		t.Errorf("another seed gives hash %s, error %v", r.Hash, err)
	}
}

// People keep their seat's worth: with a reserve an interactive client waits far less than a bulk one (D-4.1, D-4.2).
func TestClassesWait(t *testing.T) {
	cfg := GateFleet(3)
	cfg.Clients, cfg.Classes = 100, Mix{class.Interactive: 0.1, class.Bulk: 0.9}
	r, err := Run(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Waits) != 2 || r.Waits[0].Class != "interactive" || r.Waits[0].Seconds.Mean > r.Waits[1].Seconds.Mean/3 {
		t.Errorf("waits %+v", r.Waits)
	}
}

// Mean completion beside even sharing, at a tenth of the document's fleet.
func TestMeanOfEven(t *testing.T) {
	for _, tt := range []struct {
		sizes Sizes
		limit float64
	}{{Sizes{12e9, 12e9}, 0.53}, {Sizes{4e9, 20e9}, 0.67}} {
		cfg := GateFleet(2)
		cfg.Clients, cfg.Sizes = 100, tt.sizes
		r, err := Run(t.Context(), cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.MeanRatio > tt.limit || r.Busy < 0.95 {
			t.Errorf("%s: mean %.3f of even sharing's, link %.3f busy", tt.sizes, r.MeanRatio, r.Busy)
		}
	}
}

var _ Machine = (*session.Machine)(nil)
