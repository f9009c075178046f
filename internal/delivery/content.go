// Package delivery answers GET and HEAD with the bytes of a file: ranges and conditions as RFC 9110 says, paced by
// the bandwidth governor, sent by the kernel where it can (D-12.2).
package delivery

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"os"
	"time"
)

// Content is an immutable sequence of bytes to be sent.
type Content struct {
	Name      string    // for errors and logs
	Digest    string    // SHA-256 in hex; it is the strong entity tag and the Repr-Digest
	MediaType string    // empty: application/octet-stream; the bytes are never sniffed
	Size      int64     // in bytes
	ModTime   time.Time // for Last-Modified; zero: none
	// Open gives a descriptor of its own to each response: sending moves its offset.
	Open func() (*os.File, error)
}

// ETag is the strong entity tag of the content with this SHA-256 in hex.
func ETag(digest string) string { return `"sha256:` + digest + `"` }

func (c Content) mediaType() string {
	if c.MediaType == "" {
		return "application/octet-stream"
	}
	return c.MediaType
}

// reprDigest is RFC 9530's form of the digest: of the whole representation, whichever part is sent.
func (c Content) reprDigest() string {
	raw, err := hex.DecodeString(c.Digest)
	if err != nil || len(raw) == 0 {
		return ""
	}
	return "sha-256=:" + base64.StdEncoding.EncodeToString(raw) + ":"
}

// header is what every answer about the content carries.
func (c Content) header() http.Header {
	h := http.Header{"Content-Type": {c.mediaType()}}
	if c.Digest != "" {
		h["Etag"] = []string{ETag(c.Digest)}
	}
	return h
}
