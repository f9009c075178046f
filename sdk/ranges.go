package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/roadstead/roadstead/api"
)

// changedError says that the server's object is not the one the partial file belongs to.
type changedError struct{ reason string }

func (e *changedError) Error() string { return e.reason }

var errStalled = errors.New("no byte moved within the attempt's time limit")

// watch is a context that ends when an attempt moves no byte for the given time. Each call of extend starts the time
// anew.
func watch(ctx context.Context, limit time.Duration) (watched context.Context, extend func(time.Duration), stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() { cancel(errStalled) })
	return watched, func(d time.Duration) { timer.Reset(d) }, func() { timer.Stop(); cancel(nil) }
}

// fetch asks for the next range and writes what comes. What was received stays received, whatever the error.
func (d *download) fetch(parent context.Context) error {
	ctx, extend, stop := watch(parent, d.c.retry.AttemptTimeout)
	defer stop()
	req, err := d.c.request(ctx, http.MethodGet, d.req.URL, nil)
	if err != nil {
		return err
	}
	d.headers(req.Header)
	resp, err := d.c.http.Do(req)
	if err != nil {
		return attemptError(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	d.keepPlace(resp.Header)
	length, err := d.judge(resp)
	if err != nil || length == 0 {
		return err
	}
	return d.copy(ctx, resp.Body, length, func() { extend(d.c.retry.AttemptTimeout) })
}

func (d *download) headers(h http.Header) {
	h.Set(api.HeaderDownloadID, d.cp.ID)
	h.Set("Accept-Encoding", "identity") // ranges and digests are of the bytes as stored
	if d.req.Class != "" {
		h.Set(api.HeaderDownloadClass, d.req.Class)
	}
	if d.cp.Ticket != "" {
		h.Set(api.HeaderQueueTicket, d.cp.Ticket)
	}
	if d.req.Why {
		h.Set("Prefer", api.PreferWhy)
	}
	if d.plain && d.offset == 0 {
		return
	}
	end := d.offset + d.req.RangeBytes
	if d.cp.Size >= 0 && end >= d.cp.Size {
		// The last range is left open: a bounded one to the last byte looks like a look at a ZIP directory and would
		// hold the seat for some seconds more (D-2.7, D-2.9).
		h.Set("Range", fmt.Sprintf("bytes=%d-", d.offset))
	} else {
		h.Set("Range", fmt.Sprintf("bytes=%d-%d", d.offset, end-1))
	}
	if d.cp.ETag != "" {
		h.Set("If-Range", d.cp.ETag)
	}
}

// keepPlace remembers the newest ticket and the class applied, which come with every answer (D-2.3, D-8.1).
func (d *download) keepPlace(h http.Header) {
	if t := h.Get(api.HeaderQueueTicket); t != "" {
		d.cp.Ticket = t
	}
	if c := h.Get(api.HeaderDownloadClass); c != "" {
		d.class = c
	}
}

// judge decides what an answer's head means: how many bytes of the body are the next ones of the file, or why there
// are none.
func (d *download) judge(resp *http.Response) (length int64, err error) {
	switch resp.StatusCode {
	case http.StatusPartialContent:
		start, end, size, err := parseContentRange(resp.Header.Get("Content-Range"))
		if err != nil {
			return 0, broken(err)
		}
		if err := d.adopt(resp, size); err != nil {
			return 0, err
		}
		if start != d.offset {
			return 0, broken(fmt.Errorf("asked for bytes from %d, the answer begins at %d", d.offset, start))
		}
		return end - start + 1, nil
	case http.StatusOK:
		if err := d.adopt(resp, resp.ContentLength); err != nil {
			return 0, err
		}
		if d.offset > 0 {
			return 0, &changedError{"the server can't continue this object in the middle"}
		}
		return d.cp.Size, nil
	case http.StatusRequestedRangeNotSatisfiable:
		if d.offset == 0 && !d.plain { // an empty object has no range to give
			d.plain = true
			return 0, nil
		}
		return 0, &changedError{"the object is shorter than before"}
	case http.StatusPreconditionFailed:
		return 0, &changedError{"the object has changed on the server"}
	}
	return 0, refusal(resp, d.c.clock.Wall())
}

// adopt pins the revision with the first answer, and holds all others against it.
func (d *download) adopt(resp *http.Response, size int64) error {
	tag, digest := strongTag(resp.Header.Get("ETag")), answerDigest(resp.Header)
	if size < 0 {
		return fail(ErrNetwork, nil, "the server doesn't say how long the object is")
	}
	if d.cp.Size < 0 {
		if d.req.Digest != "" && digest != "" && digest != d.req.Digest {
			return fail(ErrChanged, nil, "the server has %s, not %s", digest, d.req.Digest)
		}
		d.cp.ETag, d.cp.Digest, d.cp.Size, d.rate.size = tag, digest, size, size
		return nil
	}
	if tag != d.cp.ETag || size != d.cp.Size || (digest != "" && digest != d.cp.Digest) {
		return &changedError{"the object has changed on the server"}
	}
	return nil
}

// copy moves exactly length bytes from the body to the file and the hash.
func (d *download) copy(ctx context.Context, body io.Reader, length int64, alive func()) error {
	buf := make([]byte, min(length, 256<<10))
	for length > 0 {
		n, err := body.Read(buf[:min(int64(len(buf)), length)])
		if n > 0 {
			alive()
			if _, werr := d.file.WriteAt(buf[:n], d.offset); werr != nil {
				return fail(ErrLocal, werr, "write the partial file")
			}
			_, _ = d.hash.Write(buf[:n]) // never fails
			d.offset += int64(n)
			length -= int64(n)
			d.rate.at(d.offset, false)
		}
		if length > 0 && err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return attemptError(ctx, err)
		}
	}
	return nil
}

// attemptError is a broken attempt; one that stalled says so instead of "context canceled".
func attemptError(ctx context.Context, err error) error {
	if context.Cause(ctx) == errStalled {
		err = errStalled
	}
	return broken(err)
}

// parseContentRange reads "bytes first-last/size" with a known size.
func parseContentRange(s string) (first, last, size int64, err error) {
	bad := fmt.Errorf("the answer's Content-Range %q is not understood", s)
	rest, ok := strings.CutPrefix(s, "bytes ")
	span, total, ok2 := strings.Cut(rest, "/")
	a, b, ok3 := strings.Cut(span, "-")
	if !ok || !ok2 || !ok3 {
		return 0, 0, 0, bad
	}
	var nums [3]int64
	for i, t := range []string{a, b, total} {
		n, err := strconv.ParseUint(t, 10, 63)
		if err != nil {
			return 0, 0, 0, bad
		}
		nums[i] = int64(n)
	}
	if nums[0] > nums[1] || nums[1] >= nums[2] {
		return 0, 0, 0, bad
	}
	return nums[0], nums[1], nums[2], nil
}
