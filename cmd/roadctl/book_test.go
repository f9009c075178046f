package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
)

// A place is booked, followed and given up from the command line (D-2.14): the answer goes to standard output, what to do
// about it to the notes.
func TestBook(t *testing.T) {
	at := func(d time.Duration) *time.Time { t := noon.Add(d); return &t }
	queued := api.Booking{
		ID: "d1", State: api.BookingQueued, Repository: "fleet", Path: "fw.img", Admission: api.AdmissionSessions, Ticket: "2.a.b.c",
		LapsesAt: at(5 * time.Minute), NotAfter: at(time.Hour), MissesNotAfter: true,
		Wait: api.Wait{Known: true, Position: 3, StartsAt: at(2 * time.Hour), StartsEarliest: at(90 * time.Minute), StartsLatest: at(3 * time.Hour), Class: "bulk"},
	}
	var sent api.NewBooking
	var key string
	book := func(w http.ResponseWriter, r *http.Request) {
		if key = r.Header.Get(api.HeaderIdempotency); r.Method != http.MethodPost || r.URL.Path != "/api/v1/downloads" || json.NewDecoder(r.Body).Decode(&sent) != nil {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		answer(queued)(w, r)
	}
	follow := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/downloads/d1" || r.Header.Get(api.HeaderQueueTicket) != "2.a.b.c" {
			t.Errorf("%s %s with ticket %q", r.Method, r.URL, r.Header.Get(api.HeaderQueueTicket))
		}
		answer(api.Booking{ID: "d1", State: api.BookingActive})(w, r)
	}
	scheduled := api.Booking{ID: "d1", State: api.BookingScheduled, NotBefore: at(10 * time.Hour)}
	for _, c := range []struct {
		args           string
		serve          http.HandlerFunc
		code           int
		stdout, stderr string
	}{
		{args: "book create fleet/fw.img --class bulk --not-after 13:00 --key k1", serve: book,
			stdout: "d1  queued: 3rd, starts about 14:00 (in 2 h), between 13:30 and 15:00\n", stderr: "the start lies past 13:00"},
		{args: "book create fleet --digest sha256:00 --not-before 22:00", serve: answer(scheduled), stdout: "d1  scheduled: queues from 22:00 (in 10 h) on\n"},
		{args: "book show d1 --ticket 2.a.b.c", serve: follow, stdout: "d1  active\n"},
		{args: "book show d1 -o json", serve: answer(queued), stdout: `"state": "queued"`},
		{args: "book show d1", serve: answer(api.Booking{ID: "d1", State: api.BookingQueued}), stdout: "d1  queued: place not known yet\n"},
		{args: "book cancel d1", serve: answer(nil), stderr: "cancelled d1"},
		{args: "book cancel d1", serve: refuse(404, api.Problem{Code: "not_found", Message: "no such download"}), code: 1, stderr: "no such download"},
		{args: "book create fleet/fw.img", serve: refuse(409, api.Problem{Code: "conflict", Message: "the key is used"}), code: 6, stderr: "the key is used"},
		{args: "book create fleet/fw.img --not-after soon", code: 2, stderr: "--not-after must be like"},
		{args: "book create fleet/fw.img --offset=-1", code: 2, stderr: "--offset"},
		{args: "book create fleet", code: 2},
		{args: "book show", code: 2},
	} {
		code, stdout, stderr := command{args: strings.Fields(c.args), serve: c.serve}.run(t)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%s: code %d\n%s%s", c.args, code, stdout, stderr)
		}
	}
	if key != "k1" || sent.Repository != "fleet" || sent.Path != "fw.img" || sent.Class != "bulk" || sent.NotAfter == nil || !sent.NotAfter.Equal(noon.Add(time.Hour)) {
		t.Errorf("asked with key %q for %+v", key, sent)
	}
}
