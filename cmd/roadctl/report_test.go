package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

// The line on a terminal counts down between questions and becomes a bar when bytes flow.
func TestLiveReport(t *testing.T) {
	now := noon
	a := &app{err: &bytes.Buffer{}, errTTY: true, now: func() time.Time { return now }}
	l := a.report("a very long name of a file that would fill the line.img").(*live)
	defer l.close()
	step := func(e sdk.Event, waiting bool, want string) {
		t.Helper()
		if e != nil {
			l.event(e)
		}
		if got := l.words(); got != want || l.waiting() != waiting {
			t.Errorf("%q (waiting %v), want %q", got, l.waiting(), want)
		}
	}
	step(nil, true, "asking the server")
	step(sdk.Waiting{Known: true, Position: 3, StartsAt: noon.Add(10 * time.Minute)}, true, "queue: 3rd, starts about 12:10 (in 10 min)")
	now = noon.Add(5 * time.Minute)
	step(nil, true, "queue: 3rd, starts about 12:10 (in 5 min)")
	step(sdk.Progress{Offset: 5, Size: 10}, false, "5 B of 10 B (50 %)")
	step(sdk.Retrying{Attempt: 1, In: time.Second, Err: errors.New("broke")}, false, "5 B of 10 B (50 %)")
	step(sdk.Hashing{Offset: 1, Size: 10}, false, "reading 1 B of 10 B")
	step(sdk.Waiting{Reason: api.ReasonQueued, CheckIn: time.Second}, true, "queue: place not known yet, asking again in 1 s")
}

// A log gets a line when something is new, not at every event.
func TestLinesAreSparse(t *testing.T) {
	now, out := noon, &bytes.Buffer{}
	a := &app{err: out, now: func() time.Time { return now }}
	r := a.report("f")
	for i := range 600 { // ten minutes of waiting, then ten of bytes
		now = now.Add(time.Second)
		r.event(sdk.Waiting{Known: true, Position: 900 - i, StartsAt: noon.Add(10 * time.Minute)})
	}
	waiting := strings.Count(out.String(), "\n")
	for i := range 600 {
		now = now.Add(time.Second)
		r.event(sdk.Progress{Offset: int64(i), Size: 600, Rate: 1})
	}
	r.event(sdk.Done{Size: 600})
	r.close()
	if progress := strings.Count(out.String(), "\n") - waiting; waiting < 9 || waiting > 12 || progress < 50 || progress > 62 {
		t.Errorf("%d lines of waiting, %d of progress", waiting, progress)
	}
}

func TestQueueWatch(t *testing.T) {
	for _, format := range []string{"json", "table"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			time.AfterFunc(11*time.Second, func() { cancel(errInterrupted) })
			code, stdout, stderr := command{ctx: ctx, args: []string{"queue", "--watch", "--every", "5s", "-o", format}, serve: answer(api.Queue{Strategy: "ordered"})}.run(t)
			if code != 130 || strings.Count(stdout, "ordered") != 3 || stderr != "interrupted\n" {
				t.Errorf("code %d\n%s%s", code, stdout, stderr)
			}
		})
	}
}
