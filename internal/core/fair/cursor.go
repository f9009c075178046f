package fair

import "slices"

// Turn is one step of a cursor.
type Turn struct {
	Class     uint8
	Principal uint32
	Item      uint32
	Round     uint32
}

// mayStart says whether a principal may start an item of a class now; item is told for the aged only, whose principal
// says nothing.
type mayStart func(c uint8, principal, item uint32) bool

// passedMost bounds the turns a cursor keeps per class that were not allowed when it came by. Principals that may not
// start hold seats, so there are never more of them than seats, and each has a turn or two per round.
const passedMost = 4096

// Cursor walks the order forward without changing it: the turns as they would be served, with classes and principals
// shut out and let in again as the caller says. Only one cursor of a queue is in use at a time, and the queue must
// not change meanwhile.
type Cursor struct {
	q       *Queue
	virtual uint64
	lines   [Classes]track
}

// track is a cursor's view of one class.
type track struct {
	walk   walker
	pass   uint64
	round  uint32
	left   int     // marks not taken yet
	passed []entry // marks the walker left behind because their principal might not start, in order
}

// Rewind puts the cursor before the first turn.
func (q *Queue) Rewind(c *Cursor) {
	q.epoch++
	c.q, c.virtual = q, q.virtual
	for j := range q.lines {
		k, t := &q.lines[j], &c.lines[j]
		*t = track{walk: walker{set: &k.marks}, pass: k.pass, round: k.round, left: k.n, passed: t.passed[:0]}
	}
}

// Next takes the next turn among the open classes that may accepts. ok is false when there is none. held are classes
// that the same thing keeps from going now, see Serve.
func (c *Cursor) Next(open, held Mask, may mayStart) (Turn, bool) {
	best, at, bestTag := -1, 0, uint64(0)
	var mark entry
	var can Mask
	for j := range c.lines {
		t := &c.lines[j]
		if t.left == 0 || !open.Has(uint8(j)) {
			continue
		}
		m, where, ok := c.head(uint8(j), t, may)
		if !ok {
			continue
		}
		can |= 1 << j
		if tag := t.pass + c.q.lines[j].stride; best < 0 || tag < bestTag {
			best, at, bestTag, mark = j, where, tag, m
		}
	}
	if best < 0 {
		return Turn{}, false
	}
	return c.take(uint8(best), at, mark, can, held), true
}

// head finds the first turn of a class that may go now; where is its index among the passed, or -1 at the walker.
func (c *Cursor) head(j uint8, t *track, may mayStart) (m entry, where int, ok bool) {
	where = -1
	for i, e := range t.passed {
		if c.ask(j, e.item, may) {
			m, where, ok = e, i, true
			break
		}
	}
	for {
		e, more := t.walk.peek()
		if !more || ok && !e.before(m) || len(t.passed) >= passedMost {
			return m, where, ok
		}
		l := c.laneOf(e.item)
		if l.lift == 0 && c.ask(j, e.item, may) {
			return e, -1, true
		}
		t.walk.step()
		e.round += l.lift
		i := lowerBound(t.passed, e)
		t.passed = slices.Insert(t.passed, i, e)
		if c.ask(j, e.item, may) && (!ok || e.before(m)) {
			m, where, ok = e, i, true
		} else if ok && i <= where {
			where++
		}
	}
}

// ask puts the first item of a lane that the cursor has not taken to the caller.
func (c *Cursor) ask(j uint8, i uint32, may mayStart) bool {
	l := c.laneOf(i)
	if l.principal != Aged {
		return may(j, l.principal, 0)
	}
	return may(j, Aged, l.items.item(int(l.taken)))
}

// laneOf is a lane with the scratch of this walk.
func (c *Cursor) laneOf(i uint32) *lane {
	l := &c.q.lanes[i]
	if l.epoch != c.q.epoch {
		l.epoch, l.taken, l.lift = c.q.epoch, 0, 0
	}
	return l
}

func (c *Cursor) take(j uint8, where int, m entry, can, held Mask) Turn {
	t, l := &c.lines[j], c.laneOf(m.item)
	if where < 0 {
		t.walk.step()
	} else {
		t.passed = slices.Delete(t.passed, where, where+1)
	}
	c.lift(t, m.round)
	t.left--
	t.round = max(t.round, m.round)
	c.virtual = max(c.virtual, t.pass)
	t.pass += c.q.lines[j].stride
	var passes [Classes]*uint64
	for i := range c.lines {
		passes[i] = &c.lines[i].pass
	}
	catchUp(&passes, c.virtual, can, held)
	item := l.items.item(int(l.taken))
	l.taken++
	if c.q.mode == SmallestFirst && int32(l.taken) < l.items.n {
		next := l.items.at(int(l.taken)) // the lane's mark moves on to its next item
		next.item = m.item
		t.passed = slices.Insert(t.passed, lowerBound(t.passed, next), next)
	}
	return Turn{Class: j, Principal: l.principal, Item: item, Round: m.round}
}

// lift takes the lanes that were passed over to the round before the one now being served, like PassOver does for good.
func (c *Cursor) lift(t *track, served uint32) {
	round := max(served, 1) - 1
	if c.q.mode == SmallestFirst || len(t.passed) == 0 || t.passed[0].round >= round {
		return
	}
	for i := 0; i < len(t.passed) && t.passed[i].round < round; i++ {
		l := c.laneOf(t.passed[i].item)
		if d := round - t.passed[i].round; d > 0 && t.passed[i].round == l.base+l.taken+l.lift {
			for k := range t.passed {
				if t.passed[k].item == t.passed[i].item {
					t.passed[k].round += d
				}
			}
			l.lift += d
		}
	}
	slices.SortFunc(t.passed, func(a, b entry) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
}

// Passed calls f for the principal of every turn of a class that was left behind so far, once per turn.
func (c *Cursor) Passed(class uint8, f func(principal uint32)) {
	for _, e := range c.lines[class].passed {
		f(c.q.lanes[e.item].principal)
	}
}

// LaneHead is the first item of a principal in a class that the cursor has not taken.
func (c *Cursor) LaneHead(class uint8, principal uint32) (handle uint32, ok bool) {
	if c.Left(class, principal) == 0 {
		return 0, false
	}
	l := c.q.lane(class, principal)
	at := 0
	if l.epoch == c.q.epoch {
		at = int(l.taken)
	}
	return l.items.item(at), true
}

// Left is how many items of a principal in a class the cursor has not taken.
func (c *Cursor) Left(class uint8, principal uint32) int {
	l := c.q.lane(class, principal)
	if l == nil {
		return 0
	}
	if l.epoch != c.q.epoch {
		return int(l.items.n)
	}
	return int(l.items.n) - int(l.taken)
}
