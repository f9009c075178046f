// Package files carries the contents of files over HTTP: by path, by digest and by share link.
package files

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/governor"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/serve/request"
)

// Store keeps the files. What the caller may not see is not_found.
type Store interface {
	// Put blocks until the bytes and the revision are durable; nothing is kept when body fails.
	Put(ctx context.Context, p identity.Principal, repository, path, mediaType string, body io.Reader, want artifacts.PutOptions) (f artifacts.File, created bool, err error)
	Stat(ctx context.Context, p identity.Principal, repository, path string) (artifacts.File, error)
	StatDigest(ctx context.Context, p identity.Principal, repository, digest string) (artifacts.File, error)
	// Open gives each caller a descriptor of its own.
	Open(ctx context.Context, f artifacts.File) (*os.File, error)
	Delete(ctx context.Context, p identity.Principal, repository, path string, want artifacts.PutOptions) error
	ResolveLink(ctx context.Context, token string) (identity.Principal, artifacts.File, error)
}

// Handlers are the endpoints of this package.
type Handlers struct {
	idle  func() time.Duration
	store Store
	queue Queue
	link  *governor.Governor
}

// New makes the endpoints. A response whose socket takes nothing for as long as idle says at its start, while it was
// offered bytes, is cut (D-2.8).
func New(idle func() time.Duration, store Store, queue Queue, link *governor.Governor) *Handlers {
	return &Handlers{idle: idle, store: store, queue: queue, link: link}
}

// Put stores the request's body as the next revision of a file: 201 for a new path, 200 otherwise.
func (h *Handlers) Put(w http.ResponseWriter, r *http.Request) error {
	repository, path, err := target(r.URL)
	if err != nil {
		return err
	}
	for _, name := range []string{"Content-Range", "Content-Encoding"} {
		if r.Header.Get(name) != "" {
			return fault.Invalid(name, "must be absent: a file is stored whole and as it is")
		}
	}
	want := artifacts.PutOptions{
		IfMatch: joined(r.Header, "If-Match"), IfNoneMatch: joined(r.Header, "If-None-Match"), Size: r.ContentLength,
	}
	if want.Digest, err = wantedDigest(r.Header); err != nil {
		return err
	}
	body := newPatientBody(w, r.Body, r.ContentLength)
	f, created, err := h.store.Put(r.Context(), request.From(r.Context()).Caller, repository, path, r.Header.Get("Content-Type"), body, want)
	if err != nil {
		return body.blame(err)
	}
	w.Header().Set("ETag", f.ETag())
	w.Header().Set("Content-Type", "application/json")
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	w.WriteHeader(status)
	return json.NewEncoder(w).Encode(wireFile(f))
}

// Delete deletes a file.
func (h *Handlers) Delete(w http.ResponseWriter, r *http.Request) error {
	repository, path, err := target(r.URL)
	if err != nil {
		return err
	}
	want := artifacts.PutOptions{IfMatch: joined(r.Header, "If-Match"), IfNoneMatch: joined(r.Header, "If-None-Match")}
	if err := h.store.Delete(r.Context(), request.From(r.Context()).Caller, repository, path, want); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func wireFile(f artifacts.File) api.File {
	return api.File{
		Repository: f.Repository, Path: f.Path, Revision: f.Revision, Digest: f.Digest, Size: f.Size,
		MediaType: f.MediaType, CreatedAt: f.CreatedAt, CreatedBy: f.CreatedBy,
	}
}
