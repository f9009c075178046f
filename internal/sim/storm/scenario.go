// Package storm drives generated fleets through trouble against the real download machine, on a virtual clock, and holds
// every step to the rules of the queue (D-13.1): a seed is a scenario, and a seed that breaks a rule tells its story.
package storm

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/roadstead/roadstead/internal/core/session"
)

// weather is what kind of trouble a scenario has.
type weather uint8

const (
	calm   weather = iota // none: one class, a principal each; start estimates must hold
	shares                // none, but classes and principals compete for long; their shares must hold
	storm                 // everything at once
)

var weatherNames = [...]string{"calm", "shares", "storm"}

// scenario is everything a seed decides beforehand. Spans are means of exponential gaps; 0 is never. Shares are
// probabilities.
type scenario struct {
	seed       uint64
	weather    weather
	length     time.Duration
	policy     session.Policy
	clients    int
	principals int
	mixed      bool // clients of every class
	small, big int64
	link       int64 // bytes per second
	latency    time.Duration
	think      time.Duration

	crash, freeze, settings, window, overload, wallJump time.Duration

	crawl                                                   float64       // of downloads: read far below the least rate
	lost, late, vanish, stall, lie, stock, twin, tail, wide float64       // of requests, and of downloads
	lazy                                                    time.Duration // most that clients come later than told, inside the slack
	slow                                                    bool          // ticks come late now and then (D-7.2)
}

// newScenario draws a scenario. One seed in sixteen is calm, one compares shares.
func newScenario(seed uint64, length time.Duration) scenario {
	r := rand.New(rand.NewPCG(seed, 11))
	s := scenario{seed: seed, length: length, weather: storm, clients: 4 + r.IntN(40), latency: time.Duration(1+r.IntN(200)) * time.Millisecond}
	switch seed % 16 {
	case 0:
		s.weather = calm
	case 1:
		s.weather = shares
	}
	seats := 1 + r.IntN(8)
	s.policy = session.Default(seats)
	s.link = 1e6 * (5 + r.Int64N(120))
	mean := s.link * (15 + r.Int64N(90)) // bytes that take the whole link this many seconds
	s.small, s.big = max(17<<20, mean/4), max(18<<20, mean*7/4)
	s.think = []time.Duration{5 * time.Second, time.Minute, 10 * time.Minute}[r.IntN(3)]
	s.principals = 1 + r.IntN(s.clients)
	s.policy.LinkRate = []int64{0, s.link}[r.IntN(2)]
	switch s.weather {
	case calm:
		s.principals, s.policy.Preempt, s.policy.LinkRate = s.clients, false, s.link
		s.clients = max(s.clients, 3*seats)
		s.principals = s.clients
		s.think = 5 * time.Second
	case shares:
		s.mixed, s.policy.Aging, s.policy.Preempt, s.think = true, 0, false, 5*time.Second
		s.clients = max(s.clients, 6*seats)
		s.principals = 1 + r.IntN(12)
	case storm:
		s.drawTrouble(r)
	}
	return s
}

// drawTrouble draws the policy and how much of each trouble there is; each is absent now and then, so that the others
// are seen alone.
func (s *scenario) drawTrouble(r *rand.Rand) {
	span := func(choices ...time.Duration) time.Duration { return choices[r.IntN(len(choices))] }
	share := func(most float64) float64 {
		if r.IntN(3) == 0 {
			return 0
		}
		return r.Float64() * most
	}
	s.mixed = r.IntN(4) > 0
	s.policy = drawPolicy(r, s.policy)
	s.policy.MaxSessions = []int{65536, 65536, 4096, s.clients + 40, max(4, s.clients/2)}[r.IntN(5)]
	s.crash = span(0, time.Hour, 4*time.Hour, 24*time.Hour)
	s.freeze = span(0, 3*time.Hour, 12*time.Hour)
	s.settings = span(0, 10*time.Minute, 2*time.Hour)
	s.window = span(0, 30*time.Minute, 3*time.Hour)
	s.overload = span(0, 2*time.Hour, 8*time.Hour)
	s.wallJump = span(0, 3*time.Hour)
	s.lost, s.late, s.vanish, s.stall = share(0.1), share(0.1), share(0.3), share(0.3)
	s.lie, s.stock, s.twin, s.tail, s.wide = share(0.2), share(0.5), share(0.5), share(0.2), share(0.4)
	s.lazy = []time.Duration{0, 10 * time.Second, 25 * time.Second, 25 * time.Second}[r.IntN(4)]
	s.slow = r.IntN(4) == 0
	if r.IntN(4) == 0 {
		s.policy.MinRate, s.crawl = s.link/int64(20*s.policy.Sessions), share(0.3)
	}
	if r.IntN(4) == 0 {
		s.policy.LinkRate = s.link
		s.policy.AutoMin = 1 + r.IntN(s.policy.Sessions)
		s.policy.AutoMax = s.policy.AutoMin + r.IntN(8)
		s.policy.Reserve = min(s.policy.Reserve, s.policy.AutoMin-1)
	}
}

// drawPolicy changes what an operator may change at run time (D-9.1).
func drawPolicy(r *rand.Rand, p session.Policy) session.Policy {
	p.Sessions = 1 + r.IntN(10)
	p.Reserve = r.IntN(p.Sessions)
	if r.IntN(2) == 0 {
		p.Reserve = min(1, p.Sessions-1)
	}
	p.PerPrincipal = 1 + r.IntN(p.Sessions)
	for c := range p.Weights {
		p.Weights[c] = 1 + r.Uint32N(10)
	}
	if r.IntN(2) == 0 {
		p.Weights = session.Default(1).Weights
	}
	p.RangesPerSession = 1 + r.IntN(5)
	p.Idle = time.Duration(5+r.IntN(60)) * time.Second
	p.Strategy = session.Strategy(r.IntN(8) / 6)
	p.Aging = []time.Duration{0, 5 * time.Minute, 20 * time.Minute, time.Hour}[r.IntN(4)]
	p.Preempt = r.IntN(3) > 0
	p.PollBudget = []int{0, 0, 1, 5}[r.IntN(4)]
	p.MaxPerPrincipal = []int{4096, 4096, 12, 3}[r.IntN(4)]
	if p.AutoMax > 0 {
		p.Reserve = min(p.Reserve, p.AutoMin-1)
	}
	return p
}

// String sums the scenario up.
func (s scenario) String() string {
	p := s.policy
	return fmt.Sprintf("%s: %d clients of %d principals, %d seats (reserve %d, share %d), link %.0f MB/s, %.0f-%.0f MB, crashes every %s, freezes %s, settings %s, windows %s, overload %s",
		weatherNames[s.weather], s.clients, s.principals, p.Sessions, p.Reserve, p.PerPrincipal, float64(s.link)/1e6,
		float64(s.small)/1e6, float64(s.big)/1e6, s.crash, s.freeze, s.settings, s.window, s.overload)
}
