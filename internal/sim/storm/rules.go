package storm

import (
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
)

// bucket is how exactly deadlines are looked at.
const bucket = session.TickEvery

// follow moves the book by what the machine decided, and checks each decision.
func (b *book) follow(now clock.Mono, effects []session.Effect, tick bool) {
	for i := range effects {
		e := &effects[i]
		r := b.records[e.Key]
		if r == nil {
			b.fail(e.Key, "the machine decided about a session that nobody asked for")
			return
		}
		b.decision(now, r, e, tick)
	}
	b.compare()
}

func (b *book) decision(now clock.Mono, r *record, e *session.Effect, tick bool) {
	w := b.w
	switch e.Kind {
	case session.Serve:
		if !r.served() {
			b.fail(r.key, "a session without a seat is served")
		}
		r.running++
		b.open++
		if r.running > w.policy.RangesPerSession && !w.ranges {
			b.fail(r.key, "%d responses of a session are open at once, allowed are %d (D-2.10)", r.running, w.policy.RangesPerSession)
		}
	case session.Surplus:
		if !r.served() || r.running < w.policy.RangesPerSession && !w.machine.Yielding(r.key) && !r.flagged {
			b.fail(r.key, "a range of an active session is refused with %d of %d open", r.running, w.policy.RangesPerSession)
		}
	case session.Refuse:
		b.refused(now, r, e)
	case session.Started:
		b.started(now, r, e)
	case session.Finished:
		b.bury(now, r)
		w.stats.Finished++
	case session.Paused:
		b.pausedOne(now, r)
	case session.MovedAside:
		b.movedAside(r)
	case session.NoShow:
		w.stats.NoShows++
		switch {
		case r.standing != waiting || len(r.holders) > 0:
			b.fail(r.key, "a session is dropped as a no-show that does not wait, or is held")
		case now < r.deadline || now < b.grace:
			b.fail(r.key, "a no-show %s before its check time and slack are over (D-2.11)", max(r.deadline, b.grace).Sub(now))
		}
		b.bury(now, r)
	case session.Forgot:
		if r.standing != paused || now < r.deadline {
			b.fail(r.key, "a paused session is forgotten %s early (D-2.8)", r.deadline.Sub(now))
		}
		b.leave(r)
		b.open -= r.running
		r.running = 0
		r.standing, r.arrival = unknown, unknownArrival
	case session.Yielded:
		b.yielded(now, r, tick)
	}
}

func (b *book) refused(now clock.Mono, r *record, e *session.Effect) {
	p := &b.w.policy
	b.w.stats.Refused++
	if e.RetryAfter <= 0 {
		b.fail(r.key, "a refusal without a time to come back")
	}
	b.exhumed = b.exhumed || e.Bound == "sessions"
	if b.w.stats.Refused%16 != 1 {
		return // what follows looks at every record
	}
	if e.Bound == "principal" {
		n := 0
		for _, o := range b.records {
			if o.principal == r.principal && (o.standing == waiting || o.served() || o.standing == paused) {
				n++
			}
		}
		if n < p.MaxPerPrincipal {
			b.fail(r.key, "a principal is refused its %d-th session, allowed are %d (D-7.1)", n+1, p.MaxPerPrincipal)
		}
		return
	}
	if n := b.w.machine.Counts().Sessions; n < p.MaxSessions {
		b.fail(r.key, "a session is refused with %d of %d there (D-7.1)", n, p.MaxSessions)
	}
	tombs := 0
	for _, o := range b.records {
		if o.standing == ended && o.running == 0 && now < o.deadline {
			tombs++
		}
	}
	tombs += b.asides[0] + b.asides[1] + b.asides[2] + b.asides[3]
	if live := len(b.waiting) + len(b.active) + b.idle[0] + b.idle[1] + b.idle[2] + b.idle[3]; live+tombs < p.MaxSessions {
		b.fail(r.key, "a session is refused with %d there and %d tombstones, allowed are %d (D-7.1)", live, tombs, p.MaxSessions)
	}
}

