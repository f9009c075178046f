package apptest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/app"
	"github.com/roadstead/roadstead/internal/app/apptest"
)

// oneSeat makes a queue in which every object needs the only seat, over a link on which a megabyte takes a while.
func oneSeat(c *app.Config) {
	c.MaxDownloads, c.MaxDownloadSessions, c.SessionMinBytes = 1, 1, 1
	c.Hold, c.Bandwidth, c.Drain = 200*time.Millisecond, 4<<20, 30*time.Second
}

const fourMegabytes = 4 << 20

// begin opens a download and reads its first byte: from then on it has the seat.
func begin(t *testing.T, s *apptest.Server, id string) *http.Response {
	t.Helper()
	r, err := http.NewRequest("GET", s.URL+"/files/demo/big", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Key)
	if id != "" {
		r.Header.Set(api.HeaderDownloadID, id)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 1)); err != nil || res.StatusCode != 200 {
		t.Fatalf("%s: %d %v", id, res.StatusCode, err)
	}
	return res
}

func TestWaitingSaysItsPlace(t *testing.T) {
	s := apptest.Start(t, oneSeat)
	s.Repository("demo")
	body := content(fourMegabytes)
	s.Put("demo", "big", body)
	first := begin(t, s, "first")
	defer func() { _ = first.Body.Close() }()
	if first.Header.Get(api.HeaderQueueTicket) == "" || first.Header.Get(api.HeaderDownloadClass) != "interactive" {
		t.Errorf("a served answer lacks ticket or class: %v", first.Header)
	}
	a := s.Do("GET", "/files/demo/big", nil, api.HeaderDownloadID, "second", api.HeaderDownloadClass, "bulk")
	p := s.Problem(a)
	wait, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if a.Status != 503 || p.Code != "busy" || p.Reason != api.ReasonQueued || p.Queue == nil || err != nil || wait < 1 || p.RetryAfterSeconds != int64(wait) {
		t.Fatalf("got %d %s %v", a.Status, a.Body, a.Header)
	}
	if a.Header.Get(api.HeaderQueueTicket) == "" || a.Header.Get(api.HeaderDownloadClass) != "bulk" || p.Queue.Class != "bulk" {
		t.Errorf("a waiting answer lacks ticket or class: %v", a.Header)
	}
	// Neither HEAD nor an unchanged file needs the seat (D-2.6).
	for _, c := range []struct {
		method, header, value string
		status                int
	}{{"HEAD", "X", "x", 200}, {"GET", "If-None-Match", first.Header.Get("ETag"), 304}, {"GET", "Range", "bytes=9999999-", 416}} {
		if a := s.Do(c.method, "/files/demo/big", nil, c.header, c.value); a.Status != c.status {
			t.Errorf("%s with %s while the seat is taken: %d", c.method, c.header, a.Status)
		}
	}
	rest, err := io.ReadAll(first.Body)
	if err != nil || len(rest) != fourMegabytes-1 || !bytes.Equal(rest, body[1:]) {
		t.Errorf("the first download: %d bytes, %v", len(rest), err)
	}
}

// A stock tool without an id is held, then told to come back (D-2.4).
func TestHeldThenBusy(t *testing.T) {
	s := apptest.Start(t, oneSeat)
	s.Repository("demo")
	s.Put("demo", "big", content(fourMegabytes))
	first := begin(t, s, "first")
	defer func() { _ = first.Body.Close() }()
	began := time.Now()
	a := s.Do("GET", "/files/demo/big", nil)
	if took := time.Since(began); a.Status != 503 || a.Header.Get("Retry-After") == "" || took < 200*time.Millisecond {
		t.Errorf("after %v: %d %s", took, a.Status, a.Body)
	}
}

// A stopping server turns the waiting away with a time to come back and lets the running finish (D-7.4).
func TestDrain(t *testing.T) {
	s := apptest.Start(t, oneSeat, func(c *app.Config) { c.Hold = time.Hour })
	s.Repository("demo")
	body := content(fourMegabytes)
	s.Put("demo", "big", body)
	first := begin(t, s, "first")
	defer func() { _ = first.Body.Close() }()
	held := make(chan apptest.Answer)
	go func() { held <- s.Do("GET", "/files/demo/big", nil) }()
	for deadline := time.Now().Add(10 * time.Second); ; {
		var q api.Queue
		s.JSON(s.Key, "GET", "/api/v1/system/downloads/queue", nil, &q)
		if q.Classes[0].Held == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the request without an id was not held")
		}
	}
	s.BeginStop()
	if a := <-held; a.Status != 503 || a.Header.Get("Retry-After") == "" || s.Problem(a).Reason != api.ReasonDraining {
		t.Errorf("held: %d %s", a.Status, a.Body)
	}
	rest, err := io.ReadAll(first.Body)
	if err != nil || !bytes.Equal(rest, body[1:]) {
		t.Errorf("the running download was cut: %d bytes, %v", len(rest), err)
	}
	s.Stop()
}

// What was acknowledged is there after a restart, at the same address with the same key.
func TestRestart(t *testing.T) {
	s := apptest.Start(t)
	s.Repository("demo")
	s.Put("demo", "f", []byte("kept"))
	key := s.Key
	s.Restart()
	if a := s.Do("GET", "/files/demo/f", nil); a.Status != 200 || string(a.Body) != "kept" || s.Key != key {
		t.Errorf("got %d %q", a.Status, a.Body)
	}
}

// A stopping server lets a download by ranges come to its end: between two ranges it is not over (D-7.4).
func TestDrainWaitsForTheNextRange(t *testing.T) {
	s := apptest.Start(t, oneSeat)
	s.Repository("demo")
	body := content(fourMegabytes)
	s.Put("demo", "big", body)
	const piece = fourMegabytes / 4
	for from := 0; from < fourMegabytes; from += piece {
		a := s.Do("GET", "/files/demo/big", nil, api.HeaderDownloadID, "ranges", "Range", fmt.Sprintf("bytes=%d-%d", from, from+piece-1))
		if a.Status != 206 || !bytes.Equal(a.Body, body[from:from+piece]) {
			t.Fatalf("range from %d: %d %s", from, a.Status, a.Header)
		}
		if from == 0 {
			s.BeginStop()
		}
	}
	s.Stop()
}
