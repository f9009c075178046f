package apptest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/app"
	"github.com/roadstead/roadstead/internal/app/apptest"
)

// book posts a booking as the owner of the key.
func book(t *testing.T, s *apptest.Server, key, idempotency string, want api.NewBooking) (api.Booking, apptest.Answer) {
	t.Helper()
	body, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	a := s.Do("POST", "/api/v1/downloads", strings.NewReader(string(body)), "Authorization", "Bearer "+key,
		"Content-Type", "application/json", api.HeaderIdempotency, idempotency)
	var out api.Booking
	if a.Status < 300 {
		if err := json.Unmarshal(a.Body, &out); err != nil {
			t.Fatal(err)
		}
	}
	return out, a
}

// A place is booked, followed, taken up by a GET with its id, and cancelled in mid-answer (D-2.14).
func TestBookings(t *testing.T) {
	s := apptest.Start(t, oneSeat, func(c *app.Config) { c.Bandwidth = 256 << 10 })
	s.Repository("demo")
	f := s.Put("demo", "big", content(fourMegabytes))
	first := begin(t, s, "first")
	b, a := book(t, s, s.Key, "k1", api.NewBooking{Repository: "demo", Path: "big", ID: "second"})
	if a.Status != 201 || b.State != api.BookingQueued || b.Position != 1 || b.Ticket == "" || b.LapsesAt == nil || a.Header.Get("Retry-After") == "" ||
		a.Header.Get("Location") != "/api/v1/downloads/second" || a.Header.Get(api.HeaderQueueTicket) != b.Ticket {
		t.Fatalf("booked: %d %s %v", a.Status, a.Body, a.Header)
	}
	if again, a := book(t, s, s.Key, "k1", api.NewBooking{Repository: "demo", Path: "big", ID: "second"}); a.Status != 200 || again.ID != b.ID || !again.CreatedAt.Equal(b.CreatedAt) {
		t.Errorf("repeated: %d %s", a.Status, a.Body)
	}
	if _, a := book(t, s, s.Key, "k1", api.NewBooking{Repository: "demo", Digest: f.Digest}); a.Status != 422 || s.Problem(a).Code != "idempotency_mismatch" {
		t.Errorf("repeated with another body: %d %s", a.Status, a.Body)
	}
	deadline := time.Now().Add(time.Second)
	if late, a := book(t, s, s.Key, "k2", api.NewBooking{Repository: "demo", Digest: f.Digest, NotAfter: &deadline}); a.Status != 201 || !late.MissesNotAfter || len(late.ID) != 26 {
		t.Errorf("too late to start: %d %s", a.Status, a.Body)
	}
	for name, bad := range map[string]struct {
		key  string
		want api.NewBooking
		code int
	}{
		"no key":        {"", api.NewBooking{Repository: "demo", Path: "big"}, 400},
		"no object":     {"b1", api.NewBooking{Repository: "demo"}, 400},
		"two objects":   {"b2", api.NewBooking{Repository: "demo", Path: "big", Digest: f.Digest}, 400},
		"no such file":  {"b3", api.NewBooking{Repository: "demo", Path: "none"}, 404},
		"bad id":        {"b4", api.NewBooking{Repository: "demo", Path: "big", ID: "a b"}, 400},
		"unknown class": {"b5", api.NewBooking{Repository: "demo", Path: "big", Class: "urgent"}, 400},
		"id taken":      {"b6", api.NewBooking{Repository: "demo", Path: "big", ID: "second"}, 409},
	} {
		if _, a := book(t, s, s.Key, bad.key, bad.want); a.Status != bad.code {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
	if _, a := book(t, s, s.Key, "b5", api.NewBooking{Repository: "demo", Path: "big", Class: "urgent"}); s.Problem(a).Details[0].Field != "class" {
		t.Errorf("unknown class: %s", a.Body)
	}
	_, other := s.ServiceAccount("other", "demo", "read")
	for _, method := range []string{"GET", "DELETE"} {
		if a := s.JSON(other, method, "/api/v1/downloads/second", nil, nil); a.Status != 404 {
			t.Errorf("%s by somebody else: %d %s", method, a.Status, a.Body)
		}
	}
	// The busy answer to its bytes says why, when asked (D-11.1).
	busy := s.Do("GET", "/files/demo/big", nil, api.HeaderDownloadID, "second", "Prefer", "respond-async, why")
	if p := s.Problem(busy); busy.Status != 503 || p.Queue == nil || p.Queue.Why == nil || p.Queue.Why.SeatsInUse != 1 || busy.Header.Get("Preference-Applied") != "why" {
		t.Errorf("why: %d %s", busy.Status, busy.Body)
	}
	if p := s.Problem(s.Do("GET", "/files/demo/big", nil, api.HeaderDownloadID, "second")); p.Queue == nil || p.Queue.Why != nil {
		t.Errorf("unasked: %+v", p.Queue)
	}
	_ = first.Body.Close() // the seat comes free when the idle time is over; cancelling frees it at once
	cancelRunning(t, s)
}

// cancelRunning books, fetches and cancels in the middle of the answer.
func cancelRunning(t *testing.T, s *apptest.Server) {
	t.Helper()
	for _, id := range []string{"second"} {
		if a := s.JSON(s.Key, "DELETE", "/api/v1/downloads/"+id, nil, nil); a.Status != 204 {
			t.Fatalf("cancel: %d %s", a.Status, a.Body)
		}
	}
	var gone api.Booking
	if s.JSON(s.Key, "GET", "/api/v1/downloads/second", nil, &gone); gone.State != api.BookingCancelled {
		t.Errorf("cancelled: %+v", gone)
	}
	free := apptest.Start(t, oneSeat, func(c *app.Config) { c.Bandwidth = 256 << 10 })
	free.Repository("demo")
	free.Put("demo", "big", content(fourMegabytes))
	if b, a := book(t, free, free.Key, "k", api.NewBooking{Repository: "demo", Path: "big", ID: "mine"}); b.State != api.BookingActive {
		t.Fatalf("a free seat: %d %s", a.Status, a.Body)
	}
	running := begin(t, free, "mine")
	defer func() { _ = running.Body.Close() }()
	if a := free.JSON(free.Key, "DELETE", "/api/v1/downloads/mine", nil, nil); a.Status != 204 {
		t.Fatalf("cancel: %d %s", a.Status, a.Body)
	}
	if n, err := io.Copy(io.Discard, running.Body); err == nil || n >= fourMegabytes-1 {
		t.Errorf("the running answer went on for %d bytes, %v", n, err)
	}
	if again := begin(t, free, "next"); again.StatusCode != http.StatusOK {
		t.Errorf("the seat of a cancelled download: %d", again.StatusCode)
	} else {
		_ = again.Body.Close()
	}
}

// The queue's readers are told how unlike the sizes are.
func TestQueueTellsSizes(t *testing.T) {
	s := apptest.Start(t, oneSeat)
	s.Repository("demo")
	s.Put("demo", "big", content(fourMegabytes))
	for i := range 6 {
		s.Put("demo", "small"+strconv.Itoa(i), content(10_000))
	}
	first := begin(t, s, "first")
	defer func() { _ = first.Body.Close() }()
	s.Do("GET", "/files/demo/big", nil, api.HeaderDownloadID, "a")
	for i := range 6 {
		s.Do("GET", "/files/demo/small"+strconv.Itoa(i), nil, api.HeaderDownloadID, "b")
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		var q api.Queue
		s.JSON(s.Key, "GET", "/api/v1/system/downloads/queue", nil, &q)
		if q.SizeGini != nil && *q.SizeGini > 0.7 && strings.Contains(q.Advice, "smallest-first") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("queue: %+v", q)
		}
	}
}
