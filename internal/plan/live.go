package plan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// Query asks for a plan of what was measured. 0 means the default.
type Query struct {
	Pool          string
	WindowSeconds int64   // an hour to seven days; a day when 0
	TargetLoad    float64 // part of the slots that is busy on average; 0.7 when 0
	Forecast      bool    // with a forecast of the wait
}

// Live is a plan of what was measured: averages, and apart from them a forecast.
type Live struct {
	Pool       string
	From, To   time.Time
	TargetLoad float64
	Measured   []ClassLoad
	Busy       float64 // slots busy on average
	Slots      int64
	Classes    []ClassSlots
	Forecast   *LiveForecast
	Notes      []string
}

// ClassLoad is what was measured of one class: averages of its Attempts that ended, but for the peak of memory.
type ClassLoad struct {
	Class                                   string
	Runs                                    int64
	RunsPerMinute                           float64
	Attempts                                int64
	Seconds, P95Seconds, Variation          float64
	Slots, MilliCPU, MemoryBytes, DiskBytes float64 // asked for
	UsedMilliCPU                            float64
	UsedMemoryBytes                         int64
	LogBytes                                float64
}

// ClassSlots is what a class needs.
type ClassSlots struct {
	Class string
	Busy  float64
	Slots int64
}

// LiveForecast is how long Runs would wait on so many slots, in seconds.
type LiveForecast struct {
	Label         string
	Slots         int64
	Load          float64
	Runs          int64
	Stable        bool
	P50, P95, P99 float64
}

// Sample is one Attempt that ended.
type Sample struct {
	Class  string
	Took   time.Duration // from assignment to end: as long as it held its slot
	Slots  int64
	Asked  Amounts
	CPU    float64 // used on average while it ran, as its runner measured it; 0 when it didn't say
	Memory int64   // the most it used
	Log    int64   // bytes
}

// Loads is what came to a pool in a window, and what became of it.
type Loads struct {
	Runs    map[string]int64 // by class: that came
	First   time.Time        // when the first of them came; zero: none did
	CutAt   time.Time        // more came than are looked at: only those since then are; zero: all are
	Samples []Sample         // of the newest
}

// Measures reads what ran. What it reads is bounded and has an index, however long the pool has existed.
type Measures interface {
	// Loads reads a pool's since the instant, of one tenant or, empty, of all.
	Loads(ctx context.Context, pool, tenant string, since time.Time) (Loads, error)
}

// Planner plans from what was measured.
type Planner struct {
	measures Measures
	clock    clock.Clock
	playing  chan struct{} // holds one: a forecast takes a processor for a while
}

// NewPlanner makes one.
func NewPlanner(m Measures, clk clock.Clock) (*Planner, error) {
	if m == nil || clk == nil {
		return nil, fault.Invalid("Measures", "measures and clock must be set")
	}
	return &Planner{measures: m, clock: clk, playing: make(chan struct{}, 1)}, nil
}

// The bounds of a window, and of a forecast that a server makes.
const (
	minWindow   = time.Hour
	maxWindow   = 7 * 24 * time.Hour
	liveSlots   = 1000
	forecastSee = "roadctl plan --input makes one of any size"
)

// Live measures the classes of a pool's Runs over a window and plans for what came. Operators see all
// tenants', others their own tenant's.
func (s *Planner) Live(ctx context.Context, p identity.Principal, q Query) (Live, error) {
	if err := checkQuery(&q); err != nil {
		return Live{}, err
	}
	tenant := p.Tenant
	switch {
	case p.Kind == identity.Link:
		return Live{}, fault.New(fault.Forbidden, "a link can't see Runs")
	case p.Operator:
		tenant = ""
	}
	now := s.clock.Wall().UTC().Truncate(time.Second)
	window := time.Duration(q.WindowSeconds) * time.Second
	loads, err := s.measures.Loads(ctx, q.Pool, tenant, now.Add(-window))
	if err != nil {
		return Live{}, err
	}
	out := Live{Pool: q.Pool, From: now.Add(-window), To: now, TargetLoad: q.TargetLoad, Measured: []ClassLoad{}, Classes: []ClassSlots{}}
	if !loads.CutAt.IsZero() {
		out.From = loads.CutAt.UTC()
		out.Notes = append(out.Notes, "more Runs came in the window than are counted: the rates are of the newest")
	} else if !loads.First.IsZero() && loads.First.Sub(out.From) > window/2 {
		out.Notes = append(out.Notes, "the first Run came in the second half of the window; a shorter window tells more of what comes now")
	}
	out.Measured = measure(loads, out.To.Sub(out.From))
	return out, s.plan(ctx, &out, q.Forecast)
}

