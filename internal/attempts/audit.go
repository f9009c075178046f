package attempts

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/roadstead/roadstead/internal/clock"
)

// Census is what the rows themselves say of Attempts, whatever any process believes.
type Census struct {
	Drift   map[string]int64 // by kind of hold: those without a living Attempt; "missing": living Attempts without their slots
	Overdue int64            // living Attempts whose lease ended longer ago than it lasts, twice over: nobody ends them
	Orphans int64            // uploads that belong to no result, of Attempts that ended
	Bytes   int64            // of them
}

// DriftKinds are the kinds of drift that are always told, 0 included.
func DriftKinds() []string { return []string{"slots", "money", "lane", "missing"} }

// Drifted is the sum of all drift.
func (c Census) Drifted() (n int64) {
	for _, v := range c.Drift {
		n += v
	}
	return n
}

// Registrar takes the census: one look at the rows, all of one instant and bounded in what it reads.
type Registrar interface {
	// Census counts as overdue what was to be renewed before the instant.
	Census(ctx context.Context, overdue time.Time) (Census, error)
}

// Auditor takes the census now and then and shows it as metrics (R-2.1, R-8.2, R01): what should be 0 is watched by
// somebody who does not keep it.
type Auditor struct {
	rows  Registrar
	late  time.Duration
	clock clock.Clock
	log   *slog.Logger

	mu   sync.Mutex
	last Census
	at   time.Time // of the last; zero: none yet
}

// auditEvery is the time between two censuses.
const auditEvery = 30 * time.Second

// NewAuditor makes one. late is how far past its lease's end a living Attempt is overdue; log may be nil.
func NewAuditor(rows Registrar, late time.Duration, clk clock.Clock, log *slog.Logger) *Auditor {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Auditor{rows: rows, late: late, clock: clk, log: log}
}

// Run takes the census every 30 s until the context ends.
func (a *Auditor) Run(ctx context.Context) error {
	tick := time.NewTicker(auditEvery)
	defer tick.Stop()
	for {
		a.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (a *Auditor) look(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, auditEvery/2)
	defer cancel()
	now := a.clock.Wall().UTC()
	c, err := a.rows.Census(limited, now.Add(-a.late))
	if err != nil {
		if ctx.Err() == nil {
			a.log.Warn("holds and leases could not be counted", "error", err)
		}
		return
	}
	if c.Drifted() > 0 {
		a.log.Error("holds and living Attempts differ", "drift", c.Drift)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last, a.at = c, now
}

// Last is the newest census and whether there is one.
func (a *Auditor) Last() (c Census, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last, !a.at.IsZero()
}

var (
	driftDesc   = prometheus.NewDesc("roadstead_hold_drift", "Holds without a living Attempt, by kind, and living Attempts without their hold (missing); anything but 0 is a fault.", []string{"kind"}, nil)
	overdueDesc = prometheus.NewDesc("roadstead_attempts_overdue", "Living Attempts whose lease ended so long ago that somebody should have ended them, by the rows.", nil, nil)
	orphansDesc = prometheus.NewDesc("roadstead_orphan_uploads", "Uploads of ended Attempts that belong to no result, of the newest 20000 grants.", nil, nil)
	bytesDesc   = prometheus.NewDesc("roadstead_orphan_bytes", "Bytes of these uploads; an object that was uploaded twice counts twice.", nil, nil)
	auditDesc   = prometheus.NewDesc("roadstead_audit_timestamp_seconds", "When holds, leases and uploads were last counted.", nil, nil)
)

// Describe implements prometheus.Collector.
func (a *Auditor) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{driftDesc, overdueDesc, orphansDesc, bytesDesc, auditDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. Before the first census there is nothing to tell.
func (a *Auditor) Collect(ch chan<- prometheus.Metric) {
	c, known := a.Last()
	if !known {
		return
	}
	gauge := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	for _, kind := range DriftKinds() {
		gauge(driftDesc, c.Drift[kind], kind)
	}
	gauge(overdueDesc, c.Overdue)
	gauge(orphansDesc, c.Orphans)
	gauge(bytesDesc, c.Bytes)
	a.mu.Lock()
	defer a.mu.Unlock()
	gauge(auditDesc, a.at.Unix())
}
