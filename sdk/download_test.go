package sdk

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roadstead/roadstead/api"
)

func TestDownloadByRanges(t *testing.T) {
	f := &fake{object: content(2500)}
	result, l, err := get(t, f, func(d *Download) { d.Class = "bulk" })
	if err != nil {
		t.Fatal(err)
	}
	if !result.Verified || result.Size != 2500 || result.Digest != digestOf(f.object) {
		t.Fatalf("result %+v", result)
	}
	want := []string{"bytes=0-999", "bytes=1000-1999", "bytes=2000-"} // the last one open (D-2.7)
	for i, h := range f.requests {
		if h.Get("Range") != want[i] {
			t.Errorf("request %d asks %q, want %q", i, h.Get("Range"), want[i])
		}
		if (i > 0) != (h.Get("If-Range") != "") {
			t.Errorf("request %d has If-Range %q", i, h.Get("If-Range"))
		}
		if id := h.Get(api.HeaderDownloadID); id == "" || id != f.requests[0].Get(api.HeaderDownloadID) {
			t.Errorf("request %d has the id %q", i, id)
		}
		if h.Get(api.HeaderDownloadClass) != "bulk" || h.Get("Authorization") != "Bearer rsk_test" {
			t.Errorf("request %d headers %v", i, h)
		}
	}
	if len(f.requests) != 3 || len(eventsOf[Done](l)) != 1 {
		t.Fatalf("%d requests, events %v", len(f.requests), l.events)
	}
}

func TestEmptyAndTinyObjects(t *testing.T) {
	for _, n := range []int{0, 1, 999, 1000, 1001} {
		if _, _, err := get(t, &fake{object: content(n)}, nil); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	// A server may refuse any range of an empty object.
	f := &fake{script: []step{plain(416, "Content-Range", "bytes */0")}}
	if _, _, err := get(t, f, nil); err != nil {
		t.Error(err)
	}
}

// A server that knows no ranges gives the whole.
func TestDownloadWithoutRanges(t *testing.T) {
	f := &fake{object: content(3000)}
	f.script = []step{func(w http.ResponseWriter, r *http.Request) error {
		r.Header.Del("Range")
		return f.serve(w, r)
	}}
	if _, _, err := get(t, f, nil); err != nil {
		t.Fatal(err)
	}
}

// D-1.1: any number of busy answers costs nothing; D-2.3, D-8.1: the latest ticket goes back each time.
func TestBusyThenServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{object: content(1500)}
		var tickets []string
		for i := range 100 {
			ticket := "2.a." + strings.Repeat("x", i+1)
			tickets = append(tickets, ticket)
			f.script = append(f.script, queued(ticket, api.Wait{Known: false, Class: "bulk"}, "300"))
		}
		f.script = append(f.script, problem(429, api.Problem{Code: "rate_limited"}, "Retry-After", time.Now().Add(99*24*time.Hour).UTC().Format(http.TimeFormat)))
		c := newClient(t, f, Retry{PerOperation: 1, PerRequest: 1})
		l := &log{}
		begin := time.Now()
		result, err := c.Download(t.Context(), Download{URL: c.FileURL("r", "f"), File: filepath.Join(t.TempDir(), "f"), Events: l.add})
		if err != nil {
			t.Fatal(err)
		}
		for i, ticket := range tickets {
			if got := f.requests[i+1].Get(api.HeaderQueueTicket); got != ticket {
				t.Fatalf("question %d carries ticket %q, want %q", i+1, got, ticket)
			}
		}
		took := time.Since(begin)
		if low, high := 100*300*time.Second+time.Hour, 100*305*time.Second+time.Hour+5*time.Second; took < low || took > high {
			t.Errorf("took %v, want %v..%v", took, low, high)
		}
		if result.Class != "bulk" || len(eventsOf[Waiting](l)) != 101 || len(eventsOf[Retrying](l)) != 0 {
			t.Errorf("class %q, %d waits", result.Class, len(eventsOf[Waiting](l)))
		}
	})
}

// D-1.4: three hours are one hour, asked again; jitter at most min(10 %, 5 s).
func TestLongRetryAfterIsAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{object: content(10), script: []step{plain(503, "Retry-After", "10800"), plain(429, "Retry-After", "10")}}
		if _, _, err := get(t, f, nil); err != nil {
			t.Fatal(err)
		}
		if d := f.at[1].Sub(f.at[0]); d < time.Hour || d > time.Hour+5*time.Second {
			t.Errorf("waited %v", d)
		}
		if d := f.at[2].Sub(f.at[1]); d < 10*time.Second || d > 11*time.Second {
			t.Errorf("waited %v", d)
		}
	})
}

