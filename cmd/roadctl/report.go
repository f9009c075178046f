package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/roadstead/roadstead/sdk"
)

// report shows how a download or upload goes, on standard error: a live line on a terminal, plain lines elsewhere.
type report interface {
	event(sdk.Event)
	note(line string) // a line of its own
	close()
}

func (a *app) report(name string) report {
	switch {
	case a.flags.quiet:
		return silent{}
	case a.errTTY:
		return newLive(a, name)
	}
	return &lines{a: a, name: name}
}

type silent struct{}

func (silent) event(sdk.Event) {}
func (silent) note(string)     {}
func (silent) close()          {}

// How often plain lines come: a log of a night's wait stays readable.
const (
	waitingLineEvery  = time.Minute
	progressLineEvery = 10 * time.Second
)

// lines is the report for logs and pipes.
type lines struct {
	a            *app
	name         string
	lastWaiting  time.Time
	lastProgress time.Time
	begun        time.Time
	lastWords    string
	known        bool // the last line told a place
}

func (l *lines) event(e sdk.Event) {
	now := l.a.now()
	if l.begun.IsZero() {
		l.begun = now
	}
	switch e := e.(type) {
	case sdk.Waiting:
		words := waitingWords(e, now, now)
		if e.Known == l.known && now.Sub(l.lastWaiting) < waitingLineEvery || words == l.lastWords {
			return
		}
		l.lastWaiting, l.lastWords, l.known, l.lastProgress = now, words, e.Known, time.Time{}
		l.a.say("%s", words)
	case sdk.Progress:
		if e.Offset == e.Size || now.Sub(l.lastProgress) < progressLineEvery {
			return
		}
		if !l.lastProgress.IsZero() || e.Rate > 0 {
			l.a.say("%s", progressWords(e, now))
		}
		l.lastProgress, l.lastWaiting = now, time.Time{}
	default:
		if words := noteWords(e, l.name, l.begun, now); words != "" {
			l.a.say("%s", words)
		}
	}
}

func (l *lines) note(line string) { l.a.say("%s", line) }

func (l *lines) close() {}

// noteWords are the events that are a line of their own on any kind of output.
func noteWords(e sdk.Event, name string, begun, now time.Time) string {
	switch e := e.(type) {
	case sdk.Scheduled:
		return "asks not before " + when(e.At, now)
	case sdk.Resumed:
		return fmt.Sprintf("resuming: %s are already there", amount(e.Offset))
	case sdk.Restarted:
		return "beginning anew: " + e.Reason
	case sdk.Retrying:
		return fmt.Sprintf("fault: %v; trying again in %s (retry %d)", e.Err, span(e.In), e.Attempt)
	case sdk.Done:
		return fmt.Sprintf("done: %s, %s in %s", printable(name), amount(e.Size), span(now.Sub(begun)))
	}
	return ""
}

// live is the report on a terminal: one line that mpb repaints, so that the time left counts down between questions.
type live struct {
	a        *app
	name     string
	begun    time.Time
	progress *mpb.Progress
	bar      *mpb.Bar

	mu    sync.Mutex
	last  sdk.Event // newest of Waiting, Progress, Hashing
	since time.Time
}

func newLive(a *app, name string) *live {
	l := &live{a: a, name: name, begun: a.now()}
	l.progress = mpb.New(mpb.WithOutput(a.err), mpb.WithRefreshRate(300*time.Millisecond), mpb.WithWidth(30))
	hideWhileWaiting := func(base mpb.BarFiller) mpb.BarFiller {
		return mpb.BarFillerFunc(func(w io.Writer, s decor.Statistics) error {
			if l.waiting() {
				return nil
			}
			return base.Fill(w, s)
		})
	}
	l.bar = l.progress.New(0, mpb.BarStyle().Lbound("[").Filler("=").Tip(">").Padding(" ").Rbound("]"),
		mpb.BarFillerMiddleware(hideWhileWaiting), mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(shorten(printable(name), 30)+" ")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return l.words() })))
	return l
}

func (l *live) waiting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.last.(sdk.Waiting)
	return ok || l.last == nil
}

func (l *live) words() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.a.now()
	switch e := l.last.(type) {
	case sdk.Waiting:
		return waitingWords(e, l.since, now)
	case sdk.Progress:
		return progressWords(e, now)
	case sdk.Hashing:
		return "reading " + amount(e.Offset) + " of " + amount(e.Size)
	}
	return "asking the server"
}

func (l *live) event(e sdk.Event) {
	now := l.a.now()
	switch e := e.(type) {
	case sdk.Waiting, sdk.Progress, sdk.Hashing:
		l.mu.Lock()
		l.last, l.since = e, now
		l.mu.Unlock()
		if p, ok := e.(sdk.Progress); ok {
			l.bar.SetTotal(p.Size, false)
			l.bar.SetCurrent(p.Offset)
		}
	default:
		if words := noteWords(e, l.name, l.begun, now); words != "" {
			l.note(words)
		}
	}
}

func (l *live) note(line string) { _, _ = l.progress.Write([]byte(line + "\n")) }

func (l *live) close() {
	l.bar.Abort(true)
	l.progress.Wait()
}

func shorten(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return strings.TrimSpace(string(r[:n-1])) + "…"
}
