package files

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/serve/problem"
	"github.com/roadstead/roadstead/internal/serve/request"
)

// Queue gives requests leave to send (D-2).
type Queue interface {
	// Admit blocks while the request is held (D-2.4). Its error is *Waiting while the session waits, otherwise a
	// fault, busy ones with a time to come back. A Pass must be closed.
	Admit(ctx context.Context, r Request) (Pass, error)
}

// Pass is the leave to send one response.
type Pass interface {
	Header(h http.Header)             // sets ticket and applied class (D-2.3)
	Sent(n int64)                     // tells of bytes the socket accepted
	Close(from, to int64, whole bool) // ends the response, with the span delivered whole; the first call counts
}

// Request is one response that wants to be sent.
type Request struct {
	Principal  identity.Principal
	ObjectID   string // immutable: a digest or repository/path@revision (D-2.2)
	Size       int64  // bytes of the whole object
	DownloadID string
	Class      string // asked; empty for the highest allowed
	Ticket     string
	ClientAddr string
	From, To   int64 // bytes asked, To exclusive
	Tail       bool  // a read of the end, which sets no start (D-2.7)
}

// Waiting is a refusal with a place in the queue.
type Waiting struct {
	Fault  *fault.Error
	Wait   api.Wait
	Ticket string
}

func (w *Waiting) Error() string { return w.Fault.Error() }

// Unwrap gives the refusal.
func (w *Waiting) Unwrap() error { return w.Fault }

// refuse answers a request that was not admitted: one that waits learns its place (D-2.3).
func refuse(w http.ResponseWriter, r *http.Request, err error) error {
	var waiting *Waiting
	if !errors.As(err, &waiting) {
		return err
	}
	h := w.Header()
	if waiting.Ticket != "" {
		h.Set(api.HeaderQueueTicket, waiting.Ticket)
	}
	h.Set(api.HeaderDownloadClass, waiting.Wait.Class)
	if waiting.Wait.Known {
		h.Set(api.HeaderQueuePosition, strconv.Itoa(waiting.Wait.Position))
		if at := waiting.Wait.StartsAt; at != nil {
			h.Set(api.HeaderStartsAt, at.UTC().Format(time.RFC3339))
		}
	}
	request.From(r.Context()).Cause = err
	p := problem.Of(err)
	p.Queue = &waiting.Wait
	problem.Send(w, r, p)
	return nil
}
