package downloads

import (
	"context"
	"sync"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/fault"
)

// small admits requests for small objects one by one (D-2.5): first come first served, passing over principals that
// have as many running as they may. Who finds the queue full is told when it will have moved on, by its own pace.
type small struct {
	conf  SmallConfig
	clock clock.Clock

	mu       sync.Mutex
	active   int
	running  map[string]int // by principal
	waiting  []*turn
	queued   map[string]int
	pace     time.Duration // smoothed time between two ends while all places were taken
	lastEnd  clock.Mono
	draining bool
}

type turn struct {
	principal string
	event     session.Event // what it is a request for
	called    chan error    // receives once
}

func newSmall(c SmallConfig, clk clock.Clock) *small {
	return &small{conf: c, clock: clk, running: map[string]int{}, queued: map[string]int{}, pace: 100 * time.Millisecond}
}

// enter waits for a place. Its faults are busy with a time to come back, or the context's error; errElsewhere when the
// settings sent the request to the sessions meanwhile.
func (q *small) enter(ctx context.Context, principal string, e session.Event) error {
	q.mu.Lock()
	if q.draining {
		q.mu.Unlock()
		return fault.Later(fault.Busy, api.ReasonDraining, drainRetry, "the server is stopping; come back in a few seconds")
	}
	if q.active < q.conf.Active && q.running[principal] < q.conf.ActivePerPrincipal {
		q.start(principal)
		q.mu.Unlock()
		return nil
	}
	if len(q.waiting) >= q.conf.Waiting || q.queued[principal] >= q.conf.WaitingPerPrincipal {
		defer q.mu.Unlock()
		return q.busy()
	}
	t := &turn{principal: principal, event: e, called: make(chan error, 1)}
	q.waiting = append(q.waiting, t)
	q.queued[principal]++
	q.mu.Unlock()

	over := time.NewTimer(q.conf.Wait)
	defer over.Stop()
	var why error
	select {
	case err := <-t.called:
		return err
	case <-over.C:
	case <-ctx.Done():
		why = ctx.Err()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.forget(t) { // its turn came at the same moment
		if err := <-t.called; err != nil || why == nil {
			return err
		}
		q.end(principal)
		return why
	}
	if why != nil {
		return why
	}
	return q.busy()
}

func (q *small) start(principal string) {
	q.active++
	q.running[principal]++
}

// forget takes a turn out of the queue and reports whether it was still there.
func (q *small) forget(t *turn) bool {
	for i, o := range q.waiting {
		if o == t {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			q.unqueue(t.principal)
			return true
		}
	}
	return false
}

func (q *small) unqueue(principal string) {
	if q.queued[principal]--; q.queued[principal] == 0 {
		delete(q.queued, principal)
	}
}

// leave ends an admitted request and lets the next ones in.
func (q *small) leave(principal string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.clock.Now()
	if q.active >= q.conf.Active {
		q.pace += (now.Sub(q.lastEnd) - q.pace) / 8
	}
	q.lastEnd = now
	q.end(principal)
}

func (q *small) end(principal string) {
	q.active--
	if q.running[principal]--; q.running[principal] == 0 {
		delete(q.running, principal)
	}
	for i := 0; i < len(q.waiting) && q.active < q.conf.Active; {
		t := q.waiting[i]
		if q.running[t.principal] >= q.conf.ActivePerPrincipal {
			i++
			continue
		}
		q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
		q.unqueue(t.principal)
		q.start(t.principal)
		t.called <- nil
	}
}

// busy says when the queue will have moved on: its length at its pace, at least a second.
func (q *small) busy() error {
	wait := min(max(time.Duration(len(q.waiting)+1)*q.pace, time.Second), time.Minute)
	return fault.Later(fault.Busy, api.ReasonPending, wait, "%d requests wait already; come back later", len(q.waiting))
}

func (q *small) drain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.draining = true
	for _, t := range q.waiting {
		q.unqueue(t.principal)
		t.called <- fault.Later(fault.Busy, api.ReasonDraining, drainRetry, "the server is stopping; come back in a few seconds")
	}
	q.waiting = nil
}

// reroute sends those away who wait and do not belong here any more.
func (q *small) reroute(stays func(session.Event) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var staying []*turn
	for _, t := range q.waiting {
		if stays(t.event) {
			staying = append(staying, t)
			continue
		}
		q.unqueue(t.principal)
		t.called <- errElsewhere
	}
	q.waiting = staying
}

// counts is how many run and how many wait.
func (q *small) counts() (active, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.active, len(q.waiting)
}
