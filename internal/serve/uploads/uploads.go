// Package uploads serves resumable uploads by the tus 1.0 protocol.
package uploads

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/tus/tusd/v2/pkg/handler"
	"github.com/tus/tusd/v2/pkg/memorylocker"
	"golang.org/x/exp/slog"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/serve/problem"
	"github.com/roadstead/roadstead/internal/serve/request"
)

// Service keeps the uploads; *artifacts.Service is one. Whatever offset it returns is durable.
type Service interface {
	StartUpload(ctx context.Context, p identity.Principal, n artifacts.NewUpload) (artifacts.Upload, error)
	// Upload finishes an upload whose bytes are all there, so that the full offset is never seen before the file is.
	Upload(ctx context.Context, p identity.Principal, id string) (artifacts.Upload, error)
	AppendUpload(ctx context.Context, p identity.Principal, id string, offset int64, r io.Reader) (end int64, err error)
	FinishUpload(ctx context.Context, p identity.Principal, id string) (f artifacts.File, created bool, err error)
	AbandonUpload(ctx context.Context, p identity.Principal, id string) error
}

// New makes the handler of api.PathUploads. The edge before it authenticates: the caller is in the request's Info.
//
// A client creates an upload by POST with Upload-Length and Upload-Metadata (base64 values): repository and path,
// and, if it likes, mediaType, sha256, ifMatch, ifNoneMatch. It then sends bytes by PATCH, asks by HEAD how far it
// is, and may give it up by DELETE. The last byte's answer comes when the file's revision is durable.
func New(s Service) (http.Handler, error) {
	composer := handler.NewStoreComposer()
	st := store{service: s}
	composer.UseCore(st)
	composer.UseTerminater(st)
	memorylocker.New().UseIn(composer)
	tus, err := handler.NewHandler(handler.Config{
		StoreComposer:           composer,
		BasePath:                api.PathUploads,
		DisableDownload:         true,
		DisableConcatenation:    true,
		Cors:                    &handler.CorsConfig{Disable: true},
		RespectForwardedHeaders: true,
		Logger:                  slog.New(slog.NewTextHandler(io.Discard, nil)), // the edge logs every request
	})
	if err != nil {
		return nil, err
	}
	stripped := http.StripPrefix(strings.TrimSuffix(api.PathUploads, "/"), tus)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The address in Location is the one the client used, as the edge made it out; what the client says of
		// it counts only if it is a trusted proxy, and the edge has seen to that.
		info := request.From(r.Context())
		r = r.Clone(r.Context())
		r.Header.Del("Forwarded")
		r.Header.Set("X-Forwarded-Host", info.Host)
		r.Header.Set("X-Forwarded-Proto", info.Scheme)
		r.Header.Del("X-HTTP-Method-Override")
		stripped.ServeHTTP(w, r)
	}), nil
}

// store lets the library keep uploads in the service.
type store struct{ service Service }

// NewUpload begins an upload.
func (s store) NewUpload(ctx context.Context, info handler.FileInfo) (handler.Upload, error) {
	meta := info.MetaData
	n := artifacts.NewUpload{
		Repository: meta["repository"], Path: meta["path"], MediaType: meta["mediaType"], Size: info.Size,
		Digest: meta["sha256"], IfMatch: meta["ifMatch"], IfNoneMatch: meta["ifNoneMatch"],
	}
	if n.Digest != "" && !strings.Contains(n.Digest, ":") {
		n.Digest = "sha256:" + n.Digest
	}
	u, err := s.service.StartUpload(ctx, caller(ctx), n)
	if err != nil {
		return nil, refuse(ctx, err)
	}
	return &upload{service: s.service, Upload: u}, nil
}

// GetUpload finds an upload of the caller.
func (s store) GetUpload(ctx context.Context, id string) (handler.Upload, error) {
	u, err := s.service.Upload(ctx, caller(ctx), id)
	if err != nil {
		return nil, refuse(ctx, err)
	}
	return &upload{service: s.service, Upload: u}, nil
}

// AsTerminatableUpload gives the upload as one that can be given up.
func (s store) AsTerminatableUpload(u handler.Upload) handler.TerminatableUpload { return u.(*upload) }

// upload is one upload within one request.
type upload struct {
	service Service
	artifacts.Upload
}

// WriteChunk appends; it counts durable bytes only.
func (u *upload) WriteChunk(ctx context.Context, offset int64, src io.Reader) (int64, error) {
	end, err := u.service.AppendUpload(ctx, caller(ctx), u.ID, offset, src)
	if err != nil {
		return max(end-offset, 0), refuse(ctx, err)
	}
	u.Offset = end
	return end - offset, nil
}

// GetInfo says how far the upload is.
func (u *upload) GetInfo(context.Context) (handler.FileInfo, error) {
	return handler.FileInfo{
		ID: u.ID, Size: u.Size, Offset: u.Offset,
		MetaData: handler.MetaData{"repository": u.Repository, "path": u.Path, "mediaType": u.MediaType},
	}, nil
}

// GetReader is not offered: the file is read at its path.
func (u *upload) GetReader(context.Context) (io.ReadCloser, error) {
	return nil, errors.New("an upload can't be read")
}

// FinishUpload makes the file's revision.
func (u *upload) FinishUpload(ctx context.Context) error {
	if _, _, err := u.service.FinishUpload(ctx, caller(ctx), u.ID); err != nil {
		return refuse(ctx, err)
	}
	return nil
}

// Terminate gives the upload up.
func (u *upload) Terminate(ctx context.Context) error {
	if err := u.service.AbandonUpload(ctx, caller(ctx), u.ID); err != nil {
		return refuse(ctx, err)
	}
	return nil
}

func caller(ctx context.Context) identity.Principal { return request.From(ctx).Caller }

// refuse renders a refusal as the rest of the native API does; the cause goes to the log only.
func refuse(ctx context.Context, err error) error {
	info := request.From(ctx)
	info.Cause = err
	p := problem.Of(err)
	p.RequestID = info.ID
	body, merr := json.Marshal(p)
	if merr != nil {
		return merr
	}
	header := handler.HTTPHeader{"Content-Type": problem.ContentType, "Cache-Control": "no-store"}
	if p.RetryAfterSeconds > 0 {
		header["Retry-After"] = strconv.FormatInt(p.RetryAfterSeconds, 10)
	}
	return handler.Error{
		ErrorCode: string(fault.From(err).Code), Message: p.Message,
		HTTPResponse: handler.HTTPResponse{StatusCode: p.Status, Body: string(body) + "\n", Header: header},
	}
}