// checkInMillis is finer than Retry-After, and tells the server's clock, so shown times are ours.
func TestWaitPrefersMillisAndTranslatesTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := time.Now().Add(-42 * time.Minute)
		start, early, late := server.Add(47*time.Minute), server.Add(40*time.Minute), server.Add(60*time.Minute)
		f := &fake{object: content(10), script: []step{queued("t", api.Wait{Known: true, Position: 312, StartsAt: &start,
			StartsEarliest: &early, StartsLatest: &late, CheckAt: server.Add(1500 * time.Millisecond), CheckInMillis: 1500, Class: "bulk"}, "2")}}
		begin := time.Now()
		_, l, err := get(t, f, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := eventsOf[Waiting](l)[0]
		if !w.Known || w.Position != 312 || w.StartsAt.Sub(begin) != 47*time.Minute || w.Earliest.Sub(begin) != 40*time.Minute ||
			w.Latest.Sub(begin) != time.Hour || w.CheckIn != 1500*time.Millisecond || w.Reason != api.ReasonQueued {
			t.Errorf("%+v", w)
		}
		if d := f.at[1].Sub(f.at[0]); d < 1500*time.Millisecond || d > 1650*time.Millisecond {
			t.Errorf("waited %v", d)
		}
	})
}

// A server that restarts is away for half a minute: the budget carries that (D-1.2), the place is asked for again.
func TestServerRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{object: content(3500)}
		f.script = append([]step{nil, queued("t1", api.Wait{}, "2")}, repeat(4, refused)...)
		f.script = append(f.script, queued("t2", api.Wait{}, "2"))
		_, l, err := get(t, f, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.requests[6].Get(api.HeaderQueueTicket); got != "t1" {
			t.Errorf("the restarted server is shown the ticket %q", got)
		}
		if away := f.at[6].Sub(f.at[2]); away < 30*time.Second {
			t.Errorf("the retries span only %v", away)
		}
		if n := len(eventsOf[Retrying](l)); n != 4 {
			t.Errorf("%d retries", n)
		}
	})
}

func TestRetryBudget(t *testing.T) {
	steady := func(n int) []step { // each range breaks twice, then works
		var s []step
		for range n {
			s = append(s, refused, plain(502), nil)
		}
		return s
	}
	tests := []struct {
		name     string
		script   []step
		requests int
		kind     error
	}{
		{"per request", repeat(50, plain(504)), 6, ErrNetwork},
		{"per operation", steady(50), 31, ErrNetwork},
		{"fault with a short Retry-After", []step{plain(502, "Retry-After", "60")}, 31, nil},
		{"fault with a long Retry-After", []step{plain(502, "Retry-After", "61")}, 1, nil},
		{"busy by name without Retry-After", repeat(40, problem(503, api.Problem{Code: "busy"})), 70, nil},
		{"503 of a proxy without Retry-After", repeat(50, plain(503)), 6, ErrNetwork},
		{"503 that isn't busy", []step{problem(503, api.Problem{Code: "internal"}, "Retry-After", "1")}, 1, nil},
		{"not found", []step{problem(404, api.Problem{Code: "not_found", Message: "not found"})}, 1, nil},
		{"internal", []step{problem(500, api.Problem{Code: "internal"})}, 1, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, dir := &fake{object: content(30_000), script: tt.script}, t.TempDir()
				_, _, err := get(t, f, func(d *Download) { d.File = filepath.Join(dir, "f") })
				if len(f.requests) != tt.requests {
					t.Errorf("%d requests, want %d (%v)", len(f.requests), tt.requests, err)
				}
				if tt.kind != nil && !errors.Is(err, tt.kind) {
					t.Errorf("error %v", err)
				}
				if tt.requests == 1 && err == nil {
					t.Error("no error")
				}
				if left, _ := os.ReadDir(dir); tt.requests == 1 && len(left) != 0 {
					t.Errorf("left behind without a byte: %v", left)
				}
			})
		})
	}
}

// A connection that breaks in mid-range loses nothing that came.
func TestBrokenConnectionKeepsBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{object: content(3000)}
		f.script = []step{nil, func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("ETag", `"`+digestOf(f.object)+`"`)
			w.Header().Set("Content-Range", "bytes 1000-1999/3000")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(f.object[1000:1400])
			return errCut
		}}
		if _, _, err := get(t, f, nil); err != nil {
			t.Fatal(err)
		}
		if got := f.requests[2].Get("Range"); got != "bytes=1400-2399" {
			t.Errorf("goes on with %q", got)
		}
	})
}

// An attempt that moves no byte for a minute is broken off and retried.
func TestStalledAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{object: content(100)}
		f.script = []step{func(w http.ResponseWriter, r *http.Request) error {
			<-r.Context().Done()
			return r.Context().Err()
		}}
		begin := time.Now()
		_, l, err := get(t, f, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r := eventsOf[Retrying](l); len(r) != 1 || !errors.Is(r[0].Err, errStalled) || time.Since(begin) < time.Minute {
			t.Errorf("retries %v after %v", r, time.Since(begin))
		}
	})
}

