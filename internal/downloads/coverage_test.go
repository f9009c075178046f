package downloads

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/roadstead/roadstead/internal/core/session"
)

// What was told of the last starts is held against them: the share known beforehand, inside the interval, before p10 and
// before p90 (D-6.3). Who never waited was told nothing and doesn't count.
func TestCoverage(t *testing.T) {
	start := func(at, p10, p90, latest time.Duration) session.Effect {
		e := session.Effect{Kind: session.Started, Waited: time.Minute, Promised: true}
		e.At, e.P10, e.P90, e.Latest = e.At.Add(at), e.At.Add(p10), e.At.Add(p90), e.At.Add(latest)
		return e
	}
	var c coverage
	if c.estimates() != nil {
		t.Error("figures of nothing")
	}
	for _, e := range []session.Effect{
		{Kind: session.Started}, {Kind: session.Finished, Waited: time.Minute}, {Kind: session.Started, Waited: time.Minute},
		start(5, 10, 20, 30), start(15, 10, 20, 30), start(25, 10, 20, 30), start(35, 10, 20, 30),
	} {
		if s, ok := scored(e); ok {
			c.add(s)
		}
	}
	got := c.estimates()
	if got.Starts != 5 || got.Known != 0.8 || got.Inside != 0.75 || got.UnderP10 != 0.25 || got.UnderP90 != 0.5 {
		t.Errorf("got %+v", *got)
	}
	for range coverageOf {
		c.add(score{told: true, inside: true})
	}
	if got := c.estimates(); got.Starts != coverageOf || got.Known != 1 || got.Inside != 1 || got.UnderP90 != 0 {
		t.Errorf("the last ones only: %+v", *got)
	}
}

// The operator and the metrics hear of it (D-11.2, D-11.3).
func TestCoverageIsShown(t *testing.T) {
	run(t, 1, &memory{}, 0, func(ctx context.Context, s *Service) {
		first := mustServe(t, s, ctx, whole("ann", "a"))
		if s.Queue().Estimates != nil {
			t.Error("figures before anybody waited")
		}
		mustWait(t, s, ctx, whole("bob", "b"))
		synctest.Wait()
		<-time.After(time.Second)
		first.Close(0, size, true)
		mustServe(t, s, ctx, whole("bob", "b")).Close(0, size, true)
		if e := s.Queue().Estimates; e == nil || e.Starts != 1 {
			t.Errorf("the operator sees %+v", e)
		}
		r := prometheus.NewRegistry()
		r.MustRegister(s.Collectors()...)
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, f := range families {
			if f.GetName() == "roadstead_download_estimates_total" {
				for _, m := range f.GetMetric() {
					if o := m.GetLabel()[0].GetValue(); o == "told" || o == "untold" {
						sum += m.GetCounter().GetValue()
					}
				}
			}
		}
		if sum != 1 {
			t.Errorf("%v starts are counted, want 1", sum)
		}
	})
}
