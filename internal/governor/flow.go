package governor

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
)

// Lane is the part of the link that a session's bytes run on. The zero value is the road: an equal share.
type Lane struct {
	Aside   bool        // bytes that nobody else wants; a trickle for all that are aside together when there are none
	Outside bool        // its class's share outside the window is a ceiling for it too (D-5.2)
	Class   class.Class // matters with Outside
}

// Flow is one response's stream of bytes. One goroutine uses it; Waiting may be asked by any.
type Flow struct {
	governor *Governor
	session  *session
	lane     Lane // as this flow last heard or said
	want     int64
	granted  chan struct{} // holds the one grant of the present Take
	waiting  atomic.Bool
	since    clock.Mono // of the wait that paced has not counted yet
	paced    time.Duration
}

// Flow opens a stream for a response. Responses of one session share that session's part; the zero session belongs to
// no other response. Close it when the response ends.
func (g *Governor) Flow(principal string, session [16]byte) *Flow {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.queue.join(g.clock.Now(), principal, session)
	return &Flow{governor: g, session: s, lane: s.lane, granted: make(chan struct{}, 1)}
}

// Steer moves the flow's session, all its flows with it, to a lane; one that waits goes on waiting there. It costs
// nothing when the flow is there already, so it may be called after each slice and in a Take's still.
func (f *Flow) Steer(to Lane) {
	if !to.Outside {
		to.Class = 0
	}
	if f.lane == to {
		return
	}
	f.lane = to
	g := f.governor
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue.steer(f.session, to)
	g.dispatch()
}

// Paced is how long the governor made the flow wait since the last call: the rest of its time its reader took.
func (f *Flow) Paced() time.Duration {
	if f.Waiting() {
		f.count()
	}
	d := f.paced
	f.paced = 0
	return d
}

func (f *Flow) count() {
	now := f.governor.clock.Now()
	f.paced += now.Sub(f.since)
	f.since = now
}

// Close ends the stream. It must not overlap a Take.
func (f *Flow) Close() {
	g := f.governor
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue.leave(g.clock.Now(), f.session)
}

// Slice is how many bytes one Take should ask for at the present ceilings. Aside they are short, or the trickle would
// let few move at a time.
func (f *Flow) Slice() int64 {
	if f.lane.Aside {
		return asideSlice
	}
	return f.governor.slice.Load()
}

const asideSlice = 16 << 10

// Waiting reports whether the flow waits for the governor now: its response is then held back by us, and is not a
// stalled reader (D-2.8).
func (f *Flow) Waiting() bool { return f.waiting.Load() }

// StillEvery is how often a waiting Take says that it is still there.
const StillEvery = 2 * time.Second

// Take blocks until n bytes may be sent; they count as sent from then on. While it waits it calls still, when not
// nil, every two seconds. It fails only with the context's error.
func (f *Flow) Take(ctx context.Context, n int64, still func()) error {
	g := f.governor
	if n <= 0 || !g.limited.Load() {
		return ctx.Err()
	}
	g.mu.Lock()
	f.want = n
	g.queue.ask(f)
	g.dispatch()
	g.mu.Unlock()
	select {
	case <-f.granted:
		return nil
	default:
	}
	f.since = g.clock.Now()
	f.waiting.Store(true)
	err := f.wait(ctx, still)
	f.waiting.Store(false)
	f.count()
	return err
}

func (f *Flow) wait(ctx context.Context, still func()) error {
	var tick <-chan time.Time
	if still != nil {
		t := time.NewTicker(StillEvery)
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-f.granted:
			return nil
		case <-tick:
			still()
		case <-ctx.Done():
			return f.giveUp(ctx)
		}
	}
}

// giveUp leaves the line, unless the grant came at the same moment: then its bytes are paid for and may be sent.
func (f *Flow) giveUp(ctx context.Context) error {
	g := f.governor
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-f.granted:
		return nil
	default:
		g.queue.drop(f)
		return ctx.Err()
	}
}