// started checks that the seat was free for this one, and that nobody was there who should have had it (D-2.12).
func (b *book) started(now clock.Mono, r *record, e *session.Effect) {
	w := b.w
	switch {
	case r.standing != waiting:
		b.fail(r.key, "a session starts that does not wait")
		return
	case !b.seatFor(r.class):
		b.fail(r.key, "a session of class %s starts with %v seats taken of %d, reserve %d (D-4.2)", r.class, b.seats, w.policy.Sessions, w.policy.Reserve)
	case !b.admits(r.class):
		b.fail(r.key, "a session of class %s starts outside its window (D-5.2)", r.class)
	case now < b.settle:
		b.fail(r.key, "a seat is given while the server settles (D-2.12)")
	case r.owes && r.heads.wait():
		b.fail(r.key, "who yielded takes a seat while the one it yielded to waits (D-4.5)")
	}
	w.stats.started(e)
	b.inOrder(now, r)
	b.turns.started(b, now, r)
	b.overtakes(now, r)
	b.move(r, active)
	r.owes = false
	r.since, r.lastByte = now, now
}

// inOrder: of one principal's sessions in a class, none starts while an older one is there, its request held since
// before the last tick (D-3.1). The aged stand in an order of their own.
func (b *book) inOrder(now clock.Mono, r *record) {
	if b.w.policy.Strategy != session.Ordered || r.arrival == unknownArrival || b.aged(now, r) || b.changed >= b.lastTick {
		return // seats that the operator opens are offered at the next tick; until then those who ask and are called have them
	}
	for _, o := range b.waiting {
		if o.principal == r.principal && o.class == r.class && o.arrival != unknownArrival && o.arrival.Add(time.Millisecond) < r.arrival &&
			len(o.holders) > 0 && o.heldAt < b.lastTick && o.since < b.lastTick && !o.owes && !b.aged(now, o) {
			b.fail(r.key, "a session starts before an older one of its principal (download %x) that is at the door (D-3.1)", o.key[:3])
		}
	}
}

func (b *book) pausedOne(now clock.Mono, r *record) {
	limit := b.w.policy.Idle
	if r.tail && r.running == 0 {
		limit = min(limit, session.TailHold)
	}
	if !r.served() || now.Sub(r.lastByte) < limit {
		b.fail(r.key, "a seat is taken for idleness after %s of %s (D-2.8)", now.Sub(r.lastByte), limit)
	}
	b.move(r, paused)
	r.deadline = now.Add(session.KeepPaused)
	b.w.stats.Paused++
}

// movedAside: only a slow reader loses its seat for being slow, and only to somebody who waits.
func (b *book) movedAside(r *record) {
	b.w.stats.Aside++
	if r.standing != active || b.w.policy.MinRate == 0 || !r.slow {
		b.fail(r.key, "a session moves aside that is not slow")
	}
	if len(b.waiting) == 0 {
		b.fail(r.key, "a session moves aside though nobody waits")
	}
	b.move(r, aside)
}

// yielded checks who lost a seat, and whether somebody waits for it (D-4.5).
func (b *book) yielded(now clock.Mono, r *record, tick bool) {
	b.w.stats.Yielded++
	switch {
	case r.standing != active:
		b.fail(r.key, "a session yields that has no seat")
	case r.running > 0:
		b.fail(r.key, "a session yields in the middle of a range (D-4.5)")
	case !r.flagged && !tick:
		b.fail(r.key, "a session yields that was not asked to at a tick (D-4.5)")
	case !r.flagged:
		b.w.flags++
		b.mayFlag(now, r)
	}
	if n := len(b.active); n > b.w.policy.Sessions {
		b.fail(r.key, "a session yields a seat that is nobody's: %d taken of %d (D-4.5, D-9.3)", n, b.w.policy.Sessions)
	}
	if r.heads = b.claimants(r, false); len(r.heads) == 0 {
		b.fail(r.key, "a session yields though nobody waits for its seat (D-4.5)")
	}
	b.enqueue(now, r)
	r.arrival, r.owes = now, true
}

