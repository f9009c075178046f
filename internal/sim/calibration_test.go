package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/forecast"
	"github.com/roadstead/roadstead/internal/core/session"
)

// scored counts, of the starts of a machine, those inside what was announced first with a place (D-6.3).
type scored struct {
	*session.Machine
	starts, inside, before90, after10 int
}

func (s *scored) Apply(now clock.Mono, e session.Event) []session.Effect {
	return s.count(s.Machine.Apply(now, e))
}

func (s *scored) Tick(now clock.Mono) ([]session.Effect, time.Duration) {
	effects, next := s.Machine.Tick(now)
	return s.count(effects), next
}

func (s *scored) count(effects []session.Effect) []session.Effect {
	for _, e := range effects {
		if e.Kind != session.Started || !e.Promised {
			continue
		}
		s.starts++
		for _, hit := range []struct {
			n  *int
			ok bool
		}{{&s.inside, e.Earliest <= e.At && e.At <= e.Latest}, {&s.before90, e.At <= e.P90}, {&s.after10, e.At >= e.P10}} {
			if hit.ok {
				*hit.n++
			}
		}
	}
	return effects
}

// loads are five kinds of streams, each faster than the link for a while, drawn anew for each seed.
var loads = map[string]func(r *rand.Rand, c *Config){
	"equal files":   func(r *rand.Rand, c *Config) { c.Sizes = Sizes{4e8, 4e8} },
	"uniform sizes": func(r *rand.Rand, c *Config) { c.Sizes = Sizes{1e8, 2e9} },
	"few principals": func(r *rand.Rand, c *Config) {
		c.Sizes, c.Principals = Sizes{2e8, 8e8}, 3+r.IntN(10)
	},
	"mixed classes": func(r *rand.Rand, c *Config) {
		c.Sizes, c.Classes = Sizes{2e8, 8e8}, Mix{class.Interactive: 0.1, class.Release: 0.3, class.Bulk: 0.4, class.Background: 0.2}
	},
	"trouble": func(r *rand.Rand, c *Config) { c.Sizes, c.Vanish, c.Stall, c.Stock = Sizes{2e8, 1e9}, 0.05, 0.05, 0.1 },
}

// Told quantiles hold, on every kind of load, once the machine has seen some starts of it (issue: calibrated estimates).
func TestCalibratedEstimates(t *testing.T) {
	for name, load := range loads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all scored
			var learnt [class.Count]forecast.Calibration
			for seed := range uint64(12) {
				r := rand.New(rand.NewPCG(seed, 11))
				c := Default()
				c.Clients, c.Seats, c.Seed = 400, 2+r.IntN(14), seed
				load(r, &c)
				mean := float64(c.Sizes.Min+c.Sizes.Max) / 2
				c.Spread = time.Duration(float64(c.Clients) * mean / float64(c.Link) * (0.6 + 0.3*r.Float64()) * float64(time.Second))
				m, err := session.New(c.Policy(), seed)
				if err != nil {
					t.Fatal(err)
				}
				m.Teach(learnt)
				s := &scored{Machine: m}
				run, err := New(c, s, nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := run.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				learnt = m.Learnt()
				if seed < 4 {
					continue // these are what is learnt from
				}
				all.starts, all.inside = all.starts+s.starts, all.inside+s.inside
				all.before90, all.after10 = all.before90+s.before90, all.after10+s.after10
			}
			part := func(n int) float64 { return float64(n) / float64(all.starts) }
			t.Logf("%d starts, inside %.3f, before p90 %.3f, after p10 %.3f", all.starts, part(all.inside), part(all.before90), part(all.after10))
			const least = 0.87
			for what, n := range map[string]int{"before p90": all.before90, "after p10": all.after10} {
				if p := part(n); p < least || p > 0.97 {
					t.Errorf("%.3f of the starts are %s, want %.2f to 0.97", p, what, least)
				}
			}
			if p := part(all.inside); p < 0.9 {
				t.Errorf("%.3f of the starts are inside the interval, want 0.9", p)
			}
		})
	}
}
