package plan

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/dispatch"
	"github.com/roadstead/roadstead/internal/fault"
)

// Forecast is what the machine that orders Runs makes of a synthetic load: arrivals at random (Poisson) and times that
// vary as the classes say. It is a forecast and proves nothing: real Runs come in bursts and vary otherwise, so an
// objective for the tail is shown by a load measurement only.
type Forecast struct {
	Slots   int       `json:"slots"`
	Load    float64   `json:"load"`   // busy / slots
	Seed    uint64    `json:"seed"`   // the same input and seed give the same forecast
	Runs    int       `json:"runs"`   // counted, of all plays
	Plays   int       `json:"plays"`  // with seeds from Seed on
	Wait    Waits     `json:"wait"`   // in the queue, over all plays
	P95s    []float64 `json:"p95s"`   // of each play, in seconds: how sure the figure is
	Stable  bool      `json:"stable"` // false: more comes than the slots can do, so waits grow for ever
	Classes []Waits   `json:"classes"`
}

// Waits is how long Runs waited, in seconds.
type Waits struct {
	Name string  `json:"name,omitempty"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// The extent of a forecast.
const (
	plays     = 5
	counted   = 10_000 // Runs of one play that are counted
	warmUp    = 5      // the slots are filled this many times before any is counted
	slotsMost = 20_000
)

// Play forecasts the queue of an input on so many slots of one pool. All classes are one tenant, so Runs start in the order
// they come. External limits and the memory and CPU of nodes do not bind in it: the slots are what they allow.
func Play(in Input, slots int, seed uint64) (Forecast, error) {
	if err := in.Validate(); err != nil {
		return Forecast{}, err
	}
	if slots < 1 || slots > slotsMost {
		return Forecast{}, fault.Invalid("slots", "must be between 1 and %d", slotsMost)
	}
	busy := 0.0
	for _, c := range in.Classes {
		busy += c.PerMinute / 60 * c.Seconds
	}
	out := Forecast{Slots: slots, Load: busy / float64(slots), Seed: seed, Plays: plays, Stable: busy < float64(slots)}
	waits := make([][]float64, len(in.Classes))
	for i := range uint64(plays) {
		p, err := newPlay(in, slots, seed+i)
		if err != nil {
			return Forecast{}, err
		}
		if err := p.run(); err != nil {
			return Forecast{}, err
		}
		var all []float64
		for class, w := range p.waits {
			waits[class] = append(waits[class], w...)
			all = append(all, w...)
		}
		out.P95s = append(out.P95s, summary("", all).P95)
		out.Runs += len(all)
	}
	for i, c := range in.Classes {
		out.Classes = append(out.Classes, summary(c.Name, waits[i]))
	}
	out.Wait = summary("", slices.Concat(waits...))
	return out, nil
}

func summary(name string, waits []float64) Waits {
	slices.Sort(waits)
	at := func(q float64) float64 {
		if len(waits) == 0 {
			return 0
		}
		return waits[min(len(waits)-1, int(q*float64(len(waits))))]
	}
	return Waits{Name: name, P50: at(0.5), P95: at(0.95), P99: at(0.99), Max: at(1)}
}

// play is one machine under one synthetic load.
type play struct {
	in      Input
	m       *dispatch.Machine
	random  *rand.Rand
	rate    float64 // arrivals a second
	now     clock.Mono
	arrival clock.Mono // the next one
	made    int
	warm    int
	waiting map[string]came
	ends    endings
	waits   [][]float64 // by class
}

// came is a Run that waits.
type came struct {
	at    clock.Mono
	class int
	n     int
	takes time.Duration
}

type ending struct {
	at    clock.Mono
	run   string
	takes time.Duration
}

type endings []ending

func (e endings) Len() int           { return len(e) }
func (e endings) Less(i, j int) bool { return e[i].at < e[j].at }
func (e endings) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(x any)        { *e = append(*e, x.(ending)) }
func (e *endings) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func newPlay(in Input, slots int, seed uint64) (*play, error) {
	m, err := dispatch.New(dispatch.Default())
	if err != nil {
		return nil, err
	}
	p := &play{
		in: in, m: m, random: rand.New(rand.NewPCG(seed, 0x70616c6e)), now: clock.Mono(time.Hour),
		waiting: map[string]came{}, waits: make([][]float64, len(in.Classes)), warm: warmUp * slots,
	}
	for _, c := range in.Classes {
		p.rate += c.PerMinute / 60
	}
	p.arrival = p.now
	if err := m.SetTenant(p.now, dispatch.Tenant{ID: "all", Weight: 1}); err != nil {
		return nil, fmt.Errorf("forecasting: %w", err)
	}
	if err := m.SetRunner(p.now, dispatch.Runner{ID: "pool", Capacity: dispatch.Vector{dispatch.Slots: int64(slots)}}); err != nil {
		return nil, fmt.Errorf("forecasting: %w", err)
	}
	return p, nil
}

// run lets Runs come and end until enough have come and all have started.
func (p *play) run() error {
	for p.made < p.warm+counted || len(p.waiting) > 0 {
		switch {
		case p.made < p.warm+counted && (len(p.ends) == 0 || p.arrival <= p.ends[0].at):
			p.now = p.arrival
			if err := p.arrive(); err != nil {
				return fmt.Errorf("forecasting: %w", err)
			}
		default:
			e := heap.Pop(&p.ends).(ending)
			p.now = e.at
			if !p.m.Finish(p.now, e.run, e.takes) {
				return fault.New(fault.Internal, "forecasting: a Run that started can't end")
			}
		}
		p.start()
	}
	return nil
}

// arrive submits the next Run, of a class by the classes' rates.
func (p *play) arrive() error {
	p.made++
	class, x := 0, p.random.Float64()*p.rate
	for class < len(p.in.Classes)-1 && x >= p.in.Classes[class].PerMinute/60 {
		x -= p.in.Classes[class].PerMinute / 60
		class++
	}
	c := p.in.Classes[class]
	takes := time.Duration(p.takes(c) * float64(time.Second))
	expected := time.Duration(c.Seconds * float64(time.Second))
	id := fmt.Sprintf("run_%08d", p.made)
	p.waiting[id] = came{at: p.now, class: class, n: p.made, takes: takes}
	p.arrival = p.now.Add(time.Duration(p.random.ExpFloat64() / p.rate * float64(time.Second)))
	return p.m.Submit(p.now, dispatch.Run{
		ID: id, Tenant: "all", Need: dispatch.Vector{dispatch.Slots: 1}, Expected: expected, Timeout: max(takes, expected) + time.Second,
	})
}

// takes draws how long a Run of a class takes, in seconds: log-normal with the class's average and variation, as times of
// work often are.
func (p *play) takes(c Class) float64 {
	if c.Variation == 0 {
		return c.Seconds
	}
	s := math.Log(1 + c.Variation*c.Variation)
	return max(0.001, c.Seconds*math.Exp(p.random.NormFloat64()*math.Sqrt(s)-s/2))
}

// start starts what the machine decides, and notes how long it waited.
func (p *play) start() {
	const most = 64
	for {
		decided := p.m.Decide(p.now, most)
		for _, d := range decided {
			w := p.waiting[d.Run]
			delete(p.waiting, d.Run)
			heap.Push(&p.ends, ending{at: p.now.Add(w.takes), run: d.Run, takes: w.takes})
			if w.n > p.warm {
				p.waits[w.class] = append(p.waits[w.class], p.now.Sub(w.at).Seconds())
			}
		}
		if len(decided) < most {
			return
		}
	}
}
