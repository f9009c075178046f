package storm

import (
	"time"

	"github.com/roadstead/roadstead/internal/class"
)

// begin starts a client's next download; a twin joins the one its brother makes.
func (w *world) begin(c *client) {
	if w.stopping {
		c.stage = idle
		return
	}
	w.numbers++
	c.start(w.sc, w.r, w.numbers)
	if t := c.twin; t != nil && t.stage != idle && len(t.parts)+len(t.open) > 0 && w.r.IntN(2) == 0 {
		c.key, c.size = t.key, t.size
		c.parts = append(c.parts[:0], span{0, c.size, false})
		c.whole, t.whole = false, false
	}
	c.stage = away
	w.note(c, "begins a download")
	w.request(c)
}

// twinned reports whether another client makes the same download.
func (w *world) twinned(c *client) bool {
	for _, o := range w.clients {
		if o != c && o.key == c.key && o.stage != idle {
			return true
		}
	}
	return false
}

// done is the end of a download for its client.
func (w *world) done(c *client) {
	c.stage = idle
	w.stats.Downloads++
	w.rest(c)
}

// gone ends a download that its client gave up.
func (w *world) gone(c *client, why string) {
	w.note(c, why)
	if c.stage == held && w.book.of(c.key) != nil && w.machine != nil {
		w.unhold(c)
	}
	for len(c.open) > 0 && w.broken == nil {
		b := c.open[0]
		w.drop(b)
		w.close(b, b.span.from, b.span.from)
	}
	c.stage = idle
	w.rest(c)
}

// rest plans the next download.
func (w *world) rest(c *client) {
	c.turn++
	if c.ghost {
		w.bury(c)
		return
	}
	w.plan(begins, c, time.Second+time.Duration(w.r.ExpFloat64()*float64(w.sc.think)))
}

// bury takes a ghost out of the world.
func (w *world) bury(c *client) {
	for i, o := range w.clients {
		if o == c && len(c.open) == 0 {
			w.clients = append(w.clients[:i], w.clients[i+1:]...)
			return
		}
	}
}

// trouble makes what was planned happen, and plans the next.
func (w *world) trouble(what happening) {
	if w.stopping && what != restarts && what != thaws {
		return
	}
	sc := w.sc
	switch what {
	case crashes:
		w.next(crashes, sc.crash)
		w.crash()
	case restarts:
		w.restart()
	case freezes:
		w.next(freezes, sc.freeze)
		w.freeze()
	case thaws:
		w.thaw()
	case configures:
		w.next(configures, sc.settings)
		w.configure()
	case opensOrShuts:
		w.next(opensOrShuts, sc.window)
		w.turnWindow()
	case overloads:
		w.next(overloads, sc.overload)
		w.overload()
	case wallJumps:
		w.next(wallJumps, sc.wallJump)
		jump := time.Duration(w.r.Int64N(int64(4*time.Hour))) - 2*time.Hour
		w.shift += jump
		w.noteAll("the wall clock is set by {time}", int64(jump), 0)
	case stops:
		w.stop()
	}
}

func (w *world) crash() {
	if w.machine == nil || w.frozen {
		return
	}
	down := time.Duration(w.r.Int64N(int64(time.Minute)))
	if w.r.IntN(10) == 0 {
		down = time.Duration(w.r.Int64N(int64(30 * time.Minute))) // tickets run out
	}
	w.stats.Crashes++
	w.waiters = len(w.book.waiting) > 0
	w.noteAll("the process dies; down for {time}, {b} were waiting", int64(down), int64(len(w.book.waiting)))
	w.machine = nil
	w.lose()
	w.agenda.plan(entry{at: w.now.Add(down), what: restarts})
}

func (w *world) restart() {
	if err := w.boot(w.waiters); err != nil {
		w.broken = err
	}
	w.rates, w.ranges = false, false
	w.noteAll("a new process starts", 0, 0)
}

