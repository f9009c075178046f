package plan

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

type given struct {
	loads  Loads
	tenant string
	since  time.Time
}

func (g *given) Loads(_ context.Context, _, tenant string, since time.Time) (Loads, error) {
	g.tenant, g.since = tenant, since
	return g.loads, nil
}

func took(class string, all ...time.Duration) (out []Sample) {
	for _, d := range all {
		out = append(out, Sample{Class: class, Took: d, Slots: 1, Asked: Amounts{MilliCPU: 500, MemoryBytes: 1 << 30}, CPU: 0.5, Memory: 5})
	}
	return out
}

// What is measured of each class plans as the same numbers given by hand do: 120 a minute of 180 s at 0.7 are 515 slots. The
// forecast says that it is one, and p95 of durations enters nothing.
func TestPlanOfWhatWasMeasured(t *testing.T) {
	m := &given{loads: Loads{
		Runs:    map[string]int64{"background": 120 * 60, "interactive": 60, "build": 3},
		Samples: slices.Concat(took("background", 90*time.Second, 180*time.Second, 270*time.Second), took("interactive", time.Second)),
	}}
	p, err := NewPlanner(m, clock.NewSystem())
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Live(t.Context(), identity.Principal{Operator: true, Tenant: "ops"}, Query{WindowSeconds: 3600, Forecast: true})
	if err != nil {
		t.Fatal(err)
	}
	b := got.Measured[0]
	if b.Class != "background" || b.RunsPerMinute != 120 || b.Seconds != 180 || b.P95Seconds != 270 || math.Abs(b.Variation-0.408) > 0.01 || b.UsedMilliCPU != 500 || b.MilliCPU != 500 {
		t.Errorf("%+v", b)
	}
	if got.Classes[0].Slots != 515 || got.Slots != 516 || got.Forecast == nil || got.Forecast.Label != "forecast" || !got.Forecast.Stable || got.Forecast.P95 > 1 {
		t.Errorf("%+v %+v", got, got.Forecast)
	}
	if m.tenant != "" || !slices.ContainsFunc(got.Notes, func(s string) bool { return strings.Contains(s, "build") }) {
		t.Errorf("of tenant %q, notes %q", m.tenant, got.Notes)
	}
	if _, err := p.Live(t.Context(), identity.Principal{Tenant: "a"}, Query{WindowSeconds: 3600}); err != nil || m.tenant != "a" {
		t.Errorf("a tenant is shown the Runs of %q, %v", m.tenant, err)
	}
}

// An empty window plans nothing and says so; what makes no sense is refused with its field.
func TestPlansWithoutSense(t *testing.T) {
	p, err := NewPlanner(&given{}, clock.NewSystem())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(q Query) (Live, error) { return p.Live(t.Context(), identity.Principal{Operator: true}, q) }
	if got, err := ask(Query{Forecast: true}); err != nil || got.Slots != 0 || len(got.Notes) != 1 || got.Forecast != nil || got.To.Sub(got.From) != 24*time.Hour {
		t.Errorf("%+v, %v", got, err)
	}
	for field, q := range map[string]Query{"windowSeconds": {WindowSeconds: 60}, "targetLoad": {TargetLoad: 1}} {
		if _, err := ask(q); !fault.Is(err, fault.InvalidInput) || fault.From(err).Details[0].Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := p.Live(t.Context(), identity.Principal{Kind: identity.Link}, Query{}); !fault.Is(err, fault.Forbidden) {
		t.Errorf("a link plans: %v", err)
	}
}
