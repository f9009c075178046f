package main

import "slices"

const (
	machine   = "internal/core/session/"
	fairOrder = "internal/core/fair/"
	shell     = "internal/downloads/"
)

// faults is the list: at least one for every statement of D-2 to D-8 that the core and its shell keep, and for what Runs
// stand on.
func faults() []fault {
	return slices.Concat(sessions(), orders(), shells(), learnt(), runs())
}

// sessions are faults of D-2 in the machine.
func sessions() []fault {
	return []fault{
		{"D-2.1", "a range of an active session asks for its seat again", machine + "request.go", "if r.served() {", "if r.served() && r.running > 0 {", "TestRangesOfASeatPass"},
		{"D-2.7", "a read of the tail sets the start", machine + "coverage.go", "if !tail && (c.start < 0", "if (c.start < 0", "TestCompletion"},
		{"D-2.7", "intervals that touch are not joined", machine + "coverage.go", "c.spans[j].from <= to {", "c.spans[j].from < to {", "TestPiecesThatTouch"},
		{"D-2.7", "a session is through while a response runs", machine + "machine.go", "if r.served() && r.running == 0 && s.covered", "if r.served() && s.covered", "TestPiecesThatTouch"},
		{"D-2.8", "what was delivered is forgotten in a pause", machine + "seats.go", "if r.seat == 0 {\n\t\tm.chair(r)", "if r.seat == 0 || r.has(identified) {\n\t\tm.chair(r)", "TestPauseKeepsPieces"},
		{"D-2.8", "a pause makes the arrival new", machine + "request.go", "m.counts[r.class].Paused--\n", "m.counts[r.class].Paused--\n\tr.order = orderOf(m.ticked, m.sequence)\n", "TestPauseKeepsPieces"},
		{"D-2.9", "a reader of the tail keeps its seat as long as others", machine + "tick.go", "limit = min(limit, TailHold)", "limit = min(limit, m.policy.Idle)", "TestTailReaderLosesItsSeatSoon"},
		{"D-2.10", "one response of a session too many", machine + "request.go", "int(r.running) >= m.policy.RangesPerSession", "int(r.running) > m.policy.RangesPerSession", "TestSurplusRanges"},
		{"D-2.11", "no slack after the check time", machine + "estimate.go", "r.deadline = e.Check.Add(NoShowSlack)", "r.deadline = e.Check", "TestSlackAfterTheCheckTime"},
		{"D-2.12", "a seat is given while the machine settles", machine + "request.go", "if now < m.settle || !m.seatFor", "if !m.seatFor", "TestSettleStartsByArrival"},
		{"D-2.12", "the offer does not widen", machine + "tick.go", "min(m.widen+2*free, offersMost)", "min(m.widen, offersMost)", "TestOfferWidens"},
		{"D-2.12", "who is not called takes a seat", machine + "seats.go", "!r.has(marked) || !m.seatFor", "!m.seatFor", "TestFirstMarkedToArriveTakesTheSeat"},
		{"D-2.13", "a lost decrement of responses", machine + "machine.go", "\t\tr.running--\n\t\tm.responses--\n", "\t\tr.running--\n", "TestEveryPathReturnsToZero"},
		{"D-2.13", "a leaked hold", machine + "principals.go", "\tn.Held -= int(r.held)\n", "", "TestEveryPathReturnsToZero"},
		{"D-2.13", "a cancelled session keeps its seat", machine + "machine.go", "\t\tm.retire(h, r)\n\t\tm.bury(now, h, r)\n\t\tm.vacated(now)\n\tcase paused:", "\t\tm.bury(now, h, r)\n\tcase paused:", "TestEveryPathReturnsToZero"},
	}
}