func checkQuery(q *Query) error {
	if q.Pool == "" {
		q.Pool = "default"
	}
	if q.WindowSeconds == 0 {
		q.WindowSeconds = int64(24 * time.Hour / time.Second)
	}
	if q.TargetLoad == 0 {
		q.TargetLoad = 0.7
	}
	if q.WindowSeconds < int64(minWindow/time.Second) || q.WindowSeconds > int64(maxWindow/time.Second) {
		return fault.Invalid("windowSeconds", "must be from %d to %d", minWindow/time.Second, maxWindow/time.Second)
	}
	if !(q.TargetLoad > 0 && q.TargetLoad < 1) {
		return fault.Invalid("targetLoad", "must be between 0 and 1, both excluded: at 1 the queue never ends")
	}
	return nil
}

// measure turns what came and ran into figures of each class.
func measure(l Loads, over time.Duration) []ClassLoad {
	samples := map[string][]Sample{}
	for _, one := range l.Samples {
		samples[one.Class] = append(samples[one.Class], one)
	}
	out := []ClassLoad{}
	for class, n := range l.Runs {
		c := ClassLoad{Class: class, Runs: n, RunsPerMinute: float64(n) / over.Minutes()}
		c.Attempts = int64(len(samples[class]))
		describe(&c, samples[class])
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b ClassLoad) int { return cmp.Compare(a.Class, b.Class) })
	return out
}

func describe(c *ClassLoad, samples []Sample) {
	if len(samples) == 0 {
		return
	}
	n := float64(len(samples))
	took := make([]float64, len(samples))
	var sum, squares float64
	for i, s := range samples {
		took[i] = s.Took.Seconds()
		sum += took[i]
		squares += took[i] * took[i]
		c.Slots += float64(s.Slots) / n
		c.MilliCPU += float64(s.Asked.MilliCPU) / n
		c.MemoryBytes += float64(s.Asked.MemoryBytes) / n
		c.DiskBytes += float64(s.Asked.DiskBytes) / n
		c.UsedMemoryBytes = max(c.UsedMemoryBytes, s.Memory)
		c.LogBytes += float64(s.Log) / n
		c.UsedMilliCPU += 1000 * s.CPU / n
	}
	slices.Sort(took)
	c.Seconds, c.P95Seconds = sum/n, took[min(len(took)-1, int(0.95*n))]
	if c.Seconds > 0 {
		c.Variation = math.Sqrt(max(0, squares/n-c.Seconds*c.Seconds)) / c.Seconds
	}
}

// plan adds slots by Little's law, and a forecast that says it is one.
func (s *Planner) plan(ctx context.Context, out *Live, forecast bool) error {
	in := Input{TargetLoad: out.TargetLoad}
	for _, c := range out.Measured {
		if c.Attempts == 0 || c.Seconds <= 0 {
			out.Notes = append(out.Notes, fmt.Sprintf("of class %s nothing has ended yet: it is not planned for", c.Class))
			continue
		}
		// A Run of several slots is so many of one, each with its part of the rest.
		slots := max(c.Slots, 1)
		in.Classes = append(in.Classes, Class{
			Name: c.Class, PerMinute: min(c.RunsPerMinute*slots, maxRate), Seconds: min(c.Seconds, maxSeconds), Variation: min(c.Variation, 10),
			Need: Amounts{MilliCPU: int64(c.MilliCPU / slots), MemoryBytes: int64(c.MemoryBytes / slots), DiskBytes: int64(c.DiskBytes / slots)},
		})
	}
	if len(in.Classes) == 0 {
		out.Notes = append(out.Notes, "nothing ran in the window: there is nothing to plan for")
		return nil
	}
	result, err := Make(in)
	if err != nil {
		return err
	}
	out.Busy, out.Slots = result.Busy, int64(result.Slots)
	for _, c := range result.Classes {
		out.Classes = append(out.Classes, ClassSlots{Class: c.Name, Busy: c.Busy, Slots: int64(c.Slots)})
	}
	if !forecast {
		return nil
	}
	if result.Slots > liveSlots {
		out.Notes = append(out.Notes, fmt.Sprintf("no forecast for more than %d slots; %s", liveSlots, forecastSee))
		return nil
	}
	return s.play(ctx, out, in, result.Slots)
}

func (s *Planner) play(ctx context.Context, out *Live, in Input, slots int) error {
	select {
	case s.playing <- struct{}{}:
		defer func() { <-s.playing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	f, err := Play(in, slots, 1)
	if err != nil {
		return err
	}
	out.Forecast = &LiveForecast{
		Label: "forecast", Slots: int64(f.Slots), Load: f.Load, Runs: int64(f.Runs), Stable: f.Stable, P50: f.Wait.P50, P95: f.Wait.P95, P99: f.Wait.P99,
	}
	return nil
}
