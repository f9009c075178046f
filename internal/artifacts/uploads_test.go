package artifacts_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

func TestUpload(t *testing.T) {
	h := newHarbour(t)
	ctx := t.Context()
	const text = "hello world"
	u, err := h.StartUpload(ctx, h.ann, artifacts.NewUpload{
		Repository: "r", Path: "d/f", MediaType: "text/plain", Size: int64(len(text)), Digest: digestOf(text), IfNoneMatch: "*",
	})
	ok(t, err)
	end, err := h.AppendUpload(ctx, h.ann, u.ID, 0, strings.NewReader(text[:6]))
	ok(t, err)
	for _, p := range []identity.Principal{h.bob, h.operator} {
		_, err = h.Upload(ctx, p, u.ID)
		refused(t, err, fault.NotFound)
		_, err = h.AppendUpload(ctx, p, u.ID, end, strings.NewReader(text[6:]))
		refused(t, err, fault.NotFound)
		refused(t, h.AbandonUpload(ctx, p, u.ID), fault.NotFound)
	}
	_, err = h.AppendUpload(ctx, h.ann, u.ID, 5, strings.NewReader("x"))
	refused(t, err, fault.Conflict)
	_, _, err = h.FinishUpload(ctx, h.ann, u.ID)
	refused(t, err, fault.Conflict)
	end, err = h.AppendUpload(ctx, h.ann, u.ID, end, strings.NewReader(text[6:]+" and more than was said"))
	ok(t, err)
	if end != u.Size {
		t.Fatalf("at %d", end)
	}
	f, created, err := h.FinishUpload(ctx, h.ann, u.ID)
	ok(t, err)
	if !created || f.Revision != 1 || f.MediaType != "text/plain" || h.content(f) != text {
		t.Errorf("got %+v, %v", f, created)
	}
	again, created, err := h.FinishUpload(ctx, h.ann, u.ID)
	ok(t, err)
	if !created || again != f {
		t.Errorf("got %+v, %v", again, created)
	}
	u, err = h.Upload(ctx, h.ann, u.ID)
	ok(t, err)
	if u.Offset != u.Size || u.Revision != 1 {
		t.Errorf("got %+v", u)
	}
}

// TestUploadFinishesAfterCrash: the bytes are there and sealed, the process dies before the revision is written. Whoever
// asks next finds the full offset only together with the file.
func TestUploadFinishesAfterCrash(t *testing.T) {
	h := newHarbour(t)
	ctx := t.Context()
	u, err := h.StartUpload(ctx, h.ann, artifacts.NewUpload{Repository: "r", Path: "f", Size: 5})
	ok(t, err)
	_, err = h.AppendUpload(ctx, h.ann, u.ID, 0, strings.NewReader("hello"))
	ok(t, err)
	crash := errors.New("killed")
	h.blobs.sealed = func() error { return crash }
	if _, err := h.Upload(ctx, h.ann, u.ID); !errors.Is(err, crash) {
		t.Fatalf("got %v", err)
	}
	_, err = h.Stat(ctx, h.ann, "r", "f")
	refused(t, err, fault.NotFound)
	h.blobs.sealed = nil
	u, err = h.Upload(ctx, h.ann, u.ID)
	ok(t, err)
	f, err := h.Stat(ctx, h.ann, "r", "f")
	ok(t, err)
	if u.Offset != 5 || u.Revision != f.Revision || h.content(f) != "hello" {
		t.Errorf("got %+v, %+v", u, f)
	}
}

