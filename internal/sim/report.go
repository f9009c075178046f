package sim

import (
	"math"
	"slices"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
)

// Report is what a run came to. Times are in seconds.
type Report struct {
	Config   Config  `json:"config"`
	Hash     string  `json:"hash"` // over every decision and its instant; equal for equal runs
	Finished int     `json:"finished"`
	Failed   int     `json:"failed"`          // wanted to finish and did not
	Vanished int     `json:"vanished"`        // left of their own will
	Bytes    int64   `json:"bytes"`           // that finished clients wanted
	Makespan float64 `json:"makespanSeconds"` // from the fleet's first request to its last byte

	Finish    Spread  `json:"finishSeconds"` // from each client's first request to its last byte
	Even      Spread  `json:"evenSeconds"`   // the same fleet sharing the link evenly
	MeanRatio float64 `json:"meanRatio"`     // mean of Finish over mean of Even

	Busy      float64     `json:"busy"`  // part of the link used while anyone waited; 1 when nobody did
	Polls     int         `json:"polls"` // requests that reached the server
	NoShows   int         `json:"noShows"`
	Estimates Estimates   `json:"estimates"`
	Waits     []ClassWait `json:"waits"`
	Left      Left        `json:"left"`

	stories []story
}

// Spread sums up a set of times.
type Spread struct {
	First float64 `json:"first"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P95   float64 `json:"p95"`
	Last  float64 `json:"last"`
}

// Estimates scores the first interval each client was told together with a place (D-6.3).
type Estimates struct {
	Promised int     `json:"promised"` // clients that were told one and started
	Inside   float64 `json:"inside"`   // share of them that started inside it
	Narrow   float64 `json:"narrow"`   // share whose interval was no wider than one seat turn or 20 % of the wait
	Error    Spread  `json:"errorSeconds"`
	Bias     float64 `json:"biasSeconds"`  // mean of actual minus told: positive when starts come late
	Width    float64 `json:"widthSeconds"` // mean width of the interval
	Turn     float64 `json:"turnSeconds"`  // one seat turn: a mean file at a seat's share of the link
}

// ClassWait is how long the clients of a class waited for their first byte.
type ClassWait struct {
	Class   string `json:"class"`
	Clients int    `json:"clients"`
	Seconds Spread `json:"seconds"`
}

// Left is what the machine still counted once every client was through and its records had expired; all zero unless
// something leaks (D-2.13).
type Left struct {
	Sessions  int `json:"sessions"`
	Active    int `json:"active"`
	Waiting   int `json:"waiting"`
	Paused    int `json:"paused"`
	Held      int `json:"held"`
	Responses int `json:"responses"`
}

// story is one client's run, in seconds since the fleet's first request at the server; -1 for what did not happen.
type story struct {
	class                            class.Class
	entered, started, finished, even float64
	promised                         bool
	point, earliest, latest          float64
}

// report sums the run up.
func (s *Simulation) report() Report {
	r := Report{Config: s.cfg, Hash: s.journal.digest(), Busy: 1, Polls: s.tally.polls, NoShows: s.tally.noShows}
	if s.tally.waited > 0 {
		r.Busy = s.tally.carried / (float64(s.cfg.Link) * s.tally.waited.Seconds())
	}
	counts := s.machine.Counts()
	r.Left.Sessions, r.Left.Responses = counts.Sessions, counts.Responses
	for _, c := range counts.Classes {
		r.Left.Active += c.Active
		r.Left.Waiting += c.Waiting
		r.Left.Paused += c.Paused
		r.Left.Held += c.Held
	}
	r.sum(s.fleet, even(s.cfg, s.fleet))
	r.wait(s.fleet)
	r.score(s.fleet)
	return r
}

// runShared is the run in which everybody reads at once. It is its own comparison.
func runShared(cfg Config) Report {
	fleet, journal := newFleet(cfg), newJournal()
	ends := even(cfg, fleet)
	for i, c := range fleet {
		c.entered, c.begun, c.state = c.arrives.Add(cfg.Latency/2), true, done
		c.started, c.finished = c.entered, ends[i].Add(cfg.Latency/2)
		journal.numbers(c.finished, int64(i))
	}
	r := Report{Config: cfg, Hash: journal.digest(), Busy: 1, Polls: cfg.Clients}
	r.sum(fleet, ends)
	r.wait(fleet)
	return r
}

// even lets the fleet share the link from each client's first request on and gives when the server sent each last
// byte. Clients that left are left out; nobody falls silent.
func even(cfg Config, fleet []*client) []clock.Mono {
	l := newLink(cfg.Link, cfg.peak(), cfg.Clients)
	ends := make([]clock.Mono, len(fleet))
	for i := 0; i < len(fleet) || len(l.lanes) > 0; {
		at, flowing := l.next()
		if i < len(fleet) {
			if enters := fleet[i].arrives.Add(cfg.Latency / 2); !flowing || enters <= at {
				l.advance(enters)
				if c := fleet[i]; c.state != gone {
					l.add(c, c.principal, c.size)
				}
				i++
				continue
			}
		}
		l.advance(at)
		for f := l.through(); f != nil; f = l.through() {
			ends[f.client.index] = at
		}
	}
	return ends
}

// sum fills in completions and the comparison, over the clients that finished.
func (r *Report) sum(fleet []*client, ends []clock.Mono) {
	var finish, shared []float64
	first := fleet[0].arrives
	for _, c := range fleet {
		st := story{class: c.class, started: -1, finished: -1, even: -1, entered: c.entered.Sub(first).Seconds()}
		if c.begun {
			st.started = c.started.Sub(first).Seconds()
		}
		if c.promised {
			st.promised, st.point = true, c.promise.Start.Sub(first).Seconds()
			st.earliest, st.latest = c.promise.Earliest.Sub(first).Seconds(), c.promise.Latest.Sub(first).Seconds()
		}
		switch c.state {
		case done:
			r.Finished++
			r.Bytes += c.size
			st.finished = c.finished.Sub(first).Seconds()
			st.even = ends[c.index].Add(r.Config.Latency / 2).Sub(first).Seconds()
			r.Makespan = max(r.Makespan, st.finished)
			finish = append(finish, c.finished.Sub(c.arrives).Seconds())
			shared = append(shared, st.even-c.arrives.Sub(first).Seconds())
		case gone:
			r.Vanished++
		default:
			r.Failed++
		}
		r.stories = append(r.stories, st)
	}
	r.Finish, r.Even = spread(finish), spread(shared)
	if r.Even.Mean > 0 {
		r.MeanRatio = r.Finish.Mean / r.Even.Mean
	}
}

// wait fills in the waits of each class, over the clients that started.
func (r *Report) wait(fleet []*client) {
	var waits [class.Count][]float64
	for _, c := range fleet {
		if c.begun {
			waits[c.class] = append(waits[c.class], c.started.Sub(c.entered).Seconds())
		}
	}
	for _, c := range class.All() {
		if len(waits[c]) > 0 {
			r.Waits = append(r.Waits, ClassWait{Class: c.String(), Clients: len(waits[c]), Seconds: spread(waits[c])})
		}
	}
}

// score compares what clients were told first with what came.
func (r *Report) score(fleet []*client) {
	e := &r.Estimates
	e.Turn = float64(r.Config.Sizes.Min+r.Config.Sizes.Max) / 2 * float64(r.Config.Seats) / float64(r.Config.Link)
	var errors []float64
	inside, narrow := 0, 0
	for _, c := range fleet {
		if !c.promised || !c.begun {
			continue
		}
		late, width := c.started.Sub(c.promise.Start).Seconds(), c.promise.Latest.Sub(c.promise.Earliest).Seconds()
		errors = append(errors, math.Abs(late))
		e.Bias += late
		e.Width += width
		if c.promise.Earliest <= c.started && c.started <= c.promise.Latest {
			inside++
		}
		if width <= max(e.Turn, 0.2*c.started.Sub(c.entered).Seconds()) {
			narrow++
		}
	}
	if e.Promised = len(errors); e.Promised == 0 {
		e.Inside, e.Narrow = 1, 1
		return
	}
	n := float64(e.Promised)
	e.Error, e.Bias, e.Width = spread(errors), e.Bias/n, e.Width/n
	e.Inside, e.Narrow = float64(inside)/n, float64(narrow)/n
}

// spread sums up times; it orders them in place.
func spread(times []float64) Spread {
	if len(times) == 0 {
		return Spread{}
	}
	slices.Sort(times)
	sum := 0.0
	for _, t := range times {
		sum += t
	}
	at := func(q float64) float64 { return times[int(math.Ceil(q*float64(len(times))))-1] }
	return Spread{First: times[0], Mean: sum / float64(len(times)), P50: at(0.5), P95: at(0.95), Last: times[len(times)-1]}
}

// seconds is a time to show, without digits nobody reads.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d.Abs() < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	case d.Abs() < time.Hour:
		return d.Round(time.Second).String()
	default:
		return d.Round(time.Minute).String()[:len(d.Round(time.Minute).String())-2]
	}
}
