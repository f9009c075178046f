package downloads

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/governor"
)

// Pass is the leave to send one response.
type Pass struct {
	service   *Service
	key       session.Key
	principal string // of a small one
	class     class.Class
	ticket    string
	lane      governor.Lane // when it was given
	from      int64         // where the response begins
	small     bool

	sent   atomic.Int64
	closed atomic.Bool
}

// Context is the context of the response: it also ends when the download is cancelled, for whoever sends the bytes to
// stop. The caller calls done when the response is over.
func (p *Pass) Context(parent context.Context) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(parent)
	if p.small {
		return ctx, func() { cancel(nil) }
	}
	s := p.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.bookings.bySession[p.key]; b != nil && b.Ended == api.BookingCancelled {
		cancel(errCancelled) // between the pass and here
	}
	if s.open[p.key] == nil {
		s.open[p.key] = map[*Pass]context.CancelCauseFunc{}
	}
	s.open[p.key][p] = cancel
	return ctx, func() {
		cancel(nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		if delete(s.open[p.key], p); len(s.open[p.key]) == 0 {
			delete(s.open, p.key)
		}
	}
}

// Header sets the ticket and the applied class, as on every answer of a session (D-2.3).
func (p *Pass) Header(h http.Header) {
	h.Set(api.HeaderDownloadClass, p.class.String())
	if p.ticket != "" {
		h.Set(api.HeaderQueueTicket, p.ticket)
	}
}

// Sent tells of bytes that the socket accepted; 0 says that the response lives although the link gave it none. The
// machine hears of them at once: bytes told late would make a second of the link look fuller than it was. Those of
// small objects feed the measure of the link only. paced is how long the governor held the response back since the last
// call; the answer is the lane that its bytes belong on from now.
func (p *Pass) Sent(n int64, paced time.Duration) governor.Lane {
	s := p.service
	p.sent.Add(n)
	s.meters.bytes.Add(float64(n))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apply(s.clock.Now(), session.Event{Kind: session.Progress, Key: p.key, Bytes: n, Paced: paced})
	return s.lane(p.key, p.class)
}

// Lane is the part of the link that the response begins on.
func (p *Pass) Lane() governor.Lane { return p.lane }

// lane is the part of the link that a session's bytes belong on: the road, unless it reads aside or began outside its
// window (D-5.2). The caller holds the lock.
func (s *Service) lane(k session.Key, c class.Class) governor.Lane {
	return governor.Lane{Aside: s.machine.Aside(k), Outside: s.machine.Outside(k), Class: c}
}

// Close ends the response. from..to is what was delivered whole; it counts only when whole is true. Every exit path
// closes; the first call counts.
func (p *Pass) Close(from, to int64, whole bool) {
	if p.closed.Swap(true) {
		return
	}
	if !whole {
		from, to = p.from, p.from
	}
	s := p.service
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passes--
	if p.small {
		s.small.leave(p.principal)
		return
	}
	s.apply(s.clock.Now(), session.Event{Kind: session.Finish, Key: p.key, From: from, To: to, Bytes: p.sent.Load()})
	s.wake(p.key) // a surplus request may be held for this response to end (D-2.10)
}
