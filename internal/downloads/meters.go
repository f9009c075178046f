package downloads

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/core/session"
)

// meters are the queue's metrics (D-11.3). Labels never hold ids.
type meters struct {
	started  *prometheus.HistogramVec
	ended    *prometheus.CounterVec
	refused  *prometheus.CounterVec
	errors   prometheus.Histogram
	promises *prometheus.CounterVec
	tick     prometheus.Histogram
	told     *prometheus.CounterVec
	bytes    prometheus.Counter

	coverage coverage // guarded by the service's mutex, like effect
}

func newMeters() *meters {
	return &meters{
		started: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "roadstead_download_wait_seconds", Help: "Time from the arrival of a download session to its seat.",
			Buckets: prometheus.ExponentialBuckets(0.1, 3, 12),
		}, []string{"class"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "roadstead_download_sessions_ended_total",
			Help: "Download sessions that left a state, by what became of them: finished, paused, no_show, forgotten, aside.",
		}, []string{"class", "outcome"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "roadstead_download_sessions_refused_total", Help: "Download sessions refused because a bound was reached.",
		}, []string{"bound"}),
		errors: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "roadstead_download_estimate_error_seconds", Help: "How far the first announced start was from the start.",
			Buckets: prometheus.ExponentialBuckets(0.25, 3, 12),
		}),
		promises: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "roadstead_download_promises_total", Help: "First announced start intervals, by whether the start lay inside.",
		}, []string{"kept"}),
		told: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "roadstead_download_estimates_total",
			Help: "Starts that were waited for, by what was told of them first: told or untold, and of the told ones inside, under_p10, under_p90.",
		}, []string{"outcome"}),
		tick: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "roadstead_download_tick_seconds", Help: "Length of a tick of the download queue.",
			Buckets: prometheus.ExponentialBuckets(1e-6, 4, 10),
		}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "roadstead_download_sent_bytes_total", Help: "Bytes of content that sockets accepted.",
		}),
	}
}

// outcome names what became of a session, or is empty.
func outcome(k session.EffectKind) string {
	switch k {
	case session.Finished:
		return "finished"
	case session.Paused:
		return "paused"
	case session.NoShow:
		return "no_show"
	case session.Forgot:
		return "forgotten"
	case session.MovedAside:
		return "aside"
	}
	return ""
}

func (m *meters) effect(f session.Effect) {
	if o := outcome(f.Kind); o != "" {
		m.ended.WithLabelValues(f.Class.String(), o).Inc()
	}
	if f.Kind != session.Started {
		return
	}
	m.started.WithLabelValues(f.Class.String()).Observe(f.Waited.Seconds())
	if sc, ok := scored(f); ok {
		m.coverage.add(sc)
		for outcome, is := range map[string]bool{"told": sc.told, "untold": !sc.told, "inside": sc.inside, "under_p10": sc.under10, "under_p90": sc.under90} {
			if is {
				m.told.WithLabelValues(outcome).Inc()
			}
		}
	}
	if f.Promised {
		m.errors.Observe(max(f.At.Sub(f.Point), f.Point.Sub(f.At)).Seconds())
		m.promises.WithLabelValues(strconv.FormatBool(f.Earliest <= f.At && f.At <= f.Latest)).Inc()
	}
}

var sessionsDesc = prometheus.NewDesc("roadstead_download_sessions", "Download sessions by class and state.", []string{"class", "state"}, nil)
var heldDesc = prometheus.NewDesc("roadstead_download_held_requests", "Requests without a download id held open.", nil, nil)
var smallDesc = prometheus.NewDesc("roadstead_small_requests", "Requests for objects below the session threshold.", []string{"state"}, nil)

// Collectors are the queue's metrics, to be registered once.
func (s *Service) Collectors() []prometheus.Collector {
	m := s.meters
	return []prometheus.Collector{m.started, m.ended, m.refused, m.errors, m.promises, m.told, m.tick, m.bytes, gauges{s}}
}

// gauges reads the queue's counts when asked.
type gauges struct{ s *Service }

// Describe implements prometheus.Collector.
func (g gauges) Describe(ch chan<- *prometheus.Desc) {
	ch <- sessionsDesc
	ch <- heldDesc
	ch <- smallDesc
}

// Collect implements prometheus.Collector.
func (g gauges) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	g.s.mu.Lock()
	c, holding := g.s.machine.Counts(), g.s.holding
	g.s.mu.Unlock()
	for i, n := range c.Classes {
		name := class.Class(i).String()
		gauge(sessionsDesc, n.Waiting, name, "waiting")
		gauge(sessionsDesc, n.Active, name, "active")
		gauge(sessionsDesc, n.Aside, name, "aside")
		gauge(sessionsDesc, n.Paused, name, "paused")
	}
	gauge(heldDesc, holding)
	active, waiting := g.s.small.counts()
	gauge(smallDesc, active, "active")
	gauge(smallDesc, waiting, "waiting")
}
