package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roadstead/roadstead/api"
)

// stream answers with a piece of a Run's stream; cut breaks the connection after it.
func stream(cut bool, messages ...string) step {
	return func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, strings.Join(messages, ""))
		if cut {
			return errCut
		}
		return nil
	}
}

func event(seq int, kind string) string {
	return fmt.Sprintf("id: %d.0\nevent: event\ndata: {\"seq\":%d,\"kind\":%q}\n\n", seq, seq, kind)
}

func line(event, seq int, text string) string {
	return fmt.Sprintf("id: %d.%d\r\nevent: log\r\ndata: {\"seq\":%d,\"text\":%q}\r\n\r\n", event, seq, seq, text)
}

const end = "id: 9.9\nevent: end\ndata: {}\n\n"

// heard is a stream as words.
func heard(c *Client, ctx context.Context, f Follow) (words []string, err error) {
	for m, err := range c.FollowRun(ctx, "run_1", f) {
		switch {
		case err != nil:
			return words, err
		case m.Event != nil:
			words = append(words, m.Event.Kind)
		default:
			words = append(words, m.Log.Text)
		}
	}
	return words, nil
}

// A stream that breaks, is closed early or falls silent goes on after its last message; it ends with the Run.
func TestFollowGoesOnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := func(_ http.ResponseWriter, r *http.Request) error {
			<-r.Context().Done()
			return r.Context().Err()
		}
		f := &fake{script: []step{
			plain(502), stream(true, ": alive\n\n", event(1, "submitted"), line(1, 1, "one"), "id: 1.2\nevent: log\nda"),
			refused, stream(false, "event: of-tomorrow\ndata: {}\n\n", line(1, 2, "two")), silent,
			problem(503, api.Problem{Code: "busy"}, "Retry-After", "2"), stream(false, event(2, "succeeded"), end),
		}}
		l := &log{}
		words, err := heard(newClient(t, f, Retry{}), t.Context(), Follow{After: "0.5", Events: l.add})
		if got := strings.Join(words, " "); err != nil || got != "submitted one two succeeded" {
			t.Errorf("%v: %s", err, got)
		}
		var ids []string
		for _, r := range f.requests {
			ids = append(ids, r.Get("Last-Event-ID"))
		}
		if got := strings.Join(ids, " "); got != "0.5 0.5 1.1 1.1 1.2 1.2 1.2" {
			t.Errorf("went on from %s", got)
		}
		if len(eventsOf[Retrying](l)) == 0 {
			t.Error("nothing was said of the faults")
		}
	})
}

// The budget is for faults in a row: a stream of days may break more often than that.
func TestFollowForDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		for i := range 100 {
			f.script = append(f.script, refused, stream(true, line(1, i+1, "x")))
		}
		f.script = append(f.script, stream(false, end))
		if words, err := heard(newClient(t, f, Retry{}), t.Context(), Follow{}); err != nil || len(words) != 100 {
			t.Errorf("%v after %d", err, len(words))
		}
		f.script = repeat(50, refused)
		if _, err := heard(newClient(t, f, Retry{}), t.Context(), Follow{}); !errors.Is(err, ErrNetwork) || len(f.script) != 44 {
			t.Errorf("%v, %d left", err, len(f.script))
		}
	})
}

func TestFollowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{script: []step{problem(404, api.Problem{Code: "not_found", Message: "Run not found"})}}
		c := newClient(t, f, Retry{})
		if _, err := heard(c, t.Context(), Follow{}); err == nil || err.Error() != "Run not found" {
			t.Errorf("%v", err)
		}
		f.script = []step{stream(false, "id: 1.1\nevent: log\ndata: nonsense\n\n")}
		if _, err := heard(c, t.Context(), Follow{}); err == nil {
			t.Error("nonsense is believed")
		}
		f.script = []step{stream(false, line(1, 1, "a"), line(1, 2, "b"), end)}
		for range c.FollowRun(t.Context(), "run_1", Follow{}) {
			break // who has heard enough is left in peace
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("enough"))
		defer cancel()
		f.script = []step{func(_ http.ResponseWriter, r *http.Request) error { <-r.Context().Done(); return r.Context().Err() }}
		if _, err := heard(c, ctx, Follow{}); err == nil || err.Error() != "enough" {
			t.Errorf("%v", err)
		}
	})
}
