package storm

import (
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
)

// How the shell treats requests (D-2.4): a stock tool is held, and a called client waits at the door.
const (
	holdFor  = 20 * time.Second
	holdsMax = 64
)

// boot starts a process. When downloads were waiting as the last one ended, it settles first (D-2.12).
func (w *world) boot(waiters bool) error {
	w.policy = w.set
	m, err := session.New(w.policy, w.sc.seed)
	if err != nil {
		return err
	}
	w.machine, w.born, w.base, w.frozen = m, w.now, w.wall(), false
	w.book = newBook(w, w.sc.principals)
	w.ticked, w.aging = w.now, w.policy.Aging
	if waiters {
		m.Settle(clock.Mono(session.SettleFor))
		w.book.settle, w.book.narrow = clock.Mono(session.SettleFor), clock.Mono(session.SettleFor+4*time.Second)
	}
	for c := range w.windows {
		w.tellWindow(class.Class(c))
	}
	return nil
}

func (w *world) tellWindow(c class.Class) {
	o := w.windows[c]
	var changes []clock.Mono
	if o.changes > w.now {
		changes = append(changes, o.changes-w.born)
	}
	w.machine.SetWindow(w.mono(), c, !o.shut, o.outside, changes)
}

// apply hands the machine an event and takes in what it decided; the answer is what it says of the event's own key.
func (w *world) apply(e session.Event) (answer session.Effect) {
	now := w.mono()
	b := w.book
	effects := w.machine.Apply(now, e)
	if e.Kind == session.Request {
		answers := 0
		for _, f := range effects {
			if f.Key == e.Key && f.Kind <= session.Refuse {
				answer = f
				answers++
			}
		}
		if answers != 1 {
			b.fail(e.Key, "a request got %d answers", answers)
			return answer
		}
		w.prepare(now, e, answer)
	}
	b.follow(now, effects, false)
	w.act(effects)
	return answer
}

// prepare moves the book as far as a request moves a session before anything is decided.
func (w *world) prepare(now clock.Mono, e session.Event, answer session.Effect) {
	b := w.book
	r := b.of(e.Key)
	switch {
	case answer.Kind == session.Refuse:
	case r.standing == unknown || r.standing == ended:
		b.admitted(now, r, e)
	case r.standing == paused:
		b.enqueue(now, r)
	case r.standing == waiting:
		r.deadline = now.Add(session.MinCheck + session.NoShowSlack)
	}
	if answer.Kind == session.Serve && !e.Tail {
		r.tail = false
	}
}

// act follows decisions that concern the shell.
func (w *world) act(effects []session.Effect) {
	for i := range effects {
		f := &effects[i]
		r := w.book.of(f.Key)
		if r == nil {
			return
		}
		if f.Kind > session.Refuse {
			w.story.note(w.now, r.client, f.Key, effectWords[f.Kind], int64(f.Waited), 0)
		}
		switch f.Kind {
		case session.Seated, session.Finished:
			w.wake(r)
		case session.Paused:
			w.wake(r)
			for _, o := range w.open {
				if o.session == r {
					w.agenda.plan(entry{at: w.now.Add(time.Duration(w.r.Int64N(int64(20 * time.Second)))), what: cuts, client: o.client, body: o})
				}
			}
		}
	}
}

var effectWords = [...]string{
	session.Seated: "is called to the seat it got while held", session.Started: "takes a seat after {time}", session.Finished: "is through and gives its seat back",
	session.Paused: "idled its seat away", session.NoShow: "is dropped as a no-show", session.Forgot: "is forgotten after its pause",
	session.Yielded: "yields its seat", session.MovedAside: "is slow and reads on without its seat",
}

func (w *world) wake(r *record) {
	for _, c := range r.holders {
		w.plan(wakes, c, 0)
	}
}

// request is a client's request on its way: it may be lost, or find no server.
func (w *world) request(c *client) {
	if w.machine == nil || w.frozen || w.r.Float64() < w.sc.lost/2 {
		w.lost(c)
		return
	}
	w.ask(c, true)
}

// lost is a request or an answer that did not come through: the client tries again, later each time (D-1.2).
func (w *world) lost(c *client) {
	w.note(c, "reaches nobody")
	c.whole = false
	back := min(time.Second<<min(c.retries, 6), time.Minute)
	c.retries++
	c.stage = away
	w.plan(asks, c, back/2+time.Duration(w.r.Int64N(int64(back/2)+1)))
}

