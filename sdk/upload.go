package sdk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"path"
	"time"
)

// Upload is one local file to store at one path.
type Upload struct {
	File       string // local file
	Repository string
	Path       string // path in the repository, without a leading slash
	MediaType  string // empty: by the path's extension, else application/octet-stream

	StateDir  string        // where unfinished uploads are remembered for later processes; empty: nowhere
	PutBytes  int64         // files up to this size go in one request; default 8 MiB
	PartBytes int64         // bytes of one request of a larger file; default 32 MiB
	WaitLimit time.Duration // as of Download
	Events    func(Event)   // may be nil
}

// Stored is a finished upload.
type Stored struct {
	Repository string `json:"repository"`
	Path       string `json:"path"`
	Size       int64  `json:"size"`
	Digest     string `json:"digest"`
	Unchanged  bool   `json:"unchanged"` // the server already had these bytes at this path; nothing was sent
}

// The server must hash and fsync what it received before it answers the last byte.
const commitTimeout = 10 * time.Minute

// upload is the state of one Upload call.
type upload struct {
	c      *Client
	req    Upload
	op     *operation
	rate   meter
	file   *os.File
	info   os.FileInfo
	digest string
}

// Upload stores a file: its SHA-256 is computed first and sent along, so that the server accepts exactly these bytes;
// large files go in parts and continue where an earlier attempt, of this process or another, ended. A file that the
// server already has at this path isn't sent again.
func (c *Client) Upload(ctx context.Context, req Upload) (Stored, error) {
	u := &upload{c: c, req: req.withDefaults(), op: c.operation(c.retry, req.Events)}
	if req.WaitLimit > 0 {
		u.op.limited, u.op.limit = true, c.clock.Mono()+req.WaitLimit
	}
	u.rate = meter{clock: c.clock, emit: u.op.emit}
	var err error
	if u.file, err = os.Open(req.File); err != nil {
		return Stored{}, fail(ErrLocal, err, "open the file to upload")
	}
	defer func() { _ = u.file.Close() }()
	if err := u.measure(ctx); err != nil {
		return Stored{}, err
	}
	done := Stored{Repository: req.Repository, Path: req.Path, Size: u.info.Size(), Digest: u.digest}
	if done.Unchanged, err = u.alreadyThere(ctx); err == nil && !done.Unchanged {
		if u.info.Size() <= u.req.PutBytes {
			err = u.op.attempt(ctx, u.put)
		} else {
			err = u.resumable(ctx)
		}
	}
	if err != nil {
		return Stored{}, err
	}
	if !done.Unchanged {
		u.op.emit(Done{Size: done.Size, Digest: done.Digest})
	}
	return done, nil
}

func (r Upload) withDefaults() Upload {
	if r.MediaType == "" {
		r.MediaType = mime.TypeByExtension(path.Ext(r.Path))
	}
	if r.MediaType == "" {
		r.MediaType = "application/octet-stream"
	}
	if r.PutBytes <= 0 {
		r.PutBytes = 8 << 20
	}
	if r.PartBytes <= 0 {
		r.PartBytes = 32 << 20
	}
	return r
}

// measure computes the digest of the local file.
func (u *upload) measure(ctx context.Context) (err error) {
	if u.info, err = u.file.Stat(); err != nil {
		return fail(ErrLocal, err, "look at the file to upload")
	}
	if !u.info.Mode().IsRegular() {
		return fail(ErrLocal, nil, "%s is not a regular file", u.req.File)
	}
	size := u.info.Size()
	u.rate.size = size
	h, last := sha256.New(), u.c.clock.Mono()
	buf := make([]byte, 1<<20)
	for offset := int64(0); ; {
		n, err := u.file.Read(buf)
		_, _ = h.Write(buf[:n]) // never fails
		offset += int64(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return fail(ErrLocal, err, "read the file to upload")
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if now := u.c.clock.Mono(); now-last >= meterEvery {
			last = now
			u.op.emit(Hashing{Offset: offset, Size: size})
		}
	}
	u.digest = digestPrefix + hex.EncodeToString(h.Sum(nil))
	return nil
}

// alreadyThere asks whether the path already holds these bytes: a folder that was half uploaded is then half done.
func (u *upload) alreadyThere(ctx context.Context) (bool, error) {
	head, err := u.c.Head(ctx, u.c.FileURL(u.req.Repository, u.req.Path))
	if e, ok := errors.AsType[*Error](err); ok && e.Status == http.StatusNotFound {
		return false, nil
	}
	return head.Digest == u.digest && head.Size == u.info.Size(), err
}

// put sends a small file in one request.
func (u *upload) put(parent context.Context) error {
	ctx, extend, stop := watch(parent, u.c.retry.AttemptTimeout)
	defer stop()
	size := u.info.Size()
	req, err := u.c.request(ctx, http.MethodPut, u.c.FileURL(u.req.Repository, u.req.Path), u.part(0, size, extend))
	if err != nil {
		return err
	}
	u.sized(req, size)
	req.Header.Set("Content-Type", u.req.MediaType)
	req.Header.Set("Repr-Digest", reprDigest(u.digest))
	resp, err := u.c.http.Do(req)
	if err != nil {
		return attemptError(ctx, err)
	}
	defer drain(resp.Body)
	if resp.StatusCode >= 300 {
		return u.explain(refusal(resp, u.c.clock.Wall()))
	}
	u.rate.at(size, true)
	return nil
}

// sized declares the body's length; a body worth sparing is sent only after the server agreed to take it.
func (u *upload) sized(req *http.Request, n int64) {
	req.ContentLength = n
	if n == 0 {
		req.Body = http.NoBody
	}
	if n > 256<<10 {
		req.Header.Set("Expect", "100-continue")
	}
}

// explain says why a digest didn't match when the cause is on this side.
func (u *upload) explain(e *Error) error {
	if errors.Is(e, ErrIntegrity) {
		if now, err := os.Stat(u.req.File); err == nil && (now.Size() != u.info.Size() || !now.ModTime().Equal(u.info.ModTime())) {
			return fail(ErrChanged, e, "%s changed while it was uploaded", u.req.File)
		}
	}
	return e
}

// part reads n bytes from offset for one request, keeps the attempt alive and the progress shown.
func (u *upload) part(offset, n int64, extend func(time.Duration)) io.Reader {
	return &partReader{u: u, r: io.NewSectionReader(u.file, offset, n), at: offset, end: offset + n, extend: extend}
}

type partReader struct {
	u       *upload
	r       io.Reader
	at, end int64
	extend  func(time.Duration)
}

func (p *partReader) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.at += int64(n)
	if n > 0 && p.at < p.end {
		p.extend(p.u.c.retry.AttemptTimeout)
	} else {
		p.extend(commitTimeout)
	}
	p.u.rate.at(p.at, false)
	return n, err
}
