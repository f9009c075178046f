package downloads

import (
	"net/http"
	"sync/atomic"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/core/session"
)

// Pass is the leave to send one response.
type Pass struct {
	service   *Service
	key       session.Key
	principal string // of a small one
	class     class.Class
	ticket    string
	small     bool

	closed atomic.Bool
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
// small objects feed the measure of the link only.
func (p *Pass) Sent(n int64) {
	s := p.service
	s.meters.bytes.Add(float64(n))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apply(s.clock.Now(), session.Event{Kind: session.Progress, Key: p.key, Bytes: n})
}

// Close ends the response. from..to is what was delivered whole; it counts only when whole is true. Every exit path
// closes; the first call counts.
func (p *Pass) Close(from, to int64, whole bool) {
	if p.closed.Swap(true) {
		return
	}
	if !whole {
		from, to = 0, 0
	}
	s := p.service
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passes--
	if p.small {
		s.small.leave(p.principal)
		return
	}
	s.apply(s.clock.Now(), session.Event{Kind: session.Finish, Key: p.key, From: from, To: to})
	s.wake(p.key) // a surplus request may be held for this response to end (D-2.10)
}
