package forerun

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/core/session"
)

// checkEvery is how many steps pass between looks at the context.
const checkEvery = 16

// run steps from one event to the next: somebody is through, a window changes, or a tick is due.
func (p *play) run(ctx context.Context) error {
	p.tick()
	for step := 0; p.open > 0 && p.broken == nil; step++ {
		if step%checkEvery == 0 && ctx.Err() != nil {
			return nil
		}
		took, ok := p.next()
		if !ok {
			return nil // who waits now waits for hours that never come
		}
		p.now = p.now.Add(took)
		p.move(took)
		if p.turns != 0 && p.now >= p.turns {
			p.turnWindows()
		}
		p.tick()
	}
	return p.broken
}

// next is how long nothing happens.
func (p *play) next() (took time.Duration, ok bool) {
	pace := p.stride
	if p.ticks > 0 {
		pace = session.TickEvery
	}
	if p.ticks > 0 {
		p.ticks--
	}
	if len(p.readers) == 0 && p.waiting > 0 && p.ticks == 0 {
		// Nobody reads and those who wait got no seat: only their hours can change that.
		if p.turns == 0 {
			return 0, false
		}
		return max(p.turns.Sub(p.now), 0), true
	}
	if p.turns != 0 {
		pace = min(pace, max(p.turns.Sub(p.now), 0))
	}
	for _, c := range p.readers {
		pace = min(pace, time.Duration(c.left/p.share(c)*float64(time.Second))+1)
	}
	return pace, true
}

// share is the bytes per second of a reader: the link is split between principals, then between the sessions of each.
func (p *play) share(c *client) float64 {
	return p.rate / float64(len(p.by)) / float64(p.by[c.Principal])
}

// move lets time go by: everybody who reads has read a range when it is over.
func (p *play) move(took time.Duration) {
	type part struct {
		c     *client
		bytes float64
	}
	parts := make([]part, 0, len(p.readers))
	for _, c := range p.readers {
		parts = append(parts, part{c, p.share(c) * took.Seconds()})
	}
	for _, t := range parts {
		c := t.c
		if c.seats == 0 {
			continue // gave its seat up to one who was through a moment before
		}
		c.left -= t.bytes
		from, to := c.pos, min(c.pos+int64(t.bytes), c.Size-1)
		through := c.left < 1
		if through {
			from, to = 0, c.Size
		}
		p.apply(p.request(c, to))
		p.apply(session.Event{Kind: session.Progress, Key: c.Key, Bytes: int64(t.bytes)})
		if c.pos = max(to, from); c.seats == 0 {
			continue
		}
		p.apply(session.Event{Kind: session.Finish, Key: c.Key, From: from, To: max(to, from)})
		if through && c.seats != 0 {
			p.fail("session %x is through and keeps its seat", c.Key)
		}
	}
}

func (p *play) tick() {
	effects, _ := p.m.Tick(p.now)
	p.take(effects)
	if p.freed && len(p.readers) < p.seats && p.waiting > 0 {
		p.ticks = max(p.ticks, 2) // the machine widens its offer with each tick while a seat stays free (D-2.12)
	}
	p.freed = false
}

func (p *play) apply(e session.Event) { p.take(p.m.Apply(p.now, e)) }

// take follows what the machine decided. The effects are valid until the next call only, so those that need one wait.
func (p *play) take(effects []session.Effect) {
	var yielded []session.Key
	for _, e := range effects {
		c := p.clients[e.Key]
		switch e.Kind {
		case session.Started:
			p.sit(c)
		case session.Finished:
			p.stand(c)
			p.open--
			if c.fate != nil {
				c.fate.Finished, c.fate.Finish = true, p.now
			}
		case session.Yielded:
			p.stand(c)
			p.waiting++
			yielded = append(yielded, e.Key)
		case session.Refuse, session.NoShow, session.Paused, session.Forgot:
			p.fail("session %x ends with effect %d", e.Key, e.Kind)
		}
	}
	for _, k := range yielded {
		p.apply(session.Event{Kind: session.Hold, Key: k})
	}
	if len(yielded) > 0 {
		p.m.Vouch(p.now, far)
	}
}

func (p *play) sit(c *client) {
	p.readers = append(p.readers, c)
	c.seats = len(p.readers)
	p.by[c.Principal]++
	if c.fate != nil && !c.fate.Started {
		c.fate.Started, c.fate.Start = true, p.now
	}
	p.waiting--
}

func (p *play) stand(c *client) {
	p.readers = slices.Delete(p.readers, c.seats-1, c.seats)
	for i := c.seats - 1; i < len(p.readers); i++ {
		p.readers[i].seats = i + 1
	}
	c.seats, p.freed = 0, true
	if p.by[c.Principal]--; p.by[c.Principal] == 0 {
		delete(p.by, c.Principal)
	}
}

// turnWindows tells the machine which classes are open from now on.
func (p *play) turnWindows() {
	p.turns = 0
	for _, c := range class.All() {
		if p.windows[c] == nil {
			continue
		}
		open, outside, changes := p.windows[c](p.now)
		p.m.SetWindow(p.now, c, open, outside, changes)
		if len(changes) > 0 && (p.turns == 0 || changes[0] < p.turns) {
			p.turns = changes[0]
		}
	}
	p.ticks = max(p.ticks, 2)
}

func (p *play) fail(format string, args ...any) {
	if p.broken == nil {
		p.broken = fmt.Errorf(format, args...)
	}
}