// orders are faults of D-3 to D-7 in the machine and its bricks.
func orders() []fault {
	return []fault{
		{"D-3.1", "a start uses up no turn", fairOrder + "queue.go", "k.round = max(k.round, l.base)\n\t\tl.base++", "k.round = max(k.round, l.base)", "TestPlaceIsDrainOrder"},
		{"D-3.1", "an older return does not give its principal its place back", fairOrder + "queue.go", "\t\tq.rekey(k, l, at, it.Order)\n", "", "TestOlderReturnBringsItsPrincipalForward"},
		{"D-3.1", "time outside its window ages a session", machine + "aging.go", "now.Sub(r.arrival()) - m.windows[r.class].closedFor(r.arrival(), now)", "now.Sub(r.arrival())", "TestClosedTimeAgesNobody"},
		{"D-3.1", "age lifts above release", machine + "aging.go", "return r.rank > uint8(class.Release)", "return r.rank > uint8(class.Release)-1", "TestStories/aging"},
		{"D-3.2", "smallest first forgets the sizes", fairOrder + "queue.go", "if q.mode == SmallestFirst {\n\t\te.round", "if q.mode != SmallestFirst {\n\t\te.round", "TestSmallestFirst"},
		{"D-3.2", "the aged don't go first among the smallest", machine + "principals.go", "it.Bytes = 0", "it.Bytes = r.left", "TestStories/smallest-first"},
		{"D-4.1", "every class goes as often as any other", fairOrder + "queue.go", "common/uint64(w), 0", "common/uint64(w/w), 0", "TestClassesGoByWeight"},
		{"D-4.2", "the reserve is given away", machine + "principals.go", "free = min(free, m.policy.Sessions-m.policy.Reserve-m.below)", "free = min(free, m.policy.Sessions-m.below)", "TestReserveIsForPeople"},
		{"D-4.2", "classes behind the reserve lose their turns to the heaviest", machine + "principals.go", "\t\t\theld |= 1 << c\n", "", "TestWeightsUnderAReserve"},
		{"D-4.4", "a turn that passed while its principal had its share is lost", machine + "tick.go", "m.queue.PassOver(p.class, p.principal, p.round)", "m.queue.PassOver(p.class, p.principal, p.round+1)", "TestTurnOutlivesAShare"},
		{"D-4.4", "a principal may have one more than its share", machine + "principals.go", "return int(m.principals.all[i].active) < m.policy.PerPrincipal", "return int(m.principals.all[i].active) <= m.policy.PerPrincipal", "TestShareIsExact"},
		{"D-4.5", "a skipped tenure check", machine + "preempt.go", " || now.Sub(s.since) < Tenure", "", "TestStories/preemption"},
		{"D-4.5", "a tool without an id is preempted", machine + "preempt.go", "!r.has(identified) || ", "", "TestStories/preemption-bounds"},
		{"D-4.5", "who yields takes the seat back", machine + "seats.go", "!m.admits(r.class) || m.indebted(h) {", "!m.admits(r.class) {", "TestYielderWaitsForItsHead"},
		{"D-4.5", "two seats are asked back in one tick", machine + "preempt.go", "\t\tm.ripe(now, v)\n\t\treturn\n", "\t\tm.ripe(now, v)\n", "TestOneSeatATick"},
		{"D-5.2", "a closed window stops nobody", machine + "windows.go", "return !m.windows[c].shut || m.windows[c].outside", "return true", "TestStories/windows"},
		{"D-6.1", "the rate is the last of a minute, not the best", "internal/core/forecast/meter.go", "best = max(best, sum)", "best = sum", "TestPeakIsTheBest"},
		{"D-6.2", "a poll budget calls nobody back later", machine + "estimate.go", "min(fair, MaxStretched, wait*3/4)", "min(fair, 0)", "TestCheckTimes"},
		{"D-6.2", "a poll budget keeps a client away past its turn", machine + "estimate.go", "min(fair, MaxStretched, wait*3/4)", "min(fair, MaxStretched)", "TestCheckTimes"},
		{"D-6.3", "the interval that is scored is the last one told", machine + "estimate.go", "e.Known && r.promise.point == 0", "e.Known", "TestFirstPromiseIsScored"},
		{"D-7.1", "one session over the bound", machine + "request.go", "m.index.n >= m.policy.MaxSessions && !m.exhume()", "m.index.n > m.policy.MaxSessions && !m.exhume()", "TestBounds"},
		{"D-7.1", "one session of a principal over its bound", machine + "request.go", "if known && int(m.principals.all[p].records) >= m.policy.MaxPerPrincipal", "if known && int(m.principals.all[p].records) > m.policy.MaxPerPrincipal", "TestBounds"},
		{"D-7.2", "a tick looks at every bucket of the wheel", machine + "wheel.go", "if to-w.at > buckets {", "if to-w.at >= 0 {", "TestTickLooksAtWhatIsDueOnly"},
		{"D-7.3", "a process that stood still drops everybody", machine + "late.go", "m.grace = now.Add(WakeGrace)", "m.grace = now", "TestStandingStillDropsNobody"},
		{"D-8.2", "a ticket overrules a tombstone", machine + "request.go", "back := tomb == 0 && e.Ticketed", "back := e.Ticketed", "TestTicketsAndTombstones"},
		{"D-8.2", "a ticket's arrival is ignored", machine + "request.go", "arrival = min(e.Arrival, now)", "arrival = now", "TestTicketsAndTombstones"},
	}
}

