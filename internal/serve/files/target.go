package files

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/fault"
)

// target reads repository and path from /files/{repository}/{path}. The text of the URL is decoded once, segment by
// segment: an encoded slash would make two names of one, so it is refused; a double encoding stays what it says.
func target(u *url.URL) (repository, path string, err error) {
	rest, ok := strings.CutPrefix(u.EscapedPath(), api.PathFiles)
	if !ok {
		return "", "", fault.Missing("file")
	}
	segments := strings.Split(rest, "/")
	for i, s := range segments {
		decoded, err := url.PathUnescape(s)
		if err != nil {
			return "", "", fault.Invalid("path", "must be percent-encoded correctly")
		}
		if strings.Contains(decoded, "/") {
			return "", "", fault.Invalid("path", "must not hold an encoded slash (%%2F)")
		}
		segments[i] = decoded
	}
	repository, path = segments[0], strings.Join(segments[1:], "/")
	if err := artifacts.CheckRepositoryName("repository", repository); err != nil {
		return "", "", err
	}
	return repository, path, artifacts.CheckPath("path", path)
}

// queueHeaders are what a client says about its download.
type queueHeaders struct {
	id     string // empty for stock tools
	class  string // empty: the highest it may use
	ticket string
}

// maxTicket bounds what is worth verifying; a longer text can be no ticket of ours.
const maxTicket = 256

// readQueueHeaders checks the form of id and class. A ticket is never refused, only ignored (D-8.2).
func readQueueHeaders(h http.Header) (q queueHeaders, err error) {
	if q.id, err = single(h, api.HeaderDownloadID); err != nil {
		return q, err
	}
	if _, given := h[api.HeaderDownloadID]; given && !validDownloadID(q.id) {
		return q, fault.Invalid(api.HeaderDownloadID, "must be 1 to 64 of A-Z a-z 0-9 . _ -")
	}
	if q.class, err = single(h, api.HeaderDownloadClass); err != nil {
		return q, err
	}
	if _, given := h[api.HeaderDownloadClass]; given {
		if _, err := class.Parse(api.HeaderDownloadClass, q.class); err != nil {
			return q, err
		}
	}
	if q.ticket = h.Get(api.HeaderQueueTicket); len(q.ticket) > maxTicket {
		q.ticket = ""
	}
	return q, nil
}

func single(h http.Header, name string) (string, error) {
	values := h.Values(name)
	if len(values) > 1 {
		return "", fault.Invalid(name, "must be given once")
	}
	return h.Get(name), nil
}

func validDownloadID(s string) bool {
	if len(s) == 0 || len(s) > 64 {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
