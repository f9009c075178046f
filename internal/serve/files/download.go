package files

import (
	"context"
	"mime"
	"net/http"
	"os"
	"path"
	"strings"

	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/delivery"
	"github.com/roadstead/roadstead/internal/downloads"
	"github.com/roadstead/roadstead/internal/governor"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/serve/request"
)

// Get answers GET and HEAD of a file by its path.
func (h *Handlers) Get(w http.ResponseWriter, r *http.Request) error {
	repository, name, err := target(r.URL)
	if err != nil {
		return err
	}
	caller := request.From(r.Context()).Caller
	f, err := h.store.Stat(r.Context(), caller, repository, name)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "private, no-cache")
	return h.download(w, r, caller, f, f.RevisionID())
}

// Object answers GET and HEAD of an object by its digest.
func (h *Handlers) Object(w http.ResponseWriter, r *http.Request) error {
	caller := request.From(r.Context()).Caller
	f, err := h.store.StatDigest(r.Context(), caller, r.PathValue("repository"), r.PathValue("digest"))
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	return h.download(w, r, caller, f, f.Digest)
}

// Link answers GET and HEAD of a share link. The link is the principal, not who follows it.
func (h *Handlers) Link(w http.ResponseWriter, r *http.Request) error {
	caller, f, err := h.store.ResolveLink(r.Context(), r.PathValue("token"))
	if err != nil {
		return err
	}
	request.From(r.Context()).Caller = caller
	w.Header().Set("Cache-Control", "private, no-cache")
	w.Header().Set("Referrer-Policy", "no-referrer") // the token is in the address
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(f.Path)}))
	return h.download(w, r, caller, f, f.RevisionID())
}

// download answers with the bytes of a file: authorization and metadata are behind, then comes the plan, which may
// need no bytes, and only then a seat (D-2.6).
func (h *Handlers) download(w http.ResponseWriter, r *http.Request, caller identity.Principal, f artifacts.File, objectID string) error {
	asked, err := readQueueHeaders(r.Header)
	if err != nil {
		return err
	}
	answer, err := delivery.Plan(r, h.content(r.Context(), f))
	if err != nil {
		return err
	}
	if err := answer.Refusal(); err != nil {
		answer.SetHeader(w.Header())
		return err
	}
	guard(w.Header())
	if !answer.Body {
		answer.SetHeader(w.Header())
		w.WriteHeader(answer.Status)
		return nil
	}
	ask := downloads.Request{
		Principal: caller, ObjectID: objectID, Size: f.Size, DownloadID: asked.id, Class: asked.class, Ticket: asked.ticket,
		ClientAddr: request.From(r.Context()).Client, From: answer.Span.From, To: answer.Span.To, Tail: answer.Span.Tail,
	}
	pass, err := h.queue.Admit(r.Context(), ask)
	if err != nil {
		return h.refuse(w, r, ask, err)
	}
	// The ranges of one session share one part of the link (D-2.1).
	return h.send(w, r, answer, pass, h.link.Flow(caller.ID, ask.Key()))
}

// send sends an admitted answer. Whatever happens, panics included, the flow and the pass are closed (D-2.13).
func (h *Handlers) send(w http.ResponseWriter, r *http.Request, answer *delivery.Answer, pass *downloads.Pass, flow *governor.Flow) error {
	var done delivery.Result // until it is whole it says that nothing was delivered (D-2.7)
	defer func() {
		flow.Close()
		pass.Close(done.From, done.To, done.Whole)
	}()
	pass.Header(w.Header())
	flow.Steer(pass.Lane())
	sent := func(n int64) { flow.Steer(pass.Sent(n, flow.Paced())) }
	ctx, over := pass.Context(r.Context())
	defer over()
	var err error
	done, err = delivery.Send(w, r.WithContext(ctx), answer, flow, delivery.Options{Idle: h.idle(), OnSent: sent})
	return err
}

func (h *Handlers) content(ctx context.Context, f artifacts.File) delivery.Content {
	return delivery.Content{
		Name: f.Path, Digest: strings.TrimPrefix(f.Digest, "sha256:"), MediaType: f.MediaType, Size: f.Size, ModTime: f.CreatedAt,
		Open: func() (*os.File, error) { return h.store.Open(ctx, f) },
	}
}

// guard keeps a browser from running what somebody uploaded as a page of this server.
func guard(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
}
