// Package problem renders every refusal of the native API as application/problem+json (RFC 9457).
package problem

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/serve/request"
)

// ContentType is the media type of a refusal's body.
const ContentType = "application/problem+json"

// Of turns an error into the body the client sees. Causes stay behind; an error that is no fault says nothing but
// "internal error".
func Of(err error) api.Problem {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		err = fault.New(fault.TooLarge, "the request body may hold %d bytes at most", large.Limit)
	}
	f := fault.From(err)
	wait := seconds(f.RetryAfter)
	if wait == 0 && (f.Code == fault.Busy || f.Code == fault.RateLimited) {
		wait = 1 // a test forbids such faults; should one slip through, no client is left guessing
	}
	p := api.Problem{
		Type: TypeOf(f.Code), Title: http.StatusText(f.Code.Status()), Status: f.Code.Status(),
		Code: string(f.Code), Reason: f.Reason, Message: f.Message,
		RetryAfterSeconds: wait,
	}
	for _, d := range f.Details {
		p.Details = append(p.Details, api.Detail(d))
	}
	return p
}

// TypeOf is the stable problem type of a code.
func TypeOf(code fault.Code) string { return "urn:roadstead:problem:" + string(code) }

// Write refuses the request with err and keeps the cause for the log.
func Write(w http.ResponseWriter, r *http.Request, err error) {
	request.From(r.Context()).Cause = err
	Send(w, r, Of(err))
}

// Send writes a refusal whose body is already made.
func Send(w http.ResponseWriter, r *http.Request, p api.Problem) {
	p.RequestID = request.From(r.Context()).ID
	body := append(encode(p), '\n')
	h := w.Header()
	for _, name := range []string{"Content-Encoding", "Content-Range", "Content-Disposition", "Etag", "Last-Modified", "Repr-Digest", "Content-Digest"} {
		if name == "Content-Range" && p.Status == http.StatusRequestedRangeNotSatisfiable {
			continue // it says how long the file is
		}
		delete(h, name) // the names are written as they are kept
	}
	SetHeaders(h, p)
	v := [...]string{ContentType, strconv.Itoa(len(body)), "no-store", "nosniff"} // one piece of memory for all
	h["Content-Type"], h["Content-Length"], h["Cache-Control"], h["X-Content-Type-Options"] = v[0:1:1], v[1:2:2], v[2:3:3], v[3:4:4]
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // a client that left does not want to know
}

// SetHeaders sets what a refusal says outside its body: when to come back, how to sign in.
func SetHeaders(h http.Header, p api.Problem) {
	if p.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.FormatInt(p.RetryAfterSeconds, 10))
	}
	if p.Status == http.StatusUnauthorized {
		h.Add("WWW-Authenticate", `Bearer realm="roadstead"`)
		h.Add("WWW-Authenticate", `Basic realm="roadstead", charset="UTF-8"`)
	}
}

// seconds rounds up, so that who comes back on time never comes early (D-1.1).
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
