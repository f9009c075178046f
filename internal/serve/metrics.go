package serve

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// httpMetrics counts requests by route; labels come from the route table only, never from what a client sent.
type httpMetrics struct {
	requests *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	lag      prometheus.Histogram
	found    sync.Map // outcome: *series, so that a request looks up its labels once
}

// outcome is what the metrics of a request are labelled by.
type outcome struct {
	route  string
	status int
}

// series are the metrics of one outcome.
type series struct {
	requests, bytes prometheus.Counter
	seconds         prometheus.Observer
}

func newHTTPMetrics() *httpMetrics {
	return &httpMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "roadstead_http_requests_total", Help: "Requests answered, by route and status.",
		}, []string{"route", "status"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "roadstead_http_response_bytes_total", Help: "Bytes of response bodies sent, by route.",
		}, []string{"route"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "roadstead_http_request_duration_seconds", Help: "Time from request to the end of its answer, by route.",
			Buckets: []float64{.001, .005, .025, .1, .5, 2, 10, 60, 600, 3600},
		}, []string{"route"}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "roadstead_run_event_lag_seconds", Help: "Time from what happened to a Run to its being sent to a client that was following.",
			Buckets: []float64{.001, .005, .025, .1, .5, 1, 2, 10, 60},
		}),
	}
}

func (m *httpMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.bytes, m.seconds, m.lag}
}

// followed notes how late a follower heard of something.
func (m *httpMetrics) followed(late time.Duration) { m.lag.Observe(max(0, late.Seconds())) }

func (m *httpMetrics) observe(r *http.Request, rec *recorder, took time.Duration) {
	route := r.Pattern
	if route == "" {
		route = "none"
	}
	s := m.of(outcome{route, rec.status})
	s.requests.Inc()
	s.bytes.Add(float64(rec.bytes))
	s.seconds.Observe(took.Seconds())
}

// of finds the metrics of an outcome. There are as many as routes and statuses.
func (m *httpMetrics) of(o outcome) *series {
	if s, ok := m.found.Load(o); ok {
		return s.(*series)
	}
	s := &series{
		requests: m.requests.WithLabelValues(o.route, strconv.Itoa(o.status)), bytes: m.bytes.WithLabelValues(o.route),
		seconds: m.seconds.WithLabelValues(o.route),
	}
	m.found.Store(o, s)
	return s
}
