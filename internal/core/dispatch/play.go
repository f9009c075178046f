package dispatch

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

// player plays a copy of a machine forward: the same decisions, and Attempts that take as long as is expected.
type player struct {
	c      *Machine
	now    clock.Mono   // as of
	at     clock.Mono   // how far it was played
	ends   []uint32     // heap of what runs, by until
	until  []clock.Mono // by Run
	starts []planned    // played, in their order
	rest   []planned    // fluid, in their order
	seen   []bool       // by Run: it is among them
	kept   []int8       // by shape, as of now: 1 kept out by a reservation, -1 not, 0 not asked yet
	cost   time.Duration
	took   time.Duration // sum of what all that ran was expected to take
	count  int
}

// planned is a start.
type planned struct {
	run   uint32
	at    clock.Mono
	width time.Duration
	band  uint8
}

// byEnd orders Attempts by when they are expected to end.
type byEnd struct{ p *player }

func (o byEnd) before(a, b uint32) bool {
	x, y := o.p.until[a], o.p.until[b]
	return x < y || x == y && o.p.c.runs[a].seq < o.p.c.runs[b].seq
}
func (byEnd) placed(uint32, int32) {}

// play plays a copy forward until the limits.
func play(now clock.Mono, c *Machine, l Limits) *player {
	if l.Exact <= 0 {
		l.Exact = DefaultExact
	}
	if l.Horizon <= 0 {
		l.Horizon = DefaultHorizon
	}
	p := &player{
		c: c, now: now, at: now, until: make([]clock.Mono, len(c.runs)), seen: make([]bool, len(c.runs)), kept: make([]int8, len(c.shapes)),
	}
	for h := 1; h < len(c.runs); h++ {
		if r := &c.runs[h]; r.state == active {
			p.begin(uint32(h), now.Add(r.remaining(now)))
		}
	}
	for len(p.starts) < l.Exact {
		c.Decide(p.at, l.Exact-len(p.starts))
		for i, h := range c.picks {
			p.cost += c.out[i].Charge
			p.begin(h, p.at.Add(c.runs[h].expected))
			p.starts = append(p.starts, p.plan(h, p.at))
		}
		if len(c.order)+len(c.timers) == 0 && c.ready == 0 {
			return p
		}
		if !p.step() {
			return p // what is left waits for nothing that can be foreseen
		}
		if p.at > now.Add(l.Horizon) {
			break
		}
	}
	p.fluid()
	return p
}

func (p *player) begin(h uint32, until clock.Mono) {
	p.until[h] = until
	p.ends = push(byEnd{p}, p.ends, h)
	p.took += p.c.runs[h].expected
	p.count++
}

// step lets time go by until an Attempt ends or a timed blocker does; false when neither will.
func (p *player) step() bool {
	next, timed := p.c.Next()
	if len(p.ends) > 0 && (!timed || p.until[p.ends[0]] < next) {
		next = p.until[p.ends[0]]
	} else if !timed {
		return false
	}
	p.at = max(p.at, next)
	p.c.wake(p.at)
	for len(p.ends) > 0 && p.until[p.ends[0]] <= p.at {
		h := p.ends[0]
		p.ends = drop(byEnd{p}, p.ends, 0)
		p.c.depart(h, p.until[h].Sub(p.c.runs[h].began))
	}
	return true
}

// remaining is how long an Attempt is expected to run on. One that runs longer than most says that it is of the long
// ones: the longer it ran, the longer it will.
func (r *record) remaining(now clock.Mono) time.Duration {
	ran := now.Sub(r.since)
	left := r.expected - ran
	switch {
	case ran > r.slow:
		left = ran / 4
	case ran > r.fast:
		left = max(left, (r.slow-r.fast)/4)
	}
	return max(0, min(left, r.timeout-ran))
}

// plan notes a start, and how far around it the true one may lie.
func (p *player) plan(h uint32, at clock.Mono) planned {
	p.seen[h] = true
	mean := p.took / time.Duration(max(p.count, 1))
	wait, slots := at.Sub(p.now), max(len(p.ends), 1)
	return planned{h, at, width(wait, mean, slots), band(wait, mean, slots)}
}

// tagged is a Run of the fluid part.
type tagged struct {
	start Tag
	run   uint32
	cost  time.Duration
	least time.Duration // its tenant's cap lets it start after so long
}

// fluid goes on where playing was given up: the Runs that are ready start in the order of the tags they would have, as
// fast as the played ones did. It knows of no room and no reservation, but a cap of slots holds.
func (p *player) fluid() {
	c := p.c
	var all []tagged
	for i := range c.tenants {
		all = p.line(all, &c.tenants[i])
	}
	slices.SortFunc(all, func(a, b tagged) int {
		if o := cmp.Compare(a.start, b.start); o != 0 {
			return o
		}
		return strings.Compare(c.ids[a.run], c.ids[b.run])
	})
	pace := 1.0 // time of the pool in a time
	if took := p.at.Sub(p.now); took > 0 && p.cost > 0 {
		pace = float64(p.cost) / float64(took)
	}
	done := time.Duration(0)
	for _, x := range all {
		p.rest = append(p.rest, p.plan(x.run, p.at.Add(max(x.least, time.Duration(float64(done)/pace)))))
		done += x.cost
	}
	slices.SortStableFunc(p.rest, func(a, b planned) int { return cmp.Compare(a.at, b.at) })
}

// line appends the Runs of a tenant that are ready, with the tags they would start at if they started one by one.
func (p *player) line(all []tagged, t *tenant) []tagged {
	c := p.c
	var own []uint32
	for _, l := range t.lanes {
		if c.reachable(&c.shapes[c.lanes[l].shape]) {
			own = append(own, c.lanes[l].runs...)
		}
	}
	own = append(own, t.overflow...)
	slices.SortFunc(own, func(a, b uint32) int {
		if (byKey{c}).before(a, b) {
			return -1
		}
		return 1
	})
	tag, slots := max(t.finish, c.virtual), time.Duration(0)
	for _, h := range own {
		r := &c.runs[h]
		v := &c.shapes[r.shape].vector
		x := tagged{start: tag, run: h, cost: v.share(&c.capacity).cost(r.expected)}
		if t.cap[Slots] > 0 {
			x.least = slots / time.Duration(t.cap[Slots])
			slots += r.expected * time.Duration(v[Slots])
		}
		all = append(all, x)
		tag += advance(x.cost, t.weight)
	}
	return all
}

// each calls visit with every start, and how many come before it.
func (p *player) each(visit func(place int, x planned)) {
	for i, x := range p.starts {
		visit(i, x)
	}
	for i, x := range p.rest {
		visit(len(p.starts)+i, x)
	}
}

// outlook is what a Run is told of its start.
func (p *player) outlook(place int, x planned) Outlook {
	s, w := p.c.learnt[x.band].spread(), float64(x.width)
	least := max(p.now, p.c.runs[x.run].due())
	around := func(q float64) clock.Mono { return max(least, x.at.Add(time.Duration(q*w))) }
	return Outlook{
		Known: true, Exact: place < len(p.starts), Place: place, Start: x.at, P10: around(s.p10), P50: around(s.p50), P90: around(s.p90),
	}
}