// freeze stops the process for minutes to hours; its clock goes on, or stops too as in a suspended machine (D-7.3).
func (w *world) freeze() {
	if w.machine == nil || w.frozen {
		return
	}
	d := 10*time.Second + time.Duration(w.r.ExpFloat64()*float64(10*time.Minute))
	w.stats.Freezes++
	w.noteAll("the process is frozen for {time}", int64(d), 0)
	for _, b := range w.open {
		w.tell(b)
	}
	w.frozen, w.rates, w.frozeAt = true, false, w.now
	w.agenda.plan(entry{at: w.now.Add(d), what: thaws})
}

func (w *world) thaw() {
	w.frozen, w.rates = false, false
	what := "the process thaws"
	if w.r.IntN(2) == 0 {
		gap := w.now.Sub(w.frozeAt)
		w.born, w.ticked, what = w.born.Add(gap), w.ticked.Add(gap), "the process thaws; its clock had stopped too"
	}
	w.noteAll(what, 0, 0)
}

// configure changes what may be changed at run time (D-9.3).
func (w *world) configure() {
	if w.machine == nil {
		return
	}
	p := drawPolicy(w.r, w.policy)
	p.MaxSessions = w.policy.MaxSessions
	old := w.policy
	if w.r.IntN(2) == 0 { // one thing only
		p.Strategy, p.Weights, p.Aging = old.Strategy, old.Weights, old.Aging
	}
	if err := w.machine.Configure(w.mono(), p); err != nil {
		w.broken = err
		return
	}
	w.ages(p.Aging)
	w.ranges = w.ranges || p.RangesPerSession < old.RangesPerSession
	w.set, w.policy = p, w.machine.Policy() // seats that follow the link stay as many as they are
	w.book.fresh()
	w.noteAll("settings: {a} seats, a share of {b}", int64(w.policy.Sessions), int64(p.PerPrincipal))
	w.noteAll("settings: strategy {a}, reserve {b}", int64(p.Strategy), int64(p.Reserve))
}

func (w *world) turnWindow() {
	c := class.Class(w.r.IntN(class.Count))
	o := &w.windows[c]
	o.shut, o.outside = !o.shut, w.r.IntN(3) == 0
	o.changes = 0
	if w.r.IntN(2) == 0 {
		o.changes = w.now.Add(time.Duration(w.r.Int64N(int64(2 * time.Hour)))) // announced; it may come otherwise
	}
	shut := int64(0)
	if o.shut {
		shut = 1
	}
	w.noteAll("window of class {a}: shut {b}", int64(c), shut)
	if w.machine != nil {
		w.tellWindow(c)
		w.book.fresh()
	}
}

// overload sends a crowd at once: of one principal or of all.
func (w *world) overload() {
	n := 10 + w.r.IntN(150)
	one, alone := w.r.IntN(w.sc.principals), w.r.IntN(2) == 0
	w.noteAll("a crowd of {a} comes", int64(n), 0)
	for range n {
		c := &client{number: 1000 + w.ghosts, principal: w.r.IntN(w.sc.principals), class: class.Class(w.r.IntN(class.Count)), ghost: true}
		w.ghosts++
		c.stock = w.r.Float64() < w.sc.stock
		if alone {
			c.principal = one
		}
		w.clients = append(w.clients, c)
		w.plan(begins, c, time.Duration(w.r.Int64N(int64(10*time.Second))))
	}
}

// stop ends the troubles: everybody finishes or leaves, and everything must come back to zero.
func (w *world) stop() {
	w.stopping = true
	w.sc.lost, w.sc.late, w.sc.crawl, w.rates = 0, 0, 0, false
	for _, c := range w.clients {
		c.crawls = false
	}
	for c := range w.windows {
		w.windows[c] = opening{}
		if w.machine != nil {
			w.tellWindow(class.Class(c))
		}
	}
	w.noteAll("no more trouble", 0, 0)
	for _, c := range w.clients {
		if c.ghost && c.stage == away && len(c.open) == 0 {
			c.stage = idle // what is left of a crowd loses heart: a small bound would take days to let it through
		}
		if c.stage == idle {
			c.turn++
		}
	}
}
