package delivery

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"

	"github.com/roadstead/roadstead/internal/fault"
)

// Answer is how a request about a content will be answered. Plan makes it before anything is sent, so that only an
// answer with a body takes a seat (D-2.6).
type Answer struct {
	Status int  // 200, 206, 304, 412 or 416
	Body   bool // bytes of the content follow: a GET answered 200 or 206
	Span   Span // the bytes asked; zero without a body

	content    Content
	conditions http.Header // of the request, nil for none
	ranges     string      // of the request, as ServeContent is to read them
	header     http.Header // nil until it is decided
	parts      []part
}

// Span is what part of the content is asked, as the session counts it (D-2.7).
type Span struct {
	From, To int64 // To is exclusive; of several ranges the first and the last byte asked
	Tail     bool  // a read of the end only, which sets no start: `bytes=-N`, `bytes=X-LAST` with X > 0
	Multi    bool  // several ranges in one answer
}

// conditions are the request headers that decide an answer besides Range.
var conditions = [...]string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range"}

// Plan decides the answer to a GET or HEAD without touching a ResponseWriter or the file. The decision is
// http.ServeContent's, made on a dry run. A 412 and a 416 are answers, not errors: see Refusal. The error is a
// *fault.Error for another method.
func Plan(r *http.Request, c Content) (*Answer, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil, fault.New(fault.InvalidInput, "%s: only GET and HEAD read content", r.Method)
	}
	a := &Answer{content: c, conditions: conditionsOf(r.Header)}
	want := askedWhole
	if r.Method == http.MethodGet { // RFC 9110 section 14.2: Range has no meaning for HEAD
		a.parts, want = parseRange(r.Header.Get("Range"), c.Size)
		switch want {
		case askedParts:
			a.ranges = spell(a.parts)
		case askedNothing:
			a.ranges = fmt.Sprintf("bytes=%d-", c.Size)
		}
	}
	// Most requests are of clients that wait in a queue, and are never answered with the content: what is plain without
	// a dry run is dry-run when its header is wanted.
	switch {
	case r.Method != http.MethodGet || a.conditions != nil || want == askedNothing || len(a.parts) > 1:
		a.decide()
	case want == askedParts:
		a.Status = http.StatusPartialContent
	default:
		a.Status = http.StatusOK
	}
	if a.Status == http.StatusOK || a.Status == http.StatusPartialContent {
		if a.Body = r.Method == http.MethodGet; a.Body {
			a.span()
		}
	}
	return a, nil
}

func conditionsOf(h http.Header) (found http.Header) {
	for _, name := range conditions {
		if v := h[name]; v != nil {
			if found == nil {
				found = http.Header{}
			}
			found[name] = v
		}
	}
	return found
}

// decide makes the dry run, and adds to its header what ServeContent leaves to others.
func (a *Answer) decide() {
	c := a.content
	dry := dryRun{header: c.header(), status: http.StatusOK}
	// As HEAD, so that no body is produced; ServeContent decides both alike.
	ask := &http.Request{Method: http.MethodHead, Header: http.Header{}}
	maps.Copy(ask.Header, a.conditions)
	if a.ranges != "" {
		ask.Header.Set("Range", a.ranges)
	}
	http.ServeContent(&dry, ask, "", c.ModTime, &blank{size: c.Size})
	a.Status, a.header = dry.status, dry.header
	switch a.Status {
	case http.StatusOK, http.StatusPartialContent:
		if d := c.reprDigest(); d != "" {
			a.header["Repr-Digest"] = []string{d}
		}
	case http.StatusRequestedRangeNotSatisfiable:
		a.header["Content-Range"] = []string{"bytes */" + strconv.FormatInt(c.Size, 10)}
		a.header["Accept-Ranges"] = []string{"bytes"}
		a.header["Etag"] = c.header()["Etag"] // ServeContent takes it away with what describes the error's body
	}
}

// span joins what is asked into one interval.
func (a *Answer) span() {
	if a.Status == http.StatusOK {
		a.parts = []part{{to: a.content.Size}}
	}
	a.Span = Span{From: a.parts[0].from, To: a.parts[0].to, Tail: true, Multi: len(a.parts) > 1}
	for _, p := range a.parts {
		a.Span.From, a.Span.To = min(a.Span.From, p.from), max(a.Span.To, p.to)
		a.Span.Tail = a.Span.Tail && p.tail
	}
}

// Refusal is the fault of an answer 412 or 416, nil for others. Header must be set all the same.
func (a *Answer) Refusal() error {
	switch a.Status {
	case http.StatusPreconditionFailed:
		return fault.New(fault.PreconditionFails, "%s: a condition of the request does not hold", a.content.Name)
	case http.StatusRequestedRangeNotSatisfiable:
		return fault.New(fault.RangeInvalid, "Range: no satisfiable range of the form bytes=FIRST-LAST in %d bytes",
			a.content.Size)
	}
	return nil
}

// SetHeader writes the answer's headers into h and leaves others alone. For a refusal it leaves out what describes
// the content's own bytes, as a body will describe itself.
func (a *Answer) SetHeader(h http.Header) {
	if a.header == nil {
		a.decide()
	}
	refused := a.Refusal() != nil
	for name, v := range a.header {
		switch name {
		case "Content-Type", "Content-Length", "X-Content-Type-Options":
			if refused {
				continue
			}
		}
		h[name] = v
	}
}

// dryRun is a ResponseWriter that only remembers the decision.
type dryRun struct {
	header http.Header
	status int
}

func (d *dryRun) Header() http.Header         { return d.header }
func (d *dryRun) WriteHeader(status int)      { d.status = status }
func (d *dryRun) Write(p []byte) (int, error) { return len(p), nil }

// blank is a file of a size, without bytes.
type blank struct{ size int64 }

func (b *blank) Read([]byte) (int, error) { return 0, io.EOF }

func (b *blank) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekEnd {
		return b.size, nil
	}
	return offset, nil
}