func TestChangedObject(t *testing.T) {
	setup := func() *fake {
		f := &fake{object: content(3000)}
		f.script = []step{nil, func(w http.ResponseWriter, r *http.Request) error {
			f.object = bytes.Repeat([]byte("new "), 500)
			return f.serve(w, r)
		}}
		return f
	}
	_, l, err := get(t, setup(), nil) // compares with the new object
	if err != nil || len(eventsOf[Restarted](l)) != 1 {
		t.Errorf("%v, events %v", err, l.events)
	}
	_, _, err = get(t, setup(), func(d *Download) { d.Digest = digestOf(content(3000)) })
	if !errors.Is(err, ErrChanged) {
		t.Errorf("with a digest asked for: %v", err)
	}
	_, _, err = get(t, &fake{object: content(10)}, func(d *Download) { d.Digest = digestOf([]byte("other")) })
	if !errors.Is(err, ErrChanged) {
		t.Errorf("another digest from the start: %v", err)
	}
}

func TestWrongBytes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	f := &fake{object: content(3000), digest: digestOf([]byte("something else"))}
	_, _, err := get(t, f, func(d *Download) { d.File = file })
	if !errors.Is(err, ErrIntegrity) {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A client's windows, and a limit of its waiting, which by default has none (D-5.1, D-1.3).
func TestClientWindows(t *testing.T) {
	t.Run("not before", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f, at := &fake{object: content(10)}, time.Now().Add(31*time.Hour)
			_, l, err := get(t, f, func(d *Download) { d.NotBefore = at; d.WaitLimit = time.Second })
			if err != nil || !f.at[0].Equal(at) || len(eventsOf[Scheduled](l)) != 1 {
				t.Errorf("%v, asked at %v, want %v", err, f.at, at)
			}
		})
	})
	t.Run("estimate past the deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now().Add(2 * time.Hour)
			f := &fake{script: []step{queued("t", api.Wait{Known: true, Position: 9, StartsAt: &start, CheckInMillis: 1000}, "1")}}
			begin := time.Now()
			_, _, err := get(t, f, func(d *Download) { d.NotAfter = begin.Add(time.Hour) })
			if !errors.Is(err, ErrQueueDeadline) || !time.Now().Equal(begin) {
				t.Errorf("%v after %v", err, time.Since(begin))
			}
		})
	})
	t.Run("estimate only in headers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{script: []step{plain(503, "Retry-After", "1", api.HeaderQueuePosition, "4", api.HeaderStartsAt, time.Now().Add(2*time.Hour).Format(time.RFC3339))}}
			_, _, err := get(t, f, func(d *Download) { d.NotAfter = time.Now().Add(time.Hour) })
			if !errors.Is(err, ErrQueueDeadline) {
				t.Error(err)
			}
		})
	})
	t.Run("wait past the deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{script: repeat(20, queued("t", api.Wait{}, "300"))}
			begin := time.Now()
			_, _, err := get(t, f, func(d *Download) { d.NotAfter = begin.Add(time.Hour) })
			if !errors.Is(err, ErrQueueDeadline) || time.Since(begin) != time.Hour {
				t.Errorf("%v after %v", err, time.Since(begin))
			}
		})
	})
	t.Run("no limit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{script: repeat(500, queued("t", api.Wait{}, "300"))}
			begin := time.Now()
			if _, _, err := get(t, f, func(*Download) {}); err != nil || time.Since(begin) < 40*time.Hour {
				t.Errorf("%v after %v, want two days of waiting and the file", err, time.Since(begin))
			}
		})
	})
	t.Run("wait limit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{script: repeat(20, queued("t", api.Wait{}, "300"))}
			begin := time.Now()
			_, _, err := get(t, f, func(d *Download) { d.WaitLimit = 20 * time.Minute })
			if !errors.Is(err, ErrWaitLimit) || time.Since(begin) != 20*time.Minute {
				t.Errorf("%v after %v", err, time.Since(begin))
			}
		})
	})
}

// The key goes to its own server only, never with a link.
func TestKeyStaysHome(t *testing.T) {
	for _, url := range []string{"http://store.test/l/token", "http://elsewhere.test/files/r/f", "https://store.test/files/r/f"} {
		f := &fake{object: content(10)}
		if _, _, err := get(t, f, func(d *Download) { d.URL = url }); err != nil {
			t.Fatal(err)
		}
		if got := f.requests[0].Get("Authorization"); got != "" {
			t.Errorf("%s is shown %q", url, got)
		}
	}
}

func TestAnswersThatLie(t *testing.T) {
	answer := func(status int, contentRange, body string) step {
		return func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Content-Range", contentRange)
			w.WriteHeader(status)
			_, err := io.WriteString(w, body)
			return err
		}
	}
	for _, s := range []step{
		answer(206, "", "x"), answer(206, "bytes 5-9/3000", "xxxxx"), answer(206, "bytes 0-2999/3000", "short"), answer(206, "bytes 0-9/*", "x"),
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{object: content(3000), script: repeat(9, s)}
			_, _, err := get(t, f, nil)
			if err == nil {
				t.Error("believed")
			}
		})
	}
}
