package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/forecast"
	"github.com/roadstead/roadstead/internal/core/session"
)

// scored is a machine whose starts are held against what was announced first with a place (D-6.3), and that is asked for
// all estimates once, when nobody comes any more.
type scored struct {
	*session.Machine
	turn float64 // seconds of one seat turn
	score

	frozenAt clock.Mono // 0: never
	keys     []session.Key
	told     map[session.Key]clock.Mono
	errors   []float64 // of the points told then, in what is allowed
}

// score counts starts.
type score struct{ starts, inside, before90, after10, narrow int }

func (s *scored) Apply(now clock.Mono, e session.Event) []session.Effect {
	return s.count(s.Machine.Apply(now, e))
}

func (s *scored) Tick(now clock.Mono) ([]session.Effect, time.Duration) {
	effects, next := s.Machine.Tick(now)
	s.count(effects)
	if s.frozenAt != 0 && now >= s.frozenAt && s.told == nil {
		s.told = map[session.Key]clock.Mono{}
		for _, k := range s.keys {
			if e, ok := s.Estimate(now, k); ok && e.Known {
				s.told[k] = e.Start
			}
		}
	}
	return effects, next
}

func (s *scored) count(effects []session.Effect) []session.Effect {
	for _, e := range effects {
		if e.Kind != session.Started {
			continue
		}
		if point, ok := s.told[e.Key]; ok {
			off := max(e.At.Sub(point), point.Sub(e.At)).Seconds()
			s.errors = append(s.errors, off/max(s.turn/2, 0.1*e.At.Sub(s.frozenAt).Seconds()))
			delete(s.told, e.Key)
		}
		if e.Promised {
			s.first(e)
		}
	}
	return effects
}

// first holds a start against the first promise. Nobody starts before it came: what lies before that is no width.
func (s *scored) first(e session.Effect) {
	came := e.At.Add(-e.Waited)
	width := max(e.P90, came).Sub(max(e.P10, came)).Seconds()
	s.starts++
	for n, ok := range map[*int]bool{
		&s.inside:   e.Earliest <= e.At && e.At <= e.Latest,
		&s.before90: e.At <= e.P90,
		&s.after10:  e.At >= e.P10,
		&s.narrow:   width <= max(s.turn, 0.2*e.Waited.Seconds()),
	} {
		if ok {
			*n++
		}
	}
}

func (a *score) add(b score) {
	a.starts, a.inside, a.before90 = a.starts+b.starts, a.inside+b.inside, a.before90+b.before90
	a.after10, a.narrow = a.after10+b.after10, a.narrow+b.narrow
}

func (a *score) part(n int) float64 { return float64(n) / float64(max(a.starts, 1)) }

func (a *score) log(t *testing.T) {
	t.Helper()
	t.Logf("%d starts: %.3f before p90, %.3f after p10, %.3f inside the interval, %.3f told narrowly", a.starts,
		a.part(a.before90), a.part(a.after10), a.part(a.inside), a.part(a.narrow))
}

// load changes a fleet to be of a kind.
type load func(r *rand.Rand, c *Config)

func everyClass() Mix {
	return Mix{class.Interactive: 0.1, class.Release: 0.3, class.Bulk: 0.4, class.Background: 0.2}
}

// kinds are the five kinds of loads.
func kinds() map[string]load {
	return map[string]load{
		"equal files":    func(_ *rand.Rand, c *Config) { c.Sizes = Sizes{4e8, 4e8} },
		"uniform sizes":  func(_ *rand.Rand, c *Config) { c.Sizes = Sizes{1e8, 2e9} },
		"few principals": func(r *rand.Rand, c *Config) { c.Sizes, c.Principals = Sizes{2e8, 8e8}, 3+r.IntN(10) },
		"mixed classes":  func(_ *rand.Rand, c *Config) { c.Sizes, c.Classes = Sizes{2e8, 8e8}, everyClass() },
		"trouble": func(_ *rand.Rand, c *Config) {
			c.Sizes, c.Vanish, c.Stall, c.Stock = Sizes{2e8, 1e9}, 0.05, 0.05, 0.1
		},
	}
}

// stream lets a fleet come faster than the link serves it, for a while.
func stream(r *rand.Rand, c *Config) {
	mean := float64(c.Sizes.Min+c.Sizes.Max) / 2
	c.Spread = time.Duration(float64(c.Clients) * mean / float64(c.Link) * (0.6 + 0.3*r.Float64()) * float64(time.Second))
}

// runScored draws a fleet of a kind and runs it. frozen is how long after the last arrival all are asked, 0 for never.
func runScored(t *testing.T, seed uint64, frozen time.Duration, kind load, learnt *[class.Count]forecast.Calibration) *scored {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 11))
	c := Default()
	c.Clients, c.Seats, c.Seed = 400, 2+r.IntN(14), seed
	kind(r, &c)
	m, err := session.New(c.Policy(), seed)
	if err != nil {
		t.Fatal(err)
	}
	m.Teach(*learnt)
	s := &scored{Machine: m, turn: float64(c.Seats) * float64(c.Sizes.Min+c.Sizes.Max) / 2 / float64(c.Link)}
	run, err := New(c, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if frozen > 0 {
		s.frozenAt = clock.Mono(c.Spread + frozen)
		for _, client := range run.fleet {
			s.keys = append(s.keys, client.key)
		}
	}
	if _, err := run.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	*learnt = m.Learnt()
	return s
}

