package files

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/downloads"
	"github.com/roadstead/roadstead/internal/serve/problem"
	"github.com/roadstead/roadstead/internal/serve/request"
)

// Queue gives responses leave to send (D-2).
type Queue interface {
	// Admit blocks while the request is held (D-2.4). Its error is *downloads.Waiting while the session waits,
	// otherwise a fault; busy ones name a time to come back. The Pass must be closed.
	Admit(ctx context.Context, r downloads.Request) (*downloads.Pass, error)
	// Why explains the wait of a session; nil when it does not wait. It does not block.
	Why(k session.Key) *api.Why
}

// refuse answers a request that was not admitted: one that waits learns its place (D-2.3), and the reasons if it asks
// for them with Prefer: why (D-11.1).
func (h *Handlers) refuse(w http.ResponseWriter, r *http.Request, ask downloads.Request, err error) error {
	waiting, ok := errors.AsType[*downloads.Waiting](err)
	if !ok {
		return err
	}
	waiting.Header(w.Header())
	info := request.From(r.Context())
	info.Cause, info.Poll = err, true
	p := problem.Of(err)
	p.Queue = &waiting.Wait
	if prefers(r.Header, api.PreferWhy) {
		p.Queue.Why = h.queue.Why(ask.Key())
		w.Header().Set("Preference-Applied", api.PreferWhy)
	}
	problem.Send(w, r, p)
	return nil
}

// prefers reports whether a request names a preference (RFC 7240).
func prefers(h http.Header, what string) bool {
	for _, line := range h.Values("Prefer") {
		for one := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(one, ";")
			if strings.EqualFold(strings.TrimSpace(name), what) {
				return true
			}
		}
	}
	return false
}
