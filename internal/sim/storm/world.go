package storm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/ticket"
)

// opening is a class's window as the operator set it.
type opening struct {
	shut, outside bool
	changes       clock.Mono // when it turns, in world time; 0 never
}

// world is one run of one scenario: the clients, the link, the server's process, and the book.
type world struct {
	sc       *scenario
	r        *rand.Rand
	now      clock.Mono // since the run began; the process counts from its own birth
	agenda   agenda
	clients  []*client
	open     []*response // being sent, the stalled ones too
	nextEnd  clock.Mono  // when the first response is through at the present rates
	rates    bool        // the rates are those of the responses that are open
	flows    []int       // responses that flow, by principal
	numbers  uint64
	stopping bool

	machine *session.Machine
	book    *book
	policy  session.Policy // in force
	set     session.Policy // as the operator set it: the seats may follow the link
	windows [class.Count]opening
	born    clock.Mono // when the process's clock stood at zero
	frozen  bool
	frozeAt clock.Mono
	signer  ticket.Signer
	shift   time.Duration // what the wall clock was set forward, in all
	base    time.Time     // wall time of the process's zero

	holding, atDoor int        // requests held: of tools, of called clients
	beat            clock.Mono // just before each half second, so that the bytes of a second are told in it
	ticks           int
	tickGap         time.Duration
	ticked          clock.Mono    // the last tick, in world time
	ranges          bool          // the ranges of a session were lowered while some were open
	aging           time.Duration // the least there was in this process; 0 none: who waited less cannot have aged
	flags           int           // seats asked back and given at once in this tick
	waiters         bool          // downloads were waiting when the process died
	ghosts          int

	story  story
	stats  Stats
	broken error
	victim session.Key
}

// epoch is the wall time at which every run begins.
func epoch() time.Time { return time.UnixMilli(1_700_000_000_000) }

func newWorld(sc *scenario) (*world, error) {
	w := &world{
		sc: sc, r: rand.New(rand.NewPCG(sc.seed, 12)), policy: sc.policy, set: sc.policy, signer: ticket.New([]byte("storm")),
		flows: make([]int, sc.principals), beat: clock.Mono(session.TickEvery) - 1, tickGap: session.TickEvery,
	}
	if err := w.boot(false); err != nil {
		return nil, fmt.Errorf("make the machine of seed %d: %w", sc.seed, err)
	}
	for i := range sc.clients {
		c := &client{number: i, principal: i % sc.principals, class: class.Release, stock: w.r.Float64() < sc.stock}
		if sc.mixed {
			c.class = class.Class(w.r.IntN(class.Count))
		}
		if i > 0 && c.stock && w.r.Float64() < sc.twin && w.clients[i-1].stock {
			c.twin, c.principal, c.class = w.clients[i-1], w.clients[i-1].principal, w.clients[i-1].class
		}
		w.clients = append(w.clients, c)
		w.plan(begins, c, time.Duration(w.r.Int64N(int64(time.Minute))))
	}
	w.next(crashes, sc.crash)
	w.next(freezes, sc.freeze)
	w.next(configures, sc.settings)
	w.next(opensOrShuts, sc.window)
	w.next(overloads, sc.overload)
	w.next(wallJumps, sc.wallJump)
	w.agenda.plan(entry{at: clock.Mono(sc.length), what: stops})
	return w, nil
}

// next plans a trouble after an exponential gap.
func (w *world) next(what happening, mean time.Duration) {
	if mean > 0 && !w.stopping {
		w.agenda.plan(entry{at: w.now.Add(time.Duration(w.r.ExpFloat64() * float64(mean))), what: what})
	}
}

// plan gives a client something to do, which voids what it had planned before.
func (w *world) plan(what happening, c *client, in time.Duration) {
	c.turn++
	w.agenda.plan(entry{at: w.now.Add(in), what: what, client: c, turn: c.turn})
}

// mono is the process's clock.
func (w *world) mono() clock.Mono { return w.now - w.born }

// wall is the clock on the wall, which may be set.
func (w *world) wall() time.Time { return epoch().Add(time.Duration(w.now) + w.shift) }

// drainLimit is how long after the last trouble everything must be back at zero: a wait at the longest check time and
// backlog, a pause, a tombstone.
const drainLimit = 24 * time.Hour

