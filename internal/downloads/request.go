package downloads

import (
	"crypto/sha256"
	"net/http"
	"strconv"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// Request is one response that wants to be sent. Authorization and metadata are behind it (D-2.6).
type Request struct {
	Principal  identity.Principal
	ObjectID   string // immutable: a digest or repository/path@revision (D-2.2)
	Size       int64  // bytes of the whole object
	DownloadID string // made by the client; empty for tools that don't know it
	Class      string // asked; empty for the highest allowed
	Ticket     string // the latest ticket the client holds, or empty
	ClientAddr string // stands in for a missing download id (D-2.2)
	From, To   int64  // bytes asked, To exclusive
	Tail       bool   // a read of the end, which sets no start (D-2.7)
}

// Key names the session of a request: principal, object and download id, or the client's address without one (D-2.2).
// The parts are hashed, so their length is bounded and none can imitate another's boundary.
func (r Request) Key() session.Key {
	by := digest("id\x00", r.DownloadID)
	if r.DownloadID == "" {
		by = digest("address\x00", r.ClientAddr)
	}
	return digest(digest(r.Principal.ID), digest(r.ObjectID), by)
}

// digest is the beginning of the SHA-256 of the parts, one after the other.
func digest[T string | session.Key](parts ...T) (k session.Key) {
	buf := make([]byte, 0, 128) // on the stack, as most of what is hashed is short
	for _, p := range parts {
		switch p := any(p).(type) {
		case string:
			buf = append(buf, p...)
		case session.Key:
			buf = append(buf, p[:]...)
		}
	}
	sum := sha256.Sum256(buf)
	copy(k[:], sum[:])
	return k
}

// class is the applied class: what the client asks for, never above its ceiling (D-4.3).
func (r Request) class() (class.Class, error) {
	if r.Class == "" {
		return r.Principal.Ceiling, nil
	}
	asked, err := class.Parse(api.HeaderDownloadClass, r.Class)
	return class.Applied(asked, r.Principal.Ceiling), err
}

// Waiting is the answer to a session that has no seat yet: a busy fault with its place and a ticket (D-2.3).
type Waiting struct {
	Fault  *fault.Error
	Wait   api.Wait
	Ticket string
}

func (w *Waiting) Error() string { return w.Fault.Error() }

// Unwrap gives the fault.
func (w *Waiting) Unwrap() error { return w.Fault }

// Header sets the queue headers of the answer; Retry-After belongs to the fault.
func (w *Waiting) Header(h http.Header) {
	if w.Ticket != "" {
		h.Set(api.HeaderQueueTicket, w.Ticket)
	}
	h.Set(api.HeaderDownloadClass, w.Wait.Class)
	if w.Wait.Position > 0 {
		h.Set(api.HeaderQueuePosition, strconv.Itoa(w.Wait.Position))
	}
	if w.Wait.StartsAt != nil {
		h.Set(api.HeaderStartsAt, w.Wait.StartsAt.UTC().Format(time.RFC3339))
	}
}