// Nine starts in ten come before the p90 they were told first, and nine in ten after the p10, on every kind of load and
// neither fewer nor many more (D-6.3). Every seed has other seats and another stream; what one taught the next knows.
func TestQuantilesHold(t *testing.T) {
	for name, kind := range kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all score
			var learnt [class.Count]forecast.Calibration
			for seed := range uint64(14) {
				s := runScored(t, seed, 0, func(r *rand.Rand, c *Config) { kind(r, c); stream(r, c) }, &learnt)
				if seed >= 2 { // the first are what is learnt from
					all.add(s.score)
				}
			}
			all.log(t)
			for what, n := range map[string]int{"before p90": all.before90, "after p10": all.after10} {
				if p := all.part(n); p < 0.87 || p > 0.93 {
					t.Errorf("%.3f of the starts are %s, want 0.87 to 0.93", p, what)
				}
			}
			if p := all.part(all.inside); p < 0.9 {
				t.Errorf("%.3f of the starts are inside the interval, want 0.9", p)
			}
		})
	}
}

// elsewhere are loads of which nothing was learnt when they came: crowds, queues that come and go, the documents' fleet.
func elsewhere() map[string]load {
	all := map[string]load{
		"slow clients": func(_ *rand.Rand, c *Config) { c.Sizes, c.ClientRate = Sizes{2e8, 8e8}, 50e6 },
		"stock tools":  func(_ *rand.Rand, c *Config) { c.Sizes, c.Stock = Sizes{2e8, 1e9}, 0.3 },
		"the documents' fleet": func(_ *rand.Rand, c *Config) {
			seats := c.Seats
			*c = GateFleet(c.Seed)
			c.Clients, c.Seats = 60, seats
		},
		"over five minutes": func(_ *rand.Rand, c *Config) { c.Sizes, c.Spread = Sizes{2e8, 8e8}, 5*time.Minute },
		"now and then":      func(_ *rand.Rand, c *Config) { c.Clients, c.Sizes, c.Spread = 400, Sizes{1e8, 2e9}, time.Hour },
	}
	for name, kind := range kinds() {
		all["a crowd, "+name] = kind
	}
	return all
}

// Elsewhere the same holds for 87 in 100 at least, and from p10 to p90 it is no longer than one seat turn or a fifth of
// the wait (D-6.3). A crowd of several classes keeps the first, not the second: while the first of it are told their
// starts, those of higher classes are still on their way.
func TestQuantilesHoldElsewhere(t *testing.T) {
	for name, kind := range elsewhere() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, knows := range []bool{false, true} {
				var all score
				var learnt [class.Count]forecast.Calibration
				for seed := range uint64(3) {
					if !knows {
						learnt = [class.Count]forecast.Calibration{}
					}
					half := func(r *rand.Rand, c *Config) { c.Clients = 200; kind(r, c) }
					all.add(runScored(t, seed, 0, half, &learnt).score)
				}
				all.log(t)
				for what, n := range map[string]int{"before p90": all.before90, "after p10": all.after10, "narrow": all.narrow} {
					least := 0.87
					if name == "a crowd, mixed classes" && what == "narrow" {
						least = 0
					}
					if p := all.part(n); p < least {
						t.Errorf("%.3f of the starts are %s, want %.2f", p, what, least)
					}
				}
			}
		})
	}
}

// Once nobody comes and nobody leaves, nineteen of twenty points are off by half a seat turn or a tenth of the wait at
// most, whatever the queue is made of (D-6.1).
func TestFrozenQueueIsForeseen(t *testing.T) {
	for name, kind := range kinds() {
		if name == "trouble" {
			continue // it doesn't stay frozen
		}
		for when, flow := range map[string]load{"after a crowd": func(*rand.Rand, *Config) {}, "after a stream": stream} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				var off []float64
				for seed := range uint64(3) {
					wait := 10 * time.Second
					if when == "after a stream" {
						wait = time.Minute // that it ended shows by silence
					}
					var learnt [class.Count]forecast.Calibration
					s := runScored(t, seed, wait, func(r *rand.Rand, c *Config) { kind(r, c); flow(r, c) }, &learnt)
					off = append(off, s.errors...)
				}
				if len(off) < 100 {
					t.Fatalf("only %d points to look at", len(off))
				}
				slices.Sort(off)
				p95 := off[len(off)*95/100]
				t.Logf("%d points, 95 in 100 off by %.3f of what is allowed, the worst by %.3f", len(off), p95, off[len(off)-1])
				if p95 > 1 {
					t.Errorf("95 in 100 points are off by %.3f of what is allowed", p95)
				}
			})
		}
	}
}
