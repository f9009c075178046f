// Package follow streams what happens to a Run as server-sent events, for as long as it lives and the client listens.
package follow

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/serve/request"
)

// Runs tells of Runs; another tenant's are not_found.
type Runs interface {
	Events(ctx context.Context, p identity.Principal, id string, seq int64, limit int) (page []api.RunEvent, ended bool, err error)
	Logs(ctx context.Context, p identity.Principal, id string, seq int64, limit int) (page []api.LogLine, ended bool, err error)
	// Watch gives a channel that is written to when the Run may have changed in this process.
	Watch(run string) (changed <-chan struct{}, stop func())
	// Draining is closed when the server stops: the stream ends, and the client comes back to another process.
	Draining() <-chan struct{}
}

const (
	lookEvery  = time.Second      // what changes in other processes is told by nobody
	aliveEvery = 15 * time.Second // a comment, so that proxies and clients know the stream is alive
	pageSize   = 500
)

// Handler answers GET /api/v1/runs/{run}/follow. Each message has the id EVENT.LINE of what was sent so far, so a
// client that comes back with Last-Event-ID misses nothing and sees nothing twice. After the last message of a Run
// that ended comes one named end, and the stream closes.
// lag is told how long after it happened each event was sent to a client that was listening when it happened.
func Handler(runs Runs, lag func(time.Duration)) func(w http.ResponseWriter, r *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		from, err := position(r)
		if err != nil {
			return err
		}
		s := &stream{runs: runs, w: w, caller: request.From(r.Context()).Caller, run: r.PathValue("run"), at: from, began: time.Now(), lag: lag}
		if _, _, err := runs.Events(r.Context(), s.caller, s.run, 1<<62, 1); err != nil {
			return err
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Accel-Buffering", "no")
		w.WriteHeader(http.StatusOK)
		return s.follow(r.Context())
	}
}

// mark is how far a client has heard.
type mark struct{ event, line int64 }

func (m mark) String() string { return fmt.Sprintf("%d.%d", m.event, m.line) }

// position is where the client wants to go on.
func position(r *http.Request) (mark, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	if text == "" {
		return mark{}, nil
	}
	event, line, found := strings.Cut(text, ".")
	e, err1 := strconv.ParseInt(event, 10, 64)
	l, err2 := strconv.ParseInt(line, 10, 64)
	if !found || err1 != nil || err2 != nil || e < 0 || l < 0 {
		return mark{}, fault.Invalid("Last-Event-ID", "must be the id of a message of this stream")
	}
	return mark{e, l}, nil
}

type stream struct {
	runs   Runs
	w      http.ResponseWriter
	caller identity.Principal
	run    string
	at     mark
	began  time.Time
	lag    func(time.Duration)
}

func (s *stream) follow(ctx context.Context) error {
	changed, stop := s.runs.Watch(s.run)
	defer stop()
	look, alive := time.NewTicker(lookEvery), time.NewTicker(aliveEvery)
	defer look.Stop()
	defer alive.Stop()
	for {
		ended, err := s.send(ctx)
		if err != nil || ended {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.runs.Draining():
			return nil
		case <-changed:
		case <-look.C:
		case <-alive.C:
			if _, err := fmt.Fprint(s.w, ": alive\n\n"); err != nil {
				return nil // the client went; there is nobody to tell
			}
			if err := s.flush(); err != nil {
				return nil
			}
		}
	}
}

// send writes everything that is new, log lines before events, so that the end comes last.
func (s *stream) send(ctx context.Context) (ended bool, err error) {
	for {
		events, done, err := s.runs.Events(ctx, s.caller, s.run, s.at.event, pageSize)
		if err != nil {
			return false, err
		}
		if err := s.sendLogs(ctx); err != nil {
			return false, err
		}
		for _, e := range events {
			s.at.event = e.Seq
			if err := s.message("event", e); err != nil {
				return true, nil
			}
			if e.At.After(s.began) {
				s.lag(time.Since(e.At))
			}
		}
		if done {
			if err := s.message("end", struct{}{}); err == nil {
				_ = s.flush() // the stream ends either way
			}
			return true, nil
		}
		if len(events) < pageSize {
			return false, s.flush()
		}
	}
}

func (s *stream) sendLogs(ctx context.Context) error {
	for {
		lines, _, err := s.runs.Logs(ctx, s.caller, s.run, s.at.line, pageSize)
		if err != nil || len(lines) == 0 {
			return err
		}
		for _, l := range lines {
			s.at.line = l.Seq
			if err := s.message("log", l); err != nil {
				return err
			}
		}
	}
}

func (s *stream) message(name string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.w, "id: %s\nevent: %s\ndata: %s\n\n", s.at, name, text)
	return err
}

func (s *stream) flush() error { return http.NewResponseController(s.w).Flush() }