func TestUploadRefusals(t *testing.T) {
	h := newHarbour(t)
	ctx := t.Context()
	for name, n := range map[string]artifacts.NewUpload{
		"repository": {Repository: "../x", Path: "f"},
		"path":       {Repository: "r", Path: "/f"},
		"mediaType":  {Repository: "r", Path: "f", MediaType: "x"},
		"size":       {Repository: "r", Path: "f", Size: -1},
		"sha256":     {Repository: "r", Path: "f", Digest: "abc"},
		"If-Match":   {Repository: "r", Path: "f", IfMatch: "abc"},
	} {
		_, err := h.StartUpload(ctx, h.ann, n)
		field(t, err, name)
	}
	_, err := h.StartUpload(ctx, h.ann, artifacts.NewUpload{Repository: "r", Path: "f", IfMatch: "*"})
	refused(t, err, fault.PreconditionFails)

	// A wrong digest ends the upload: it can never go well.
	u, err := h.StartUpload(ctx, h.ann, artifacts.NewUpload{Repository: "r", Path: "f", Size: 1, Digest: digestOf("y")})
	ok(t, err)
	_, err = h.AppendUpload(ctx, h.ann, u.ID, 0, strings.NewReader("x"))
	ok(t, err)
	_, _, err = h.FinishUpload(ctx, h.ann, u.ID)
	refused(t, err, fault.IntegrityMismatch)
	_, err = h.Upload(ctx, h.ann, u.ID)
	refused(t, err, fault.NotFound)

	// So does a file that came meanwhile.
	u, err = h.StartUpload(ctx, h.ann, artifacts.NewUpload{Repository: "r", Path: "f", IfNoneMatch: "*"})
	ok(t, err)
	h.put("f", "first")
	_, _, err = h.FinishUpload(ctx, h.ann, u.ID)
	refused(t, err, fault.PreconditionFails)

	// A role that was taken away stops it.
	h.grant(h.ci, identity.Write)
	u, err = h.StartUpload(ctx, h.ci, artifacts.NewUpload{Repository: "r", Path: "g", Size: 2})
	ok(t, err)
	_, err = h.AppendUpload(ctx, h.ci, u.ID, 0, strings.NewReader("x"))
	ok(t, err)
	h.grant(h.ci, identity.Read)
	_, err = h.AppendUpload(ctx, h.ci, u.ID, 1, strings.NewReader("y"))
	refused(t, err, fault.Forbidden)

	for range 5 {
		_, err = h.StartUpload(ctx, h.ann, artifacts.NewUpload{Repository: "r", Path: "many", Size: 1})
		ok(t, err)
	}
	_, err = h.StartUpload(ctx, h.ann, artifacts.NewUpload{Repository: "r", Path: "many", Size: 1})
	refused(t, err, fault.RateLimited)
}

// TestSweep: an upload lives as long as bytes come, and 24 hours after the last.
func TestSweep(t *testing.T) {
	h := newHarbour(t)
	ctx := t.Context()
	start := func(path string) artifacts.Upload {
		u, err := h.StartUpload(ctx, h.ann, artifacts.NewUpload{Repository: "r", Path: path, Size: 10})
		ok(t, err)
		_, err = h.AppendUpload(ctx, h.ann, u.ID, 0, strings.NewReader("x"))
		ok(t, err)
		return u
	}
	left, kept := start("left"), start("kept")
	h.clock.advance(23 * time.Hour)
	_, err := h.AppendUpload(ctx, h.ann, kept.ID, 1, strings.NewReader("y"))
	ok(t, err)
	h.clock.advance(2 * time.Hour)
	_, err = h.Upload(ctx, h.ann, left.ID)
	refused(t, err, fault.NotFound)
	n, err := h.Sweep(ctx)
	ok(t, err)
	if n != 1 {
		t.Errorf("%d dropped", n)
	}
	u, err := h.Upload(ctx, h.ann, kept.ID)
	ok(t, err)
	if u.Offset != 2 {
		t.Errorf("at %d", u.Offset)
	}
	ok(t, h.AbandonUpload(ctx, h.ann, kept.ID))
	_, err = h.Upload(ctx, h.ann, kept.ID)
	refused(t, err, fault.NotFound)
}

func TestRunSweepsAtOnceAndEnds(t *testing.T) {
	h := newHarbour(t)
	u, err := h.StartUpload(t.Context(), h.ann, artifacts.NewUpload{Repository: "r", Path: "f", Size: 10})
	ok(t, err)
	h.clock.advance(25 * time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	var log bytes.Buffer
	swept := slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		cancel()
		return log.Write(p)
	}), nil))
	ok(t, h.Run(ctx, swept))
	if !strings.Contains(log.String(), "count=1") {
		t.Errorf("log: %s", log.String())
	}
	_, err = h.store.Upload(t.Context(), u.ID)
	refused(t, err, fault.NotFound)
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
