// Package serve is the HTTP side of the server: the routes, who may come in, and how refusals look.
package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/serve/problem"
	"github.com/roadstead/roadstead/internal/serve/request"
)

// handler is one endpoint: it answers, or returns why not.
type handler func(w http.ResponseWriter, r *http.Request) error

// limits bound one request of a kind. A zero time is no limit.
type limits struct {
	body  int64         // bytes of the request body; 0 means the endpoint bounds it itself
	read  time.Duration // for reading the body
	write time.Duration // for the whole answer
}

var (
	// small is for JSON: a slow client can hold such a request for a minute at most.
	small = limits{body: 1 << 20, read: 30 * time.Second, write: 60 * time.Second}
	// large is for what runners say: an exchange is held until there is news, and logs may come from far away.
	large = limits{body: 1 << 20, read: 60 * time.Second, write: 2 * time.Minute}
	// stream is for file contents: a day of transfer is as good as a second. Stalled readers and senders are the
	// business of the queue and of the upload.
	stream = limits{}
)

// edge does for every request what no endpoint should have to: an id, the client's address, one log line, one
// rendering of refusals, and survival of panics.
type edge struct {
	proxies Proxies
	log     *slog.Logger
	metrics *httpMetrics
}

func newEdge(proxies Proxies, log *slog.Logger) *edge {
	return &edge{proxies: proxies, log: log, metrics: newHTTPMetrics()}
}

// wrap is the outermost handler.
func (e *edge) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		from := e.proxies.originOf(r)
		info := &request.Info{ID: requestID(r, from.trusted), Client: from.client, Scheme: from.scheme, Host: r.Host}
		r = r.WithContext(request.With(r.Context(), info))
		rec := &recorder{ResponseWriter: w}
		w.Header().Set(api.HeaderRequestID, info.ID)
		defer func() {
			v := recover()
			if v != nil && v != http.ErrAbortHandler {
				e.log.Error("handler panicked", "requestId", info.ID, "panic", v, "stack", string(debug.Stack()))
				if rec.status == 0 {
					problem.Write(rec, r, fault.New(fault.Internal, "internal error"))
					v = nil
				} else {
					v = http.ErrAbortHandler // the client must see that the answer is cut
				}
			}
			took := time.Since(start)
			e.metrics.observe(r, rec, took)
			e.access(r, rec, info, took, v != nil)
			if v != nil {
				panic(v)
			}
		}()
		if err := checkPath(r); err != nil {
			problem.Write(rec, r, err)
			return
		}
		next.ServeHTTP(rec, r)
	})
}

// handle makes an endpoint of a handler.
func (e *edge) handle(l limits, h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.apply(w, r)
		err := h(w, r)
		if err == nil {
			return
		}
		info := request.From(r.Context())
		if rec, ok := w.(*recorder); ok && rec.status != 0 {
			info.Cause = err
			panic(http.ErrAbortHandler) // too late for a refusal: a cut is the honest answer
		}
		if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
			info.Cause = err
			panic(http.ErrAbortHandler) // nobody is there to be refused
		}
		problem.Write(w, r, err)
	})
}

func (l limits) apply(w http.ResponseWriter, r *http.Request) {
	if l.body > 0 {
		r.Body = http.MaxBytesReader(w, r.Body, l.body)
	}
	deadline := func(d time.Duration) time.Time {
		if d == 0 {
			return time.Time{}
		}
		return time.Now().Add(d)
	}
	// A writer without deadlines (tests) is no reason to refuse.
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(deadline(l.read))
	_ = c.SetWriteDeadline(deadline(l.write))
}

// access writes the one log line of a request. Queries, headers and link tokens never appear in it. Polls are counted
// by the metrics, and logged for who debugs: a million that wait would write a hundred gigabytes a day.
func (e *edge) access(r *http.Request, rec *recorder, info *request.Info, took time.Duration, cut bool) {
	level := slog.LevelInfo
	status := rec.status
	if status >= 500 && status != http.StatusServiceUnavailable && status != http.StatusInsufficientStorage {
		level = slog.LevelError
	} else if info.Poll {
		level = slog.LevelDebug
	}
	if errors.Is(info.Cause, context.Canceled) && r.Context().Err() != nil {
		level = slog.LevelInfo // the client went: nothing failed here
	}
	if !e.log.Enabled(r.Context(), level) {
		return
	}
	path := r.URL.Path
	if strings.HasPrefix(path, api.PathLinks) {
		path = api.PathLinks + "…"
	}
	attrs := []slog.Attr{
		slog.String("requestId", info.ID), slog.String("method", r.Method), slog.String("path", path), slog.String("route", r.Pattern),
		slog.Int("status", status), slog.Int64("bytes", rec.bytes), slog.Float64("seconds", took.Seconds()), slog.String("client", info.Client),
	}
	if info.Caller.ID != "" {
		attrs = append(attrs, slog.String("principal", info.Caller.ID))
	}
	if cut {
		attrs = append(attrs, slog.Bool("cut", true))
	}
	if info.Cause != nil {
		attrs = append(attrs, slog.String("cause", info.Cause.Error()))
	}
	e.log.LogAttrs(r.Context(), level, "request", attrs...)
}

// requestID takes a trusted proxy's id and makes one otherwise.
func requestID(r *http.Request, trusted bool) string {
	if id := r.Header.Get(api.HeaderRequestID); trusted && validID(id) {
		return id
	}
	return rand.Text()
}

func validID(s string) bool {
	if len(s) == 0 || len(s) > 64 {
		return false
	}
	return strings.IndexFunc(s, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-", c))
	}) < 0
}

// checkPath refuses what ServeMux would answer with a redirect to a different path: silently merged or resolved
// segments would name another file than the client asked for.
func checkPath(r *http.Request) error {
	p := r.URL.Path
	if !strings.HasPrefix(p, "/") {
		return fault.Invalid("path", "must begin with a slash")
	}
	last := strings.Count(p, "/") - 1
	i := 0
	for segment := range strings.SplitSeq(p[1:], "/") {
		switch {
		case segment == "" && i != last:
			return fault.Invalid("path", "must not hold empty segments")
		case segment == "." || segment == "..":
			return fault.Invalid("path", "must not hold the segments . and ..")
		}
		i++
	}
	if strings.ContainsFunc(p, func(c rune) bool { return c < 0x20 || c == 0x7f }) {
		return fault.Invalid("path", "must not hold control characters")
	}
	return nil
}
