package dispatcher

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/roadstead/roadstead/internal/core/dispatch"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/runs"
)

// meters are what the dispatcher counts. Labels name pools, states and reasons; never a tenant or an object.
type meters struct {
	waits  *prometheus.HistogramVec
	lost   *prometheus.CounterVec
	ends   *runs.EndMeters
	reload *prometheus.CounterVec
}

func newMeters() *meters {
	return &meters{
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "roadstead_run_queue_wait_seconds", Help: "Time from a Run's last becoming eligible to its assignment.",
			Buckets: []float64{.01, .05, .1, .5, 1, 5, 15, 30, 60, 300, 1800, 7200, 43200},
		}, []string{"pool"}),
		lost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "roadstead_run_decisions_lost_total", Help: "Decisions that the database refused, by why: changed, budget, lane, runner.",
		}, []string{"pool", "loss"}),
		ends: runs.NewEndMeters("dispatcher"),
		reload: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "roadstead_pool_loads_total", Help: "Times that a pool was built from its rows: at the start, after a takeover, after an outage.",
		}, []string{"pool"}),
	}
}

// assigned notes what became of a decision.
func (m *meters) assigned(pool string, t *tracked, out Assigned, at time.Time) {
	if !out.Won {
		m.lost.WithLabelValues(pool, string(out.Loss)).Inc()
		return
	}
	m.waits.WithLabelValues(pool).Observe(max(0, at.Sub(t.row.Run.EligibleAt).Seconds()))
}

// Collectors are the dispatcher's metrics, to be registered once.
func (s *Service) Collectors() []prometheus.Collector {
	m := s.meters
	return append(m.ends.Collectors(), m.waits, m.lost, m.reload, gauges{s})
}

// gauges reads the pools when asked.
type gauges struct{ s *Service }

func poolDesc(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc("roadstead_pool_"+name, help, append([]string{"pool"}, more...), nil)
}

var (
	runsDesc     = poolDesc("runs", "Runs by state: ready (waits for its turn only), blocked (waits for something else), active.", "state")
	oldestDesc   = poolDesc("oldest_queued_seconds", "Age of the oldest queued Run that depends on no other.")
	capacityDesc = poolDesc("capacity", "What the pool's runners have, by resource: slots, cpu_cores, memory_bytes, disk_bytes.", "resource")
	usedDesc     = poolDesc("used", "What of it is given to Attempts, by resource.", "resource")
	runnersDesc  = poolDesc("runners", "Runners by state: active ones get work, idle ones are away or draining.", "state")
	overdueDesc  = poolDesc("overdue_leases", "Leases past twice lease and grace whose Attempts could not be ended yet; 0 unless something is wrong.")
	ownedDesc    = poolDesc("owned", "1 while this process decides in the pool, with all its rows loaded.")
	fairDesc     = poolDesc("fairness_ratio", "Largest distance of a tenant from its share, in parts of the bound of the order; at most 1.")
)

// Describe implements prometheus.Collector.
func (g gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{runsDesc, oldestDesc, capacityDesc, usedDesc, runnersDesc, overdueDesc, ownedDesc, fairDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (g gauges) Collect(ch chan<- prometheus.Metric) {
	for _, f := range g.s.Figures() {
		gauge := func(d *prometheus.Desc, v float64, more ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{f.Pool}, more...)...)
		}
		c := f.Counts
		gauge(runsDesc, float64(c.Ready), "ready")
		gauge(runsDesc, float64(c.Queued-c.Ready), "blocked")
		gauge(runsDesc, float64(c.Active), "active")
		gauge(oldestDesc, f.OldestAge.Seconds())
		gauge(runnersDesc, float64(c.Online), "active")
		gauge(runnersDesc, float64(c.Runners-c.Online), "idle")
		gauge(overdueDesc, float64(f.Overdue))
		for r, name := range resources {
			gauge(capacityDesc, float64(c.Capacity[r])/scale(r), name)
			gauge(usedDesc, float64(c.Used[r])/scale(r), name)
		}
		owned := 0.0
		if f.Owned && f.Loaded {
			owned = 1
		}
		gauge(ownedDesc, owned)
		gauge(fairDesc, f.Unfair)
	}
}

// resources names the parts of a vector that are told; nothing changes it.
var resources = map[int]string{
	int(dispatch.Slots): "slots", int(dispatch.MilliCPU): "cpu_cores", int(dispatch.Memory): "memory_bytes", int(dispatch.Disk): "disk_bytes",
}

func scale(resource int) float64 {
	if resource == int(dispatch.MilliCPU) {
		return 1000
	}
	return 1
}

// unfair is the largest error of a tenant in parts of its bound. The caller holds the lock.
func (p *pool) unfair() (worst float64) {
	for _, f := range p.machine.Fairness() {
		if f.Bound > 0 {
			worst = max(worst, float64(f.Worst)/float64(f.Bound))
		}
	}
	return worst
}

// waitsForTurn reports whether a queued Run's age counts: it depends on nothing and is due.
func (t *tracked) waitsForTurn(now time.Time) bool {
	return t.row.Run.State == lifecycle.Queued && !t.active && t.row.Run.WaitsFor == 0 && !t.row.Run.NextEligible.After(now)
}
