package files

import (
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/attempts"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/serve/request"
)

// Runs finds the results of Runs; another tenant's are not_found.
type Runs interface {
	Result(ctx context.Context, p identity.Principal, run, name string) (api.Result, error)
}

// Attempts says what a runner may read and takes what it uploads.
type Attempts interface {
	// MayRead gives the size of an object that the Attempt's job names; any other is not_found.
	MayRead(ctx context.Context, c attempts.Caller, attempt string, fence int64, digest string) (size int64, err error)
	// Upload takes the bytes of a grant, whose secret is the credential.
	Upload(ctx context.Context, secret string, length int64, body io.Reader) error
}

// RunFiles are the endpoints for the bytes of Runs.
type RunFiles struct {
	*Handlers
	Runs     Runs
	Attempts Attempts
}

// Result answers GET and HEAD of a Run's result. Like any large file it waits its turn.
func (h *RunFiles) Result(w http.ResponseWriter, r *http.Request) error {
	caller := request.From(r.Context()).Caller
	res, err := h.Runs.Result(r.Context(), caller, r.PathValue("run"), r.PathValue("name"))
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "private, no-cache")
	f := artifacts.File{Path: res.Name, Digest: res.Digest, Size: res.Size, MediaType: res.MediaType}
	return h.download(w, r, caller, f, f.Digest)
}

// JobObject answers GET of an object that an Attempt's job names. The runner waits its turn too, as a principal of
// its own.
func (h *RunFiles) JobObject(w http.ResponseWriter, r *http.Request) error {
	runner := request.From(r.Context()).Runner
	fence, err := strconv.ParseInt(r.Header.Get(api.HeaderFence), 10, 64)
	if err != nil {
		return fault.Invalid(api.HeaderFence, "must be the Attempt's fence")
	}
	digest := r.PathValue("digest")
	size, err := h.Attempts.MayRead(r.Context(), runner, r.PathValue("attempt"), fence, digest)
	if err != nil {
		return err
	}
	caller := identity.Principal{ID: runner.Runner, Kind: identity.Service, Name: "runner", Ceiling: class.Release}
	f := artifacts.File{Path: digest, Digest: digest, Size: size, MediaType: "application/octet-stream"}
	return h.download(w, r, caller, f, digest)
}

// Upload takes what an Attempt was granted to upload.
func (h *RunFiles) Upload(w http.ResponseWriter, r *http.Request) error {
	body := newPatientBody(w, r.Body, r.ContentLength)
	if err := h.Attempts.Upload(r.Context(), request.From(r.Context()).Grant, r.ContentLength, body); err != nil {
		return body.blame(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