// shells are faults of the shell, the tickets and the governor.
func shells() []fault {
	return []fault{
		{"D-2.2", "the download id is not part of the key", shell + "request.go", `digest("id\x00", r.DownloadID)`, `digest("id\x00", "")`, "TestKeys"},
		{"D-2.3", "an answer without its place", shell + "request.go", "if w.Wait.Position > 0 {", "if w.Wait.Position > 1 {", "TestWaitThenStart"},
		{"D-2.4", "a seat that comes does not wake who is held", shell + "service.go", "if f.Kind == session.Seated || ", "if ", "TestHold"},
		{"D-2.5", "a principal's share of small requests is one more", shell + "small.go", "q.running[principal] < q.conf.ActivePerPrincipal", "q.running[principal] <= q.conf.ActivePerPrincipal", "TestSmallRequests"},
		{"D-2.6", "a HEAD takes a seat", "internal/delivery/plan.go", "if a.Body = r.Method == http.MethodGet; a.Body {", "if a.Body = true; a.Body {", "TestPlan"},
		{"D-2.12", "a restart does not settle", shell + "service.go", "m.Settle(now.Add(session.SettleFor))", "_ = session.SettleFor", "TestRestartKeepsPlaces"},
		{"D-2.14", "a booked download starts before its notBefore", shell + "booking.go", "if !b.NotBefore.After(wall) {", "if !b.NotBefore.After(wall.Add(24 * time.Hour)) {", "TestBookingWindow"},
		{"D-3.3", "shared asks for seats as before", shell + "configure.go", "return (s.conf.Shared || e.Size <= s.conf.SessionMinBytes)", "return e.Size <= s.conf.SessionMinBytes", "TestSharedAdmitsPerRequest"},
		{"D-4.3", "a client raises its class", shell + "request.go", "return class.Applied(asked, r.Principal.Ceiling), err", "return asked, err", "TestAppliedClass"},
		{"D-5.1", "a client waits on although it would start past its notAfter", "sdk/retry.go", "w.StartsAt.After(o.notAfter)", "w.StartsAt.After(o.notAfter.Add(24 * time.Hour))", "TestClientWindows"},
		{"D-5.1", "a client asks before its notBefore", "sdk/download.go", "waitUntil(ctx, d.c.clock, at)", "waitUntil(ctx, d.c.clock, at.Add(-time.Hour))", "TestClientWindows"},
		{"D-7.4", "a stopping service lets newcomers in", shell + "service.go", "if s.draining && !s.machine.Active(e.Key) {", "if s.draining && s.holding > 1<<20 {", "TestDrain"},
		{"D-8.1", "the arrival is not under the signature", "internal/ticket/ticket.go", "binary.BigEndian.PutUint64(msg[16:], uint64(arrival))", "binary.BigEndian.PutUint64(msg[16:], uint64(issued))", "TestGolden"},
		{"D-8.2", "an ignored issue time", "internal/ticket/ticket.go", "age > Life.Milliseconds() || ", "", "TestVerify"},
		{"D-8.2", "a ticket of another session is good", "internal/ticket/ticket.go", "copy(msg[:16], session[:])", "_ = session", "TestVerify"},
		{"D-8.3", "every process makes a key of its own", "internal/store/ticketkey.go", "ON CONFLICT (id) DO NOTHING", "ON CONFLICT (id) DO UPDATE SET secret = EXCLUDED.secret", "TestSQLiteKeepsWhatItAcknowledged"},
		{"D-8.5", "the ticket is not in the checkpoint", "sdk/checkpoint.go", "`json:\"ticket,omitempty\"`", "`json:\"-\"`", "TestResumeAfterKill"},
		{"D-8.4", "arrivals follow the wall clock when it is set", shell + "service.go", "return s.signer.Sign(k, s.base.Add(time.Duration(arrival)), wall)", "return s.signer.Sign(k, wall.Add(time.Duration(arrival-s.clock.Now())), wall)", "TestWallJumps"},
		{"D-12.2", "what was sent is no debt", "internal/governor/shares.go", "t.finish = t.start + n", "t.finish = t.start", "TestEqualBetweenPrincipals"},
	}
}
