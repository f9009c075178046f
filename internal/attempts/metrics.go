package attempts

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/roadstead/roadstead/internal/runs"
)

// meters are what the door for runners counts.
type meters struct {
	ends   *runs.EndMeters
	strays *prometheus.CounterVec
	known  map[string]bool // strays that were counted; guarded by the service's mutex
}

func newMeters() *meters {
	return &meters{
		ends: runs.NewEndMeters("report"),
		strays: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "roadstead_attempt_strays_total", Help: "Attempts that a runner still had when they were no longer its own; each is told to stop.",
		}, []string{"pool"}),
		known: map[string]bool{},
	}
}

// Collectors are the metrics of what runners report, to be registered once.
func (s *Service) Collectors() []prometheus.Collector {
	return append(s.meters.ends.Collectors(), s.meters.strays)
}

// straysKept bounds what is remembered of strays; past it one may be counted twice.
const straysKept = 10_000

// countStrays counts Attempts that the runner has and should not have, each once however often it says so.
func (s *Service) countStrays(c Caller, lost []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range lost {
		if s.meters.known[id] {
			continue
		}
		if len(s.meters.known) >= straysKept {
			clear(s.meters.known)
		}
		s.meters.known[id] = true
		s.meters.strays.WithLabelValues(c.Pool).Inc()
	}
}
