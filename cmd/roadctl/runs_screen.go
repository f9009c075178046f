package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

// screen shows how a Run goes: on a terminal one line that is repainted below what the Run writes, elsewhere a line when
// the state changes or a minute has passed.
type screen struct {
	a *app

	mu      sync.Mutex
	painted bool   // the status line is on the terminal
	last    string // words of it
	at      time.Time
}

const soon = 500 * time.Millisecond

// look asks where the Run stands, again and again; how it ends, the stream tells.
func (s *screen) look(ctx context.Context, c *sdk.Client, r api.Run) {
	wait := soon
	for {
		if wait != soon || r.State != "queued" || r.Place != nil && r.Place.Known { // most start before there is anything to tell
			s.status(printable(runWords(r, s.a.now())))
		}
		if pause(ctx, wait) != nil {
			return
		}
		wait = lookEvery
		now, err := c.Run(ctx, r.ID)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			r = now
		}
		if r.State != "queued" && r.State != "active" {
			return
		}
	}
}

// status shows where the Run stands.
func (s *screen) status(words string) {
	if s.a.flags.quiet {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.a.now()
	if s.a.errTTY {
		s.painted, s.last = true, words
		_, _ = fmt.Fprint(s.a.err, "\r\x1b[2K"+shorten(words, 100))
		return
	}
	if words == s.last || firstWord(words) == firstWord(s.last) && now.Sub(s.at) < waitingLineEvery {
		return
	}
	s.last, s.at = words, now
	s.a.say("%s", words)
}

func firstWord(s string) string {
	return s[:max(strings.IndexAny(s+" ", " ,:"), 0)]
}

// message shows a message of the Run's stream: what it wrote goes where it wrote it.
func (s *screen) message(m sdk.RunMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.a
	switch {
	case m.Log != nil:
		s.wipe()
		to, terminal := io.Writer(a.out), a.outTTY
		if m.Log.Stream != "stdout" || a.flags.output == "json" { // the result is JSON then
			to, terminal = a.err, a.errTTY
		}
		if _, err := fmt.Fprintln(to, a.logText(*m.Log, terminal)); err != nil {
			return err
		}
	case m.Event != nil && (m.Event.Kind == "retry" || m.Event.Kind == "cancel_requested"):
		s.wipe()
		a.say("%s", eventLine(*m.Event, a.now()))
	}
	s.paint()
	return nil
}

// wipe takes the status line away, paint puts it back.
func (s *screen) wipe() {
	if s.painted {
		_, _ = fmt.Fprint(s.a.err, "\r\x1b[2K")
	}
}

func (s *screen) paint() {
	if s.painted {
		_, _ = fmt.Fprint(s.a.err, "\r\x1b[2K"+shorten(s.last, 100))
	}
}

// clear takes the status line away for good.
func (s *screen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
	s.painted = false
}
