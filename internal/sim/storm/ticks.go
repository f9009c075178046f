package storm

import (
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
)

// slept is told before a tick that comes late: a server that stood still heard nobody and sent nothing, so nobody is
// dropped or loses a seat for it until those who tried meanwhile had time to try again (D-7.3).
func (b *book) slept(now clock.Mono, late time.Duration) {
	if late <= session.LateTick {
		return
	}
	b.grace = now.Add(session.WakeGrace)
	for _, r := range b.records {
		if r.served() {
			r.lastByte = min(now, r.lastByte.Add(late))
		}
	}
}

// ticked holds what must be true once a tick is over.
func (b *book) ticked(now clock.Mono) {
	w := b.w
	flags := w.flags
	for _, r := range b.active {
		asked := w.machine.Yielding(r.key)
		if asked && !r.flagged {
			flags++
			b.mayFlag(now, r)
		}
		r.flagged = asked
		if idle := now.Sub(r.lastByte); idle >= w.policy.Idle && b.w.broken == nil {
			b.fail(r.key, "keeps its seat after %s without a byte, allowed are %s (D-2.8)", idle, w.policy.Idle)
		}
	}
	if flags > 1 {
		b.fail(session.Key{}, "%d seats are asked back in one tick (D-4.5)", flags)
	}
	w.flags = 0
	b.vacancies(now)
	b.lastTick = now
	if w.ticks%64 == 0 {
		b.overdue(now)
	}
	if w.ticks%4096 == 0 {
		b.forget(now)
	}
}

// overdue: who stayed away past check time and slack is gone, and so is a pause past its time.
func (b *book) overdue(now clock.Mono) {
	slack := 2*bucket + 2*b.w.tickGap
	for _, r := range b.waiting {
		if len(r.holders) == 0 && now > max(r.deadline, b.grace).Add(slack) {
			b.fail(r.key, "still waits %s after its check time and slack (D-2.11)", now.Sub(r.deadline))
		}
	}
	for _, r := range b.records {
		if r.standing == paused && now > max(r.deadline, b.grace).Add(slack) {
			b.fail(r.key, "is still paused %s after its time (D-2.8)", now.Sub(r.deadline))
		}
	}
}

// vacancies: no seat stands free while somebody who may have it is at the door, but for two ticks and the time the
// offer takes to widen past those who are away: two of them a tick, or one when its principal has its share, because
// each of the others stands for two calls then (D-2.12, D-4.4).
func (b *book) vacancies(now clock.Mono) {
	for _, r := range b.waiting {
		if len(r.holders) == 0 || !b.admits(r.class) || r.owes || now < b.narrow || !b.seatFor(r.class) {
			r.ready = 0
			continue
		}
		most := 3 + len(b.waiting)/2
		if !b.under(r.principal) {
			most = 4 + len(b.waiting)
		}
		if r.ready++; r.ready > most {
			b.fail(r.key, "a seat stood free for %d ticks while this one was at the door, %d waiting (D-2.12)", r.ready, len(b.waiting))
		}
	}
}

// Starvation. A session that could have a seat is passed by later ones no more than its turns allow. In ordered, with P
// principals and weights w: each of its principal's downloads before it in its class, and itself, costs a round, in which
// every other principal of the class goes once, and one of them may have a turn owed from when it had its share (D-4.4);
// meanwhile class j goes w_j times for each w_c of its own. That makes (own+2) * P * sum(w)/w_c. Of those called at once
// the first to come goes first (D-2.12): twice as many as there are seats; and where requests are lost and clients come
// late, a turn is called in vain as often as not, so that makes twice the number. Age moves a session into a lane that has one
// turn a round for all the aged, oldest first: the same arithmetic, with those before it there in place of own. It holds
// while the principal is under its share, at the offer as well as at the start: one that fills its share with downloads
// of a higher class leaves nothing for its own lower ones.
func (b *book) setBound(r *record) {
	p, sum, turns := &b.w.policy, uint32(0), len(b.holds)
	for _, w := range p.Weights {
		sum += w
	}
	if p.Aging > 0 {
		turns++ // that of the aged
	}
	rounds := func(own int, weight uint32) int { return (own + 2) * turns * int(sum) / int(weight) }
	r.bound = rounds(r.own, p.Weights[r.class]) + 2*p.Sessions
	if p.Aging > 0 {
		for c := 1; c <= int(r.class); c++ {
			r.bound += rounds(len(b.waiting), p.Weights[c])
		}
	}
	if b.w.sc.weather == storm {
		r.bound *= 2
	}
}

// overtakes counts for each who waits and could have had this seat that a later one got it.
func (b *book) overtakes(now clock.Mono, starts *record) {
	for _, r := range b.waiting {
		if r == starts || r.arrival == unknownArrival || starts.arrival == unknownArrival || r.arrival >= starts.arrival {
			continue
		}
		if !b.admits(r.class) || !b.seatFor(r.class) || !b.under(r.principal) || r.owes || now > r.deadline && len(r.holders) == 0 {
			continue
		}
		// a principal's people go before its machines for its last seat (D-4.4)
		own := starts.principal == r.principal && starts.class < r.class && b.holds[r.principal]+1 >= b.w.policy.PerPrincipal
		if !own && !r.skipped {
			r.passed++
		}
		r.skipped = false
	}
}

// starves checks a session that asks and is not called: it was passed by as many as may be.
func (b *book) starves(now clock.Mono, r *record, called bool) {
	if called || b.w.policy.Strategy != session.Ordered {
		return
	}
	r.own = max(r.own, b.queued[r.principal][r.class]-1)
	b.setBound(r)
	if r.passed > r.bound {
		b.fail(r.key, "%d later sessions started since it came %s ago, its turns allow %d (D-3.1)", r.passed, now.Sub(r.since), r.bound)
	}
	b.w.stats.Passed = max(b.w.stats.Passed, float64(r.passed)/float64(r.bound))
}

// fresh begins the counts of turns anew: what an operator changed, changes them.
func (b *book) fresh() {
	b.changed = b.w.mono()
	for _, r := range b.waiting {
		r.passed = 0
	}
	b.turns.reset()
}
