package storm

import (
	"math"
	"time"

	"github.com/roadstead/roadstead/internal/core/session"
)

// serve opens a response.
func (w *world) serve(c *client, r *record) {
	p := c.parts[0]
	c.parts = c.parts[1:]
	c.stage = reading
	r.slow = r.slow || c.crawls
	b := &response{client: c, session: r, span: p, since: w.now, endsAt: p.to}
	if at := p.from + c.strikes; (c.fate == leavesFile || c.fate == stalls) && at < p.to {
		b.endsAt, b.strikes = at, true
	}
	c.open = append(c.open, b)
	w.open = append(w.open, b)
	w.rates = false
	if e, _ := w.machine.Estimate(w.mono(), c.key); !c.stock {
		c.ticket = place{w.base.Add(time.Duration(e.Arrival)), w.wall()}
	}
	w.story.note(w.now, c, c.key, "is sent bytes {a} to {b}", p.from, p.to)
	if len(c.parts) > 0 && len(c.open) < c.lanes {
		w.plan(asks, c, w.sc.latency)
	}
}

// share splits the link between the principals that read, then between a principal's responses, as the governor does.
func (w *world) share() {
	if w.rates {
		return
	}
	w.rates = true
	clear(w.flows)
	readers := 0
	for _, b := range w.open {
		b.sent, b.since, b.rate = b.upTo(w.now), w.now, 0
		if !b.stalled {
			if w.flows[b.client.principal]++; w.flows[b.client.principal] == 1 {
				readers++
			}
		}
	}
	w.nextEnd = math.MaxInt64
	if readers == 0 || w.frozen || w.machine == nil {
		return
	}
	each := float64(w.sc.link) / float64(readers)
	for _, b := range w.open {
		if b.stalled {
			continue
		}
		b.rate = each / float64(w.flows[b.client.principal])
		if least := float64(w.policy.MinRate); b.client.crawls && least > 0 {
			b.rate = min(b.rate, max(least/8, 1))
		}
		left := (float64(b.endsAt-b.span.from) - b.sent) / b.rate * 1e9
		w.nextEnd = min(w.nextEnd, w.now.Add(time.Duration(math.Ceil(max(left, 0)))))
	}
}

// tell reports the bytes of a response that the machine does not know of yet.
func (w *world) tell(b *response) {
	n := int64(b.upTo(w.now)+0.5) - b.told
	if n <= 0 {
		return
	}
	b.told += n
	now := w.mono()
	if b.session.served() {
		b.session.lastByte = now
	}
	e := session.Event{Kind: session.Progress, Key: b.session.key, Bytes: n}
	if !b.client.crawls {
		e.Paced = now.Sub(b.session.paced) // the link holds it back, not its reader
	}
	b.session.paced = now
	if effects := w.machine.Apply(now, e); len(effects) > 0 {
		w.book.follow(now, effects, false)
		w.act(effects)
	}
}

// through ends the responses that sent all they should at this instant.
func (w *world) through() {
	w.rates = false
	for i := 0; i < len(w.open) && w.broken == nil; {
		b := w.open[i]
		if b.stalled || float64(b.endsAt-b.span.from)-b.upTo(w.now) >= 1 {
			i++
			continue
		}
		w.tell(b)
		switch {
		case !b.strikes:
			w.finish(b, b.span.from, b.endsAt)
		case b.client.fate == leavesFile:
			w.note(b.client, "stops reading for good")
			b.client.whole = false
			b.stalled, b.endsAt = true, b.span.to
			i++
		default:
			w.stall(b)
			i++
		}
	}
}

// stall stops a response for a while; the server may close it meanwhile.
func (w *world) stall(b *response) {
	c := b.client
	silence := 2*time.Second + time.Duration(w.r.Int64N(int64(3*time.Minute)))
	w.story.note(w.now, c, c.key, "stops reading for {time}", int64(silence), 0)
	b.stalled, b.strikes, b.endsAt = true, false, b.span.to
	b.sent, b.since, b.rate = b.upTo(w.now), w.now, 0
	c.whole, c.fate = false, finishes
	w.agenda.plan(entry{at: w.now.Add(silence), what: resumes, client: c, body: b})
}

