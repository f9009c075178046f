// Package governor shares a link's bytes: a ceiling for all, a ceiling for each principal, and equal parts when
// bytes are scarce (D-12.2).
package governor

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
)

// Config holds the ceilings in bytes per second; zero means none.
type Config struct {
	Total        int64 // over everything that is sent
	PerPrincipal int64 // over all connections of one principal
	// Outside is the part of Total, by class, that sessions begun outside the class's window share (D-5.2). It counts
	// only while Total is set.
	Outside [class.Count]float64
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
	for i, share := range c.Outside {
		if !(share >= 0 && share <= 1) {
			return fault.Invalid("outside."+class.Class(i).String(), "must be a share between 0 and 1, is %g", share)
		}
	}
	return nil
}

// outside is the ceiling of a class's sessions that began outside its window. It is never nothing: a session may have
// begun on a larger share than there is now, and never fails.
func (c Config) outside(k class.Class) int64 {
	if c.Total == 0 {
		return 0
	}
	return max(int64(c.Outside[k]*float64(c.Total)), trickle)
}

// Governor gives out leave to send. When a ceiling is reached, bytes are split equally between the principals that
// want some, then equally between the sessions of a principal: connections, sessions and responses opened on top gain
// a principal nothing. A session may be put aside, where it gets what the others leave, and one that began outside its
// window is held to its class's outside share. It is safe for concurrent use and runs no goroutine of its own.
type Governor struct {
	clock   clock.Clock
	limited atomic.Bool
	slice   atomic.Int64

	mu    sync.Mutex
	conf  Config
	queue *queue
	timer *time.Timer // fires when the next waiting flow may send; nil before anyone waited
}

// New makes a governor.
func New(c Config, clk clock.Clock) (*Governor, error) {
	g := &Governor{clock: clk, queue: newQueue()}
	if err := g.Set(c); err != nil {
		return nil, err
	}
	return g, nil
}

// Set changes the ceilings, for waiting flows too (D-9.3). An invalid configuration changes nothing.
func (g *Governor) Set(c Config) error {
	return g.change(func(now *Config) { *now = c })
}

// SetTotal changes the ceiling over everything and keeps the others.
func (g *Governor) SetTotal(rate int64) error {
	return g.change(func(now *Config) { now.Total = rate })
}

// SetOutside changes the outside shares and keeps the ceilings (D-5.2).
func (g *Governor) SetOutside(shares [class.Count]float64) error {
	return g.change(func(now *Config) { now.Outside = shares })
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
	g.queue.limit(g.clock.Now(), c)
	g.limited.Store(c.Total > 0 || c.PerPrincipal > 0)
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

// Slices are what one Take should ask for: 8 ms of the link, so that turns are short, but long enough to be cheap. The
// longest are of links of 4 Gbit/s and more, and of those without a ceiling: four times the bytes for each system call
// are 5 % of the CPU.
const (
	sliceTime = 8 * time.Millisecond
	minSlice  = 64 << 10
	maxSlice  = 4 << 20
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
