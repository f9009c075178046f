package sim

import (
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
)

// fake is a queue as plain as can be: one class, strict FIFO, a seat kept for its owner, no holds and no idling. It
// shows that the simulator does its own part right whatever the machine does.
type fake struct {
	seats   int
	queue   []session.Key
	active  map[session.Key]bool
	granted map[session.Key]bool // has a seat it has not used yet
	greedy  bool                 // gives seats that do not exist
}

func newFake(seats int) *fake {
	return &fake{seats: seats, active: map[session.Key]bool{}, granted: map[session.Key]bool{}}
}

func (f *fake) Apply(_ clock.Mono, e session.Event) []session.Effect {
	switch e.Kind {
	case session.Request:
		if !f.active[e.Key] && !f.granted[e.Key] {
			for _, k := range f.queue {
				if k == e.Key {
					return []session.Effect{{Kind: session.Wait, Key: e.Key}}
				}
			}
			if len(f.active)+len(f.granted) >= f.seats && !f.greedy || len(f.queue) > 0 {
				f.queue = append(f.queue, e.Key)
				return []session.Effect{{Kind: session.Wait, Key: e.Key}}
			}
		}
		delete(f.granted, e.Key)
		f.active[e.Key] = true
		return []session.Effect{{Kind: session.Started, Key: e.Key}, {Kind: session.Serve, Key: e.Key}}
	case session.Finish:
		delete(f.active, e.Key)
		return []session.Effect{{Kind: session.Finished, Key: e.Key}}
	}
	return nil
}

func (f *fake) Tick(clock.Mono) ([]session.Effect, time.Duration) {
	for len(f.queue) > 0 && len(f.active)+len(f.granted) < f.seats {
		f.granted[f.queue[0]] = true
		f.queue = f.queue[1:]
	}
	return nil, session.TickEvery
}

func (f *fake) Estimate(now clock.Mono, k session.Key) (session.Estimate, bool) {
	return session.Estimate{Check: now.Add(time.Second)}, true
}

func (f *fake) Yielding(session.Key) bool { return false }

func (f *fake) Counts() (c session.Counts) {
	c.Classes[1].Active, c.Classes[1].Waiting = len(f.active), len(f.queue)
	c.Sessions = len(f.active) + len(f.granted) + len(f.queue)
	return c
}

func (f *fake) Answer(now clock.Mono, k session.Key) (session.Estimate, bool) {
	return f.Estimate(now, k)
}
