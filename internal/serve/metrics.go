package serve

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// httpMetrics counts requests by route; labels come from the route table only, never from what a client sent.
type httpMetrics struct {
	requests *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
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
	}
}

func (m *httpMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.bytes, m.seconds}
}

func (m *httpMetrics) observe(r *http.Request, rec *recorder, took time.Duration) {
	route := r.Pattern
	if route == "" {
		route = "none"
	}
	m.requests.WithLabelValues(route, strconv.Itoa(rec.status)).Inc()
	m.bytes.WithLabelValues(route).Add(float64(rec.bytes))
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}
