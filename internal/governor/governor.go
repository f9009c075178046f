// Package governor shares a link's bytes: a ceiling for all, a ceiling for each principal, and equal parts when
// bytes are scarce (D-12.2).
package governor

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
)

// Config holds the ceilings in bytes per second; zero means none.
type Config struct {
	Total        int64 // over everything that is sent
	PerPrincipal int64 // over all connections of one principal
}

// MinRate is the lowest ceiling: below it one slice of 64 KiB would take more than a minute.
const MinRate = 1024

// Validate names the first field that cannot work.
func (c Config) Validate() error {
	for _, f := range []struct {
		name string
		rate int64
	}{{"total", c.Total}, {"perPrincipal", c.PerPrincipal}} {
		if f.rate != 0 && f.rate < MinRate {
			return fault.Invalid(f.name, "must be 0 (no ceiling) or at least %d bytes per second, is %d", MinRate, f.rate)
		}
	}
	return nil
}

// Governor gives out leave to send. When a ceiling is reached, bytes are split equally between the principals that
// want some, then equally between the sessions of a principal: connections, sessions and responses opened on top gain
// a principal nothing. It is safe for concurrent use and runs no goroutine of its own.
type Governor struct {
	clock   clock.Clock
	limited atomic.Bool
	slice   atomic.Int64

	mu    sync.Mutex
	conf  Config
	queue queue
	timer *time.Timer // fires when the next waiting flow may send; nil before anyone waited
}

// New makes a governor.
func New(c Config, clk clock.Clock) (*Governor, error) {
	g := &Governor{clock: clk, queue: queue{principals: map[string]*principal{}, sweepAt: 64}}
	if err := g.Set(c); err != nil {
		return nil, err
	}
	return g, nil
}

// Set changes the ceilings, for waiting flows too (D-9.3). An invalid configuration changes nothing.
func (g *Governor) Set(c Config) error {
	return g.change(func(now *Config) { *now = c })
}

// SetTotal changes the ceiling over everything and keeps the other.
func (g *Governor) SetTotal(rate int64) error {
	return g.change(func(now *Config) { now.Total = rate })
}

func (g *Governor) change(edit func(*Config)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.conf
	edit(&c)
	if err := c.Validate(); err != nil {
		return err
	}
	g.conf = c
	g.queue.limit(g.clock.Now(), c.Total, c.PerPrincipal)
	g.limited.Store(c != Config{})
	g.slice.Store(sliceAt(c))
	g.dispatch()
	return nil
}

// Config tells the ceilings in force.
func (g *Governor) Config() Config {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.conf
}

// Slices are what one Take should ask for: 8 ms of the link, so that turns are short, but long enough to be cheap.
const (
	sliceTime = 8 * time.Millisecond
	minSlice  = 64 << 10
	maxSlice  = 1 << 20
)

func sliceAt(c Config) int64 {
	rate := c.Total
	if rate == 0 || c.PerPrincipal != 0 && c.PerPrincipal < rate {
		rate = c.PerPrincipal
	}
	if rate == 0 {
		return maxSlice
	}
	return int64(min(max(float64(rate)*sliceTime.Seconds(), minSlice), maxSlice))
}

// dispatch wakes whom the queue lets send and sets the timer for the next one. The caller holds the lock.
func (g *Governor) dispatch() {
	now := g.clock.Now()
	for _, f := range g.queue.grant(now) {
		f.granted <- struct{}{}
	}
	at, ok := g.queue.due()
	if !ok {
		return
	}
	if wait := max(0, at.Sub(now)); g.timer == nil {
		g.timer = time.AfterFunc(wait, g.wake)
	} else {
		g.timer.Reset(wait)
	}
}

func (g *Governor) wake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dispatch()
}

// Flow is one response's stream of bytes. One goroutine uses it; Waiting may be asked by any.
type Flow struct {
	governor *Governor
	session  *session
	want     int64
	granted  chan struct{} // holds the one grant of the present Take
	waiting  atomic.Bool
}

// Flow opens a stream for a response. Responses of one session share that session's part; the zero session belongs to
// no other response. Close it when the response ends.
func (g *Governor) Flow(principal string, session [16]byte) *Flow {
	g.mu.Lock()
	defer g.mu.Unlock()
	return &Flow{governor: g, session: g.queue.join(g.clock.Now(), principal, session), granted: make(chan struct{}, 1)}
}

// Close ends the stream. It must not overlap a Take.
func (f *Flow) Close() {
	g := f.governor
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue.leave(g.clock.Now(), f.session)
}

// Slice is how many bytes one Take should ask for at the present ceilings.
func (f *Flow) Slice() int64 { return f.governor.slice.Load() }

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
	f.waiting.Store(true)
	defer f.waiting.Store(false)
	return f.wait(ctx, still)
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