// ask puts a client's request to the machine, as the shell does.
func (w *world) ask(c *client, mayHold bool) {
	w.stats.Requests++
	e := c.ask()
	now := w.mono()
	r := w.book.request(now, c, e)
	if s := r.standing; (s == unknown || s == ended) && !c.ticket.issued.IsZero() {
		signed := w.signer.Sign(c.key, c.ticket.arrival, c.ticket.issued)
		if arrival, ok := w.signer.Verify(signed, c.key, w.wall()); ok {
			e.Ticketed, e.Arrival = true, clock.Mono(arrival.Sub(w.base))
		}
	}
	answer := w.apply(e)
	if w.broken != nil {
		return
	}
	c.retries = 0
	switch answer.Kind {
	case session.Serve:
		w.serve(c, r)
		return
	case session.Refuse:
		w.note(c, "is refused: a bound is reached")
		w.comeBack(c, answer.RetryAfter)
		return
	}
	if mayHold && w.hold(c, r, answer) {
		return
	}
	if answer.Kind == session.Surplus {
		w.surplus(c, answer.RetryAfter)
		return
	}
	w.answer(c, r)
}

// hold keeps the request open if it may be.
func (w *world) hold(c *client, r *record, answer session.Effect) bool {
	most := holdFor
	if c.stock {
		if w.holding >= holdsMax {
			return false
		}
		w.holding++
	} else {
		est, waits := w.machine.Estimate(w.mono(), c.key)
		if answer.Kind != session.Wait || !waits || !est.Called || w.atDoor >= max(2*w.policy.Sessions, 16) {
			return false
		}
		w.atDoor++
		most = session.Door
	}
	c.stage, c.door = held, !c.stock
	if len(r.holders) == 0 {
		r.heldAt = w.mono()
	}
	r.holders = append(r.holders, c)
	if r.standing == waiting {
		w.book.held[r.class]++
	}
	w.apply(session.Event{Kind: session.Hold, Key: c.key})
	if c.fate == leavesQueue && w.r.IntN(8) == 0 {
		w.plan(hangsUp, c, time.Duration(w.r.Int64N(int64(most))))
		return true
	}
	w.plan(holdEnds, c, most)
	return true
}

// unhold ends a client's hold.
func (w *world) unhold(c *client) {
	r := w.book.of(c.key)
	for i, o := range r.holders {
		if o == c {
			r.holders = append(r.holders[:i], r.holders[i+1:]...)
			break
		}
	}
	if c.door {
		w.atDoor--
	} else {
		w.holding--
	}
	c.stage, c.door = away, false
	if r.standing == waiting {
		w.book.held[r.class]--
		r.deadline = w.mono().Add(session.MinCheck + session.NoShowSlack)
	}
	w.apply(session.Event{Kind: session.Unhold, Key: c.key})
}

// answer tells a waiting client its place, and a new ticket.
func (w *world) answer(c *client, r *record) {
	now := w.mono()
	e, ok := w.machine.Answer(now, c.key)
	if !ok {
		b := w.book
		b.fail(c.key, "a session that was told to wait has no estimate")
		return
	}
	w.book.told(now, r, e)
	if w.r.Float64() < w.sc.lost/2 {
		w.lost(c)
		return
	}
	c.ticket = place{w.base.Add(time.Duration(e.Arrival)), w.wall()}
	w.story.note(w.now, c, c.key, waits, int64(e.Check.Sub(now)), int64(e.Position))
	if c.fate == leavesQueue {
		if c.patient--; c.patient <= 0 {
			if c.cancels && c.twin == nil {
				w.cancel(c)
			}
			w.gone(c, "stops asking")
			return
		}
	}
	w.comeBack(c, e.Check.Sub(now))
}

func (w *world) cancel(c *client) {
	now := w.mono()
	r := w.book.of(c.key)
	if r.standing != unknown && r.standing != ended && len(r.holders) == 0 {
		w.note(c, "cancels")
		w.book.bury(now, r)
		w.apply(session.Event{Kind: session.Cancel, Key: c.key})
	}
}

// comeBack plans the next request.
func (w *world) comeBack(c *client, told time.Duration) {
	c.stage = away
	wait := c.wait(told, w.r) + w.sc.latency
	if w.sc.lazy > 0 {
		wait += time.Duration(w.r.Int64N(int64(w.sc.lazy)))
	}
	if w.r.Float64() < w.sc.late {
		wait += time.Duration(w.r.Int64N(int64(2 * time.Minute)))
	}
	w.plan(asks, c, wait)
}

// surplus is a range too many: its place is kept.
func (w *world) surplus(c *client, told time.Duration) {
	w.note(c, "has too many ranges open")
	if len(c.open) == 0 {
		c.stage = away
	}
	w.plan(asks, c, c.wait(told, w.r)+w.sc.latency)
}