// run plays the scenario to its end.
func (w *world) run(ctx context.Context) error {
	for w.broken == nil {
		at := w.beat
		if len(w.agenda.heap) > 0 {
			at = min(at, w.agenda.heap[0].at)
		}
		w.share()
		at = max(w.now, min(at, w.nextEnd))
		w.now = at
		if at >= w.nextEnd {
			w.through()
		}
		for e, ok := w.agenda.due(at); ok && w.broken == nil; e, ok = w.agenda.due(at) {
			w.meet(e)
		}
		if at == w.beat && w.broken == nil {
			if w.onBeat(); w.stopping && w.empty() {
				return nil
			}
		}
		if w.stats.beats%8192 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if w.now > clock.Mono(w.sc.length+drainLimit) {
			w.book.fail(w.stuck(), "%d records, %d waiting, %d active, %d responses, %d and %d held, a day after the last download began (D-2.13); busy: %s",
				w.machine.Counts().Sessions, len(w.book.waiting), len(w.book.active), len(w.open), w.holding, w.atDoor, w.busy())
		}
	}
	return w.broken
}

// empty reports whether the machine is, and every client is done.
func (w *world) empty() bool {
	if w.machine == nil || w.machine.Counts().Sessions > 0 || len(w.open) > 0 {
		return false
	}
	for _, c := range w.clients {
		if c.stage != idle {
			return false
		}
	}
	w.book.compare()
	return w.holding == 0 && w.atDoor == 0
}

// busy names the clients that are not done.
func (w *world) busy() (names string) {
	for _, c := range w.clients {
		if c.stage != idle {
			names += fmt.Sprintf("client %d in stage %d with %d parts; ", c.number, c.stage, len(c.parts))
		}
	}
	return names
}

// onBeat tells the machine what flowed in half a second and, as a rule, lets it tick.
func (w *world) onBeat() {
	w.beat = w.beat.Add(session.TickEvery)
	w.stats.beats++
	if w.machine == nil || w.frozen {
		return
	}
	for _, b := range w.open {
		w.tell(b)
	}
	if w.sc.slow && w.stats.beats/2000%3 == 0 {
		w.tickGap = time.Duration(1+w.stats.beats/2000%5) * session.TickEvery // a busy server for a quarter of an hour
	} else {
		w.tickGap = session.TickEvery
	}
	if w.now.Sub(w.ticked) < w.tickGap {
		return
	}
	late := w.now.Sub(w.ticked) - session.TickEvery
	if w.ticked == 0 || w.book.lastTick == 0 {
		late = 0
	}
	w.ticked = w.now
	w.ticks++
	w.stats.Time += min(w.tickGap, late+session.TickEvery)
	if len(w.book.waiting) > 0 {
		w.stats.Waiting += min(w.tickGap, late+session.TickEvery)
	}
	now := w.mono()
	w.book.slept(now, late)
	effects, _ := w.machine.Tick(now)
	w.resized()
	w.book.follow(now, effects, true)
	w.act(effects)
	w.book.ticked(now)
	w.boundaries()
}

// resized follows seats that the machine sets by the use of the link.
func (w *world) resized() {
	if w.policy.AutoMax == 0 {
		return
	}
	old := w.policy
	if w.policy = w.machine.Policy(); w.policy.Sessions == old.Sessions {
		return
	}
	if n := w.policy.Sessions; n < old.AutoMin || n > old.AutoMax {
		w.book.fail(session.Key{}, "%d seats by the use of the link, allowed are %d to %d", n, old.AutoMin, old.AutoMax)
	}
	w.book.fresh()
	w.noteAll("the use of the link: {a} seats", int64(w.policy.Sessions), 0)
}

// meet handles what is due.
func (w *world) meet(e entry) {
	c := e.client
	if c != nil && e.what != resumes && e.what != cuts && e.turn != c.turn {
		return
	}
	switch e.what {
	case asks:
		w.request(c)
	case holdEnds:
		w.unhold(c)
		w.ask(c, false)
	case wakes:
		if c.stage == held {
			w.unhold(c)
			w.ask(c, true)
		}
	case hangsUp:
		w.unhold(c)
		w.gone(c, "hangs up while its request is held")
	case resumes:
		if !e.body.closed {
			e.body.stalled, w.rates = false, false
			e.body.sent, e.body.since = e.body.upTo(w.now), w.now
			w.note(c, "reads on")
		}
	case cuts:
		if !e.body.closed {
			w.cut(e.body, "the server closes a response that stalled")
		}
	case begins:
		w.begin(c)
	default:
		w.trouble(e.what)
	}
}

// note adds to the story.
func (w *world) note(c *client, what string) { w.story.note(w.now, c, c.key, what, 0, 0) }

// noteAll adds something of the whole server.
func (w *world) noteAll(what string, a, b int64) {
	w.story.note(w.now, nil, session.Key{}, what, a, b)
}

// stuck is the download of the first client that is not done.
func (w *world) stuck() session.Key {
	for _, c := range w.clients {
		if c.stage != idle {
			return c.key
		}
	}
	return session.Key{}
}

// ages notes an aging time that comes into force.
func (w *world) ages(a time.Duration) {
	if a > 0 && (w.aging == 0 || a < w.aging) {
		w.aging = a
	}
}