// mayFlag checks whose seat the machine wants back.
func (b *book) mayFlag(now clock.Mono, r *record) {
	switch {
	case !r.identified:
		b.fail(r.key, "a client without an id is asked for its seat (D-4.5)")
	case now.Sub(r.since) < session.Tenure:
		b.fail(r.key, "a seat held for %s is asked back (D-4.5)", now.Sub(r.since))
	case !b.w.policy.Preempt:
		b.fail(r.key, "a seat is asked back though preemption is off (D-4.5)")
	case len(b.claimants(r, true)) == 0:
		b.fail(r.key, "a seat is asked back though nobody waits who may have it (D-4.5)")
	}
}

// claimant is a session that waited since an instant.
type claimant struct {
	record *record
	since  clock.Mono
}

type claimants []claimant

// wait reports whether all of them wait yet: then the head that a seat was yielded to does.
func (all claimants) wait() bool {
	for _, c := range all {
		if c.record.standing != waiting || c.record.since != c.since {
			return false
		}
	}
	return true
}

// claimants are those waiting who may take this one's seat: of a higher class, or under their share while this one's
// principal is over its own; their window open, the seat theirs by the reserve, and, when full is asked, no other free
// for them (D-4.5).
func (b *book) claimants(r *record, full bool) (all claimants) {
	p := &b.w.policy
	over := b.holds[r.principal] > p.PerPrincipal
	below := b.seats[1] + b.seats[2] + b.seats[3]
	for _, o := range b.waiting {
		reserved := o.class != 0 && (r.class == 0 || below > p.Sessions-p.Reserve)
		if reserved || !b.admits(o.class) || full && b.seatFor(o.class) {
			continue
		}
		if o.class < r.class || o.class == r.class && over && b.under(o.principal) {
			all = append(all, claimant{o, o.since})
		}
	}
	return all
}

// compare holds the machine's own counts against the book's (D-2.13).
func (b *book) compare() {
	c := b.w.machine.Counts()
	b.exhumed = b.exhumed || c.Sessions >= b.w.policy.MaxSessions
	if c.Responses != b.open {
		b.fail(session.Key{}, "the machine counts %d responses, its effects %d (D-2.13)", c.Responses, b.open)
	}
	for i := range c.Classes {
		n := &c.Classes[i]
		if n.Waiting != b.lines[i] || n.Active != b.seats[i] || n.Paused != b.idle[i] || n.Aside != b.asides[i] || n.Held != b.held[i] {
			b.fail(session.Key{}, "class %s: the machine counts %d waiting, %d active, %d paused, %d aside, %d held; its effects say %d, %d, %d, %d, %d (D-2.13)",
				class.Class(i), n.Waiting, n.Active, n.Paused, n.Aside, n.Held, b.lines[i], b.seats[i], b.idle[i], b.asides[i], b.held[i])
		}
		if n.WaitingBytes < 0 || n.Waiting == 0 && n.WaitingBytes != 0 {
			b.fail(session.Key{}, "class %s: %d wait for %d bytes (D-2.13)", class.Class(i), n.Waiting, n.WaitingBytes)
		}
	}
}

// told checks an answer to a client that waits.
func (b *book) told(now clock.Mono, r *record, e session.Estimate) {
	if r.arrival != unknownArrival && e.Arrival != wholeMillis(r.arrival) {
		b.fail(r.key, "arrived at %s, is told %s (D-8.2)", time.Duration(r.arrival), time.Duration(e.Arrival))
	}
	r.arrival = e.Arrival
	if e.Known && (e.Earliest > e.Start || e.Start > e.Latest || e.Earliest < now || e.Position < 1 || e.Position > len(b.waiting)) {
		b.fail(r.key, "is told %+v with %d waiting (D-6.1)", e, len(b.waiting))
	}
	most := session.MaxCheck
	if b.w.policy.PollBudget > 0 {
		most = session.MaxStretched
	}
	if in := e.Check.Sub(now); in < time.Second || in > most*11/10 {
		b.fail(r.key, "is to ask again in %s (D-6.2)", e.Check.Sub(now))
	}
	r.deadline = e.Check.Add(session.NoShowSlack)
	b.starves(now, r, e.Called)
}

// wholeMillis is an instant as the order of the queue keeps it.
func wholeMillis(m clock.Mono) clock.Mono { return m / 1e6 * 1e6 }