// drop takes a response off the lists.
func (w *world) drop(b *response) {
	out := func(list []*response) []*response {
		for i, o := range list {
			if o == b {
				return append(list[:i], list[i+1:]...)
			}
		}
		return list
	}
	w.open, b.client.open = out(w.open), out(b.client.open)
	b.closed, w.rates = true, false
}

// finish ends a response delivered up to a byte. A liar's span is not what it was.
func (w *world) finish(b *response, from, to int64) {
	c := b.client
	w.drop(b)
	if to < b.span.to {
		c.parts = append([]span{{to, b.span.to, b.span.tail}}, c.parts...)
	}
	w.story.note(w.now, c, c.key, "was sent {a} to {b} whole", from, to)
	if c.liar {
		c.whole = false
		shift := w.r.Int64N(2*rangeBytes) - rangeBytes
		switch w.r.IntN(4) {
		case 0:
			from += shift
		case 1:
			to += shift
		case 2:
			from /= 2
		case 3:
			from, to = to, from
		}
	}
	through := w.close(b, from, to)
	if w.broken != nil {
		return
	}
	if len(c.parts) == 0 && len(c.open) == 0 {
		if c.whole && !through && c.lanes == 1 && c.twin == nil && !w.twinned(c) {
			w.book.fail(c.key, "the last byte was delivered and the seat is still taken (D-2.7)")
		}
		w.done(c)
		return
	}
	if c.stage == reading && len(c.parts) > 0 {
		w.plan(asks, c, w.sc.latency)
	}
}

// close tells the machine of a response's end; it says whether that ended the session.
func (w *world) close(b *response, from, to int64) (through bool) {
	r := b.session
	if w.book.of(r.key) != r {
		return false // it was open under an earlier process
	}
	if r.running > 0 {
		r.running--
		w.book.open--
	}
	w.apply(session.Event{Kind: session.Finish, Key: r.key, From: from, To: to})
	w.wake(r)
	return r.standing == ended
}

// cut ends a response that was not sent whole: the ranges before its last boundary were, for a client that asks in
// ranges; nothing was for a tool that asked for the file in one.
func (w *world) cut(b *response, why string) {
	c := b.client
	at := b.span.from + (b.told / rangeBytes * rangeBytes)
	if c.stock {
		at = b.span.from
	}
	w.note(c, why)
	w.drop(b)
	c.parts = append([]span{{at, b.span.to, b.span.tail}}, c.parts...)
	c.whole = false
	w.close(b, b.span.from, at)
	if w.broken != nil {
		return
	}
	if c.fate == leavesFile {
		if len(c.open) == 0 {
			w.gone(c, "never came back")
		}
		return
	}
	if c.stage == reading {
		w.plan(asks, c, time.Second+time.Duration(w.r.Int64N(int64(90*time.Second))))
	}
}

// boundaries lets the responses of sessions that must yield end on their next range boundary (D-4.5).
func (w *world) boundaries() {
	for _, r := range w.book.active {
		if !r.flagged {
			continue
		}
		for _, b := range w.open {
			if b.session != r || b.strikes {
				continue
			}
			sent := int64(b.upTo(w.now))
			to := (b.span.from + sent + rangeBytes) / rangeBytes * rangeBytes
			if to < b.endsAt {
				b.endsAt, w.rates = to, false
			}
		}
	}
}

// lose breaks every connection, as the death of the process does.
func (w *world) lose() {
	for _, b := range w.open {
		c := b.client
		at := b.span.from + (b.told / rangeBytes * rangeBytes)
		if c.stock {
			at = b.span.from
		}
		b.closed = true
		c.parts = append([]span{{at, b.span.to, b.span.tail}}, c.parts...)
		c.whole = false
	}
	w.open, w.rates, w.holding, w.atDoor = w.open[:0], false, 0, 0
	for _, c := range w.clients {
		had := c.stage == reading || c.stage == held
		c.open, c.door = c.open[:0], false
		switch {
		case !had:
		case c.fate == leavesFile && c.stage == reading:
			w.gone(c, "never came back")
		default:
			w.lost(c)
		}
	}
}
