package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// sample is what was seen at one instant.
type sample struct {
	at   time.Time
	sent float64 // content, by the server's metric
	wire float64 // everything, by the link's own counter; content again where the link has none
}

// watch looks at the server and the link while a fleet runs.
type watch struct {
	server   *server
	world    *world
	scenario scenario
	link     func(context.Context) (float64, error) // the link's counter of bytes; nil when it has none
	say      func(string, ...any)
	finished func() int64

	mu      sync.Mutex
	samples []sample
	over    int // times that more seats were in use than there are
	looked  int // times that anybody looked at the seats
	failed  error
}

const lookEvery = 250 * time.Millisecond

// run looks until the context ends.
func (w *watch) run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	spoke := time.Now()
	for {
		if err := w.look(ctx); err != nil && ctx.Err() == nil {
			w.mu.Lock()
			w.failed = err
			w.mu.Unlock()
		}
		if time.Since(spoke) > 5*time.Second {
			spoke = time.Now()
			w.tell(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (w *watch) look(ctx context.Context) error {
	began := time.Now()
	sent, err := w.server.sent(ctx)
	if err != nil {
		return err
	}
	s := sample{at: began.Add(time.Since(began) / 2), sent: sent, wire: sent}
	if w.link != nil {
		began = time.Now()
		if s.wire, err = w.link(ctx); err != nil {
			return err
		}
		s.at = began.Add(time.Since(began) / 2)
	}
	q, err := w.world.operator.Queue(ctx)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.samples = append(w.samples, s)
	w.looked++
	if q.SeatsInUse > q.Seats || q.Seats != w.scenario.seats {
		w.over++
	}
	return nil
}

// tell says how far the run is.
func (w *watch) tell(ctx context.Context) {
	q, err := w.world.operator.Queue(ctx)
	if err != nil {
		return
	}
	waiting, held := 0, 0
	for _, c := range q.Classes {
		waiting += c.Waiting
		held += c.Held
	}
	w.mu.Lock()
	n := len(w.samples)
	from := w.samples[max(0, n-1-int(5*time.Second/lookEvery))]
	to := w.samples[n-1]
	w.mu.Unlock()
	rate := (to.wire - from.wire) / max(to.at.Sub(from.at).Seconds(), 1e-3)
	w.say("%s: %d of %d finished, %d of %d seats, %d waiting (%d held), %.2f MB/s, expects %.2f MB/s", w.scenario.name, w.finished(),
		w.scenario.clients, q.SeatsInUse, q.Seats, waiting, held, rate/1e6, float64(q.RateBytes)/1e6)
}

// between is how many bytes went from one instant to another: content, and all on the link.
func between(samples []sample, from, to time.Time) (sent, wire float64, err error) {
	if len(samples) == 0 {
		return 0, 0, fmt.Errorf("nothing was sampled")
	}
	s0, w0 := at(samples, from)
	s1, w1 := at(samples, to)
	return s1 - s0, w1 - w0, nil
}

// at is the counters at an instant, between the samples around it.
func at(samples []sample, t time.Time) (sent, wire float64) {
	for i, s := range samples {
		if s.at.Before(t) {
			continue
		}
		if i == 0 {
			return s.sent, s.wire
		}
		p := samples[i-1]
		part := float64(t.Sub(p.at)) / float64(max(s.at.Sub(p.at), 1))
		return p.sent + part*(s.sent-p.sent), p.wire + part*(s.wire-p.wire)
	}
	last := samples[len(samples)-1]
	return last.sent, last.wire
}
