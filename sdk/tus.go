package sdk

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/roadstead/roadstead/api"
)

const tusVersion = "1.0.0"

// pending is an unfinished upload as a later process finds it.
type pending struct {
	URL    string `json:"url"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// resumable sends a large file by the tus protocol. The server's count of bytes is the only truth about where to go
// on; an upload it has forgotten is begun anew.
func (u *upload) resumable(ctx context.Context) error {
	address, err := u.unfinished(), error(nil)
	for begun := 0; begun <= maxRestarts; begun++ {
		if address == "" {
			if address, err = u.create(ctx); err != nil {
				return err
			}
		}
		err = u.send(ctx, address)
		if !gone(err) {
			if err == nil || errors.Is(err, ErrIntegrity) || errors.Is(err, ErrChanged) { // done, or never to be
				u.forget()
			}
			return err
		}
		// A finished upload is gone too: the answer to its last part may have been lost.
		if there, herr := u.alreadyThere(ctx); herr != nil || there {
			u.forget()
			return herr
		}
		u.op.emit(Restarted{Reason: "the server no longer has the unfinished upload"})
		address = ""
	}
	return err
}

func gone(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && (e.Status == http.StatusNotFound || e.Status == http.StatusGone)
}

// send moves the parts that are missing.
func (u *upload) send(ctx context.Context, address string) error {
	size, offset, known := u.info.Size(), int64(0), false
	for !known || offset < size {
		err := u.op.attempt(ctx, func(ctx context.Context) (err error) {
			if !known {
				if offset, err = u.reached(ctx, address); err != nil {
					return err
				}
				known = true
			}
			if offset < size {
				if offset, err = u.patch(ctx, address, offset); err != nil {
					known = false
					u.rate.pause()
				}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// create announces the upload and remembers its address.
func (u *upload) create(ctx context.Context) (address string, err error) {
	meta := []string{}
	for _, kv := range [][2]string{{"repository", u.req.Repository}, {"path", u.req.Path},
		{"sha256", strings.TrimPrefix(u.digest, digestPrefix)}, {"mediaType", u.req.MediaType}} {
		meta = append(meta, kv[0]+" "+base64.StdEncoding.EncodeToString([]byte(kv[1])))
	}
	err = u.op.attempt(ctx, func(ctx context.Context) error {
		resp, err := u.exchange(ctx, http.MethodPost, u.c.at(api.PathUploads, nil), func(h http.Header) {
			h.Set("Upload-Length", strconv.FormatInt(u.info.Size(), 10))
			h.Set("Upload-Metadata", strings.Join(meta, ","))
		})
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusCreated {
			return refusal(resp, u.c.clock.Wall())
		}
		address, err = u.c.ownAddress(resp.Header.Get("Location"))
		return err
	})
	if err == nil {
		u.remember(address)
	}
	return address, err
}

// ownAddress reads a Location as an address on this client's server: behind a proxy the server may call itself
// otherwise than we do.
func (c *Client) ownAddress(location string) (string, error) {
	ref, err := url.Parse(location)
	if err != nil || ref.Path == "" {
		return "", fail(ErrNetwork, err, "the server didn't say where the upload goes")
	}
	own := *c.base
	resolved := c.base.JoinPath(api.PathUploads).ResolveReference(ref)
	own.Path, own.RawPath, own.RawQuery = resolved.Path, resolved.RawPath, resolved.RawQuery
	return own.String(), nil
}

// reached asks how many bytes the server has.
func (u *upload) reached(ctx context.Context, address string) (int64, error) {
	resp, err := u.exchange(ctx, http.MethodHead, address, nil)
	if err != nil {
		return 0, err
	}
	if resp.StatusCode >= 300 {
		return 0, busyUpload(refusal(resp, u.c.clock.Wall()))
	}
	offset, err := strconv.ParseInt(resp.Header.Get("Upload-Offset"), 10, 64)
	if err != nil || offset < 0 || offset > u.info.Size() {
		return 0, fail(ErrNetwork, err, "the server's Upload-Offset %q is not understood", resp.Header.Get("Upload-Offset"))
	}
	if offset > 0 {
		u.op.emit(Resumed{Offset: offset, Size: u.info.Size()})
	}
	return offset, nil
}

// exchange makes one request without a body and reads the answer's body away.
func (u *upload) exchange(ctx context.Context, method, address string, fill func(http.Header)) (*http.Response, error) {
	actx, _, stop := watch(ctx, u.c.retry.AttemptTimeout)
	defer stop()
	req, err := u.c.request(actx, method, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Tus-Resumable", tusVersion)
	if fill != nil {
		fill(req.Header)
	}
	resp, err := u.c.http.Do(req)
	if err != nil {
		return nil, attemptError(actx, err)
	}
	return resp, buffer(resp)
}

// patch sends one part and gives the offset the server reached.
func (u *upload) patch(parent context.Context, address string, offset int64) (int64, error) {
	ctx, extend, stop := watch(parent, u.c.retry.AttemptTimeout)
	defer stop()
	n := min(u.req.PartBytes, u.info.Size()-offset)
	req, err := u.c.request(ctx, http.MethodPatch, address, u.part(offset, n, extend))
	if err != nil {
		return offset, err
	}
	u.sized(req, n)
	req.Header.Set("Tus-Resumable", tusVersion)
	req.Header.Set("Content-Type", "application/offset+octet-stream")
	req.Header.Set("Upload-Offset", strconv.FormatInt(offset, 10))
	resp, err := u.c.http.Do(req)
	if err != nil {
		return offset, attemptError(ctx, err)
	}
	defer drain(resp.Body)
	if resp.StatusCode >= 300 {
		return offset, busyUpload(u.explain(refusal(resp, u.c.clock.Wall())))
	}
	u.rate.at(offset+n, true)
	return offset + n, nil
}

// busyUpload takes "locked" and "another offset" as faults of the way: a connection that broke may hold the upload a
// moment longer, and the next question tells the offset.
func busyUpload(err error) error {
	if e, ok := errors.AsType[*Error](err); ok && (e.Status == http.StatusLocked || e.Status == http.StatusConflict && e.Code == "") {
		return broken(e)
	}
	return err
}

// The memory of unfinished uploads: one small file each, named by what is uploaded where.

func (u *upload) stateFile() string {
	if u.req.StateDir == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{u.c.URL(), u.req.Repository, u.req.Path, u.digest}, "\n")))
	return filepath.Join(u.req.StateDir, hex.EncodeToString(sum[:16])+".json")
}

func (u *upload) unfinished() string {
	var p pending
	raw, err := os.ReadFile(u.stateFile())
	if err != nil || json.Unmarshal(raw, &p) != nil || p.Digest != u.digest || p.Size != u.info.Size() {
		return ""
	}
	return p.URL
}

// remember and forget are best effort: without them the upload begins anew after a restart, no more.
func (u *upload) remember(address string) {
	name := u.stateFile()
	if name == "" || os.MkdirAll(filepath.Dir(name), 0o700) != nil {
		return
	}
	if raw, err := json.Marshal(pending{URL: address, Digest: u.digest, Size: u.info.Size()}); err == nil {
		_ = writeAtomic(name, raw)
	}
}

func (u *upload) forget() {
	if name := u.stateFile(); name != "" {
		_ = os.Remove(name)
	}
}
