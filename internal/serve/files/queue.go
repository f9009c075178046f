package files

import (
	"context"
	"errors"
	"net/http"

	"github.com/roadstead/roadstead/internal/downloads"
	"github.com/roadstead/roadstead/internal/serve/problem"
	"github.com/roadstead/roadstead/internal/serve/request"
)

// Queue gives responses leave to send (D-2).
type Queue interface {
	// Admit blocks while the request is held (D-2.4). Its error is *downloads.Waiting while the session waits,
	// otherwise a fault; busy ones name a time to come back. The Pass must be closed.
	Admit(ctx context.Context, r downloads.Request) (*downloads.Pass, error)
}

// refuse answers a request that was not admitted: one that waits learns its place (D-2.3).
func refuse(w http.ResponseWriter, r *http.Request, err error) error {
	waiting, ok := errors.AsType[*downloads.Waiting](err)
	if !ok {
		return err
	}
	waiting.Header(w.Header())
	request.From(r.Context()).Cause = err
	p := problem.Of(err)
	p.Queue = &waiting.Wait
	problem.Send(w, r, p)
	return nil
}
