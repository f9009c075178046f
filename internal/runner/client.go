package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/roadstead/roadstead/api"
)

// client calls the server as the runner.
type client struct {
	server string
	key    string
	http   *http.Client
}

func newClient(server string) *client {
	return &client{server: strings.TrimSuffix(server, "/"), http: &http.Client{}}
}

// refusal is an answer that isn't success.
type refusal struct {
	status  int
	after   time.Duration
	problem api.Problem
}

func (r *refusal) Error() string {
	if r.problem.Message != "" {
		return fmt.Sprintf("%d: %s", r.status, r.problem.Message)
	}
	return "status " + strconv.Itoa(r.status)
}

func isCode(err error, status int) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.status == status
}

// isLost reports whether the Attempt is somebody else's.
func isLost(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.status == http.StatusConflict
}

// final reports whether asking again would hear the same.
func final(err error) bool {
	if errors.Is(err, errChanged) {
		return true
	}
	r, ok := errors.AsType[*refusal](err)
	return ok && r.status >= 400 && r.status < 500 && r.status != http.StatusTooManyRequests && r.status != http.StatusRequestTimeout
}

func (c *client) post(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.server+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.do(req, c.key)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was read, or nobody wants it
	if out == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("reading the server's answer: %w", err)
	}
	return nil
}

// do sends a request; an answer that isn't success is a *refusal.
func (c *client) do(req *http.Request, secret string) (*http.Response, error) {
	if secret != "" {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	r := &refusal{status: resp.StatusCode}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		r.after = time.Duration(seconds) * time.Second
	}
	// A body that is no problem document leaves the status to tell.
	_ = json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&r.problem)
	return nil, r
}

// patiently repeats a call until it succeeds, hears a final refusal, or the context ends. Busy is no failure: it waits
// as long as the server says.
func patiently(ctx context.Context, call func() error) error {
	wait := 500 * time.Millisecond
	for {
		err := call()
		if err == nil || final(err) || ctx.Err() != nil {
			return err
		}
		after := wait
		if r, ok := errors.AsType[*refusal](err); ok && r.after > 0 {
			after = r.after
		}
		pause(ctx, after)
		if ctx.Err() != nil {
			return err
		}
		wait = min(2*wait, 10*time.Second)
	}
}

// fetch writes an object that the Attempt's job names to a new file, going on where it was cut. The digest is checked by who asks.
func (c *client) fetch(ctx context.Context, h *held, o api.JobObject, f *os.File) error {
	path := "/api/v1/runner/attempts/" + h.assignment.Attempt + "/objects/" + o.Digest
	ticket := ""
	return patiently(ctx, func() error {
		at, err := f.Seek(0, io.SeekEnd)
		if err != nil {
			return err
		}
		if at >= o.Size && o.Size > 0 {
			return nil
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+path, nil)
		if err != nil {
			return err
		}
		req.Header.Set(api.HeaderFence, strconv.FormatInt(h.assignment.Fence, 10))
		req.Header.Set(api.HeaderDownloadID, h.assignment.Attempt)
		if ticket != "" {
			req.Header.Set(api.HeaderQueueTicket, ticket)
		}
		if at > 0 {
			req.Header.Set("Range", fmt.Sprintf("bytes=%d-", at))
		}
		resp, err := c.do(req, c.key)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if at > 0 && resp.StatusCode != http.StatusPartialContent {
			if err := f.Truncate(0); err != nil {
				return err
			}
			if _, err := f.Seek(0, io.SeekStart); err != nil {
				return err
			}
		}
		if t := resp.Header.Get(api.HeaderQueueTicket); t != "" {
			ticket = t
		}
		_, err = io.Copy(f, resp.Body)
		return err
	})
}

// errChanged says that a file is not the one any more whose digest was taken: to send it again is no use.
var errChanged = errors.New("the file was changed while it was being stored")

// upload puts a file where a grant says.
func (c *client) upload(ctx context.Context, g api.UploadGrant, f *os.File, size int64) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, c.server+g.Path, io.NewSectionReader(f, 0, size))
	if err != nil {
		return err
	}
	req.ContentLength = size
	resp, err := c.do(req, g.Grant)
	if err == nil {
		_ = resp.Body.Close() // it is empty
	}
	return err
}
