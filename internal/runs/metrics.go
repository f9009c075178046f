package runs

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/roadstead/roadstead/internal/core/lifecycle"
)

// EndMeters counts how Attempts ended, and how many a Run took. Each service that ends Attempts has its own,
// with its name in the label by; together they are all.
type EndMeters struct {
	ended *prometheus.CounterVec
	tries *prometheus.HistogramVec
}

// NewEndMeters makes the meters of the service with the name.
func NewEndMeters(by string) *EndMeters {
	labels := prometheus.Labels{"by": by}
	return &EndMeters{
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "roadstead_attempts_ended_total", Help: "Attempts that ended, by state, reason, and who ended them: their runner's report or the dispatcher.",
			ConstLabels: labels,
		}, []string{"pool", "state", "reason"}),
		tries: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "roadstead_run_attempts", Help: "Attempts of a Run, counted when the last one ended.", Buckets: []float64{1, 2, 3, 4, 6, 11},
			ConstLabels: labels,
		}, []string{"pool"}),
	}
}

// Count takes up an Attempt's end and what it led to.
func (m *EndMeters) Count(e Ending, out Ended) {
	m.ended.WithLabelValues(out.Run.Pool, string(e.State), reasonLabel(e.Reason)).Inc()
	if out.Run.State.Ended() {
		m.tries.WithLabelValues(out.Run.Pool).Observe(float64(out.Run.Fence))
	}
}

// reasonLabel keeps the label to a few words.
func reasonLabel(r lifecycle.Reason) string {
	if r == "" {
		return "none"
	}
	return string(r)
}

// Collectors are the meters, to be registered once.
func (m *EndMeters) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.ended, m.tries}
}
