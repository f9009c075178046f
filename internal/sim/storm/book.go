package storm

import (
	"fmt"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
)

// standing is where a session stands as far as the machine's effects tell.
type standing uint8

const (
	unknown standing = iota
	waiting
	active
	paused
	ended // a tombstone
	aside // reads on without a seat, too slowly for one
)

// record is what the book knows of one session. Instants are the process's.
type record struct {
	key        session.Key
	client     *client // who asked last
	principal  int
	class      class.Class
	identified bool
	standing   standing
	at         int // in the list of those waiting or active

	arrival  clock.Mono // -1<<63 while the book cannot know it
	since    clock.Mono // when it came to wait, or took its seat
	deadline clock.Mono // waiting: check time and slack; paused, ended: until when it is kept
	lastByte clock.Mono
	paced    clock.Mono // until here its responses' time is told
	running  int
	holders  []*client
	heldAt   clock.Mono // since when a request of it is held without a break
	tail     bool       // asked for nothing but the tail
	skipped  bool       // its principal had its share when the next seat was offered
	slow     bool       // one who read it was
	flagged  bool       // the machine wants its seat back
	owes     bool       // yielded and did not start since
	heads    claimants  // who may be the one it yielded to
	ready    int        // ticks in a row it could have had a seat that stood free

	passed int // later ones that started while it could have
	bound  int
	own    int
}

const unknownArrival = clock.Mono(-1 << 63)

// book follows every session by the effects alone and holds the machine to the rules after each call.
type book struct {
	w       *world
	records map[session.Key]*record
	waiting []*record
	active  []*record
	seats   [class.Count]int
	lines   [class.Count]int
	idle    [class.Count]int // paused
	asides  [class.Count]int
	held    [class.Count]int
	open    int // responses
	holds   []int
	queued  [][class.Count]int // waiting, by principal and class

	lastTick clock.Mono
	changed  clock.Mono // settings or windows, last
	grace    clock.Mono // after a late tick nobody is dropped before it (D-7.3)
	narrow   clock.Mono
	settle   clock.Mono
	exhumed  bool // the bound was reached: tombstones may be gone before their time
	turns    turns
}

func newBook(w *world, principals int) *book {
	return &book{w: w, records: map[session.Key]*record{}, holds: make([]int, principals), queued: make([][class.Count]int, principals), turns: newTurns(principals)}
}

// served reports whether a session's responses may run.
func (r *record) served() bool { return r.standing == active || r.standing == aside }

func (b *book) of(k session.Key) *record { return b.records[k] }

// fail notes the first rule that was broken.
func (b *book) fail(k session.Key, format string, args ...any) {
	if b.w.broken == nil {
		b.w.broken, b.w.victim = fmt.Errorf(format, args...), k
	}
}

// join puts a record into the list of its standing; leave takes it out.
func (b *book) join(r *record, s standing) {
	r.standing = s
	switch s {
	case waiting:
		r.at = len(b.waiting)
		b.waiting = append(b.waiting, r)
		b.lines[r.class]++
		b.held[r.class] += len(r.holders)
		b.queued[r.principal][r.class]++
	case active:
		r.at = len(b.active)
		b.active = append(b.active, r)
		b.seats[r.class]++
		b.holds[r.principal]++
	case aside:
		b.asides[r.class]++
	case paused:
		b.idle[r.class]++
	}
}

func (b *book) leave(r *record) {
	out := func(list []*record) []*record {
		last := len(list) - 1
		list[r.at] = list[last]
		list[r.at].at = r.at
		list[last] = nil
		return list[:last]
	}
	switch r.standing {
	case waiting:
		b.waiting = out(b.waiting)
		b.lines[r.class]--
		b.held[r.class] -= len(r.holders)
		b.queued[r.principal][r.class]--
		b.turns.left(b, r)
	case active:
		b.active = out(b.active)
		b.seats[r.class]--
		b.turns.stood(b, r)
		b.holds[r.principal]--
	case aside:
		b.asides[r.class]--
	case paused:
		b.idle[r.class]--
	}
	r.flagged, r.ready = false, 0
}

func (b *book) move(r *record, s standing) {
	b.leave(r)
	b.join(r, s)
}

// enqueue makes a record wait.
func (b *book) enqueue(now clock.Mono, r *record) {
	b.move(r, waiting)
	r.since, r.passed, r.own = now, 0, b.queued[r.principal][r.class]-1
	r.deadline = now.Add(session.MinCheck + session.NoShowSlack)
	b.setBound(r)
}

// bury is the end of a session, with a tombstone.
func (b *book) bury(now clock.Mono, r *record) {
	b.move(r, ended)
	r.owes, r.deadline = false, now.Add(session.KeepGone)
}

// seatFor reports whether a seat stands free that a class may take (D-4.2).
func (b *book) seatFor(c class.Class) bool {
	p, below := &b.w.policy, 0
	for k := 1; k < class.Count; k++ {
		below += b.seats[k]
	}
	return below+b.seats[0] < p.Sessions && (c == 0 || below < p.Sessions-p.Reserve)
}

func (b *book) admits(c class.Class) bool {
	return !b.w.windows[c].shut || b.w.windows[c].outside
}

func (b *book) under(principal int) bool { return b.holds[principal] < b.w.policy.PerPrincipal }

// aged reports whether a record may have left its class's order by age.
func (b *book) aged(now clock.Mono, r *record) bool {
	return b.w.aging > 0 && r.arrival != unknownArrival && now.Sub(r.arrival) >= b.w.aging
}

// request is told before the machine of who asks, so that effects find a record.
func (b *book) request(now clock.Mono, c *client, e session.Event) *record {
	r := b.records[e.Key]
	if r == nil {
		r = &record{key: e.Key, principal: c.principal, class: e.Class, identified: e.Identified, arrival: unknownArrival, tail: true}
		b.records[e.Key] = r
	}
	r.client = c
	return r
}

// admitted notes the arrival of a session that was not known, or ended, before the request that made it.
func (b *book) admitted(now clock.Mono, r *record, e session.Event) {
	switch {
	case r.standing == ended && (b.exhumed || now > r.deadline.Add(-time.Second)) && e.Ticketed:
		r.arrival = unknownArrival // its tombstone may be gone, and the ticket good
	case r.standing == unknown && e.Ticketed:
		r.arrival = min(e.Arrival, now)
	default:
		r.arrival = now
	}
	r.class, r.identified, r.tail, r.owes = e.Class, e.Identified, true, false
	b.enqueue(now, r)
}

// forget drops records whose tombstone has expired, now and then.
func (b *book) forget(now clock.Mono) {
	for k, r := range b.records {
		gone := r.standing == ended && now > r.deadline.Add(time.Minute)
		if (gone || r.standing == unknown) && r.running == 0 && len(r.holders) == 0 {
			delete(b.records, k)
		}
	}
}
