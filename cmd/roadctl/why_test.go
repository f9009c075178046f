package main

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roadstead/roadstead/api"
)

// D-11.1: the parts of a wait in plain sentences.
func TestWhyWords(t *testing.T) {
	opens := noon.Add(10 * time.Hour)
	for want, w := range map[string]api.Why{
		"All 16 seats are in use. 3 interactive and 12 bulk downloads go first.": {
			Seats: 16, SeatsInUse: 16, OwnShare: 4, Ahead: []api.WhyAhead{{Class: "interactive", Sessions: 3}, {Class: "bulk", Sessions: 12}}},
		"The only seat is in use. 1 bulk download goes first.": {Seats: 1, SeatsInUse: 1, OwnShare: 1, Ahead: []api.WhyAhead{{Class: "bulk", Sessions: 1}}},
		"3 of 4 seats are in use, the rest is kept for interactive downloads. Your downloads have 3 seats, all that you may have while others wait.": {
			Seats: 4, SeatsInUse: 3, Reserve: 1, OwnSeats: 3, OwnShare: 3},
		"Downloads of the class bulk may not start now, only from 22:00 (in 10 h) on. 0 of 4 seats are in use.": {
			Seats: 4, OwnShare: 1, WindowClosed: true, WindowOpensAt: &opens},
		"Downloads of the class bulk may not start at this hour. 2 of 4 seats are in use. It gave its seat to a download that still waits for one.": {
			Seats: 4, SeatsInUse: 2, OwnShare: 1, WindowClosed: true, Yielded: true},
	} {
		if got := whyWords(w, "bulk", noon); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// The server is asked for reasons only with -v, and they are said once while they stay the same.
func TestDownloadVerbose(t *testing.T) {
	for _, verbose := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			dir, asked := t.TempDir(), 0
			busy := func(w http.ResponseWriter, r *http.Request) {
				q := &api.Wait{CheckAt: time.Now().UTC().Add(time.Second), CheckInMillis: 1000, Class: "bulk"}
				if r.Header.Get("Prefer") == api.PreferWhy {
					asked++
					q.Why = &api.Why{Seats: 2, SeatsInUse: 2, OwnShare: 1, Ahead: []api.WhyAhead{}}
				}
				refuse(503, api.Problem{Code: "busy", Reason: api.ReasonQueued, Queue: q}, "Retry-After", "1")(w, r)
			}
			args := []string{"download", "fleet/fw.img", "-f", dir + "/"}
			if verbose {
				args = append(args, "-v")
			}
			code, _, stderr := command{args: args, now: func() time.Time { return time.Now().UTC() }, serve: inTurn(busy, busy, object(bytes.Repeat([]byte("x"), 10)))}.run(t)
			said := strings.Count(stderr, "why: All 2 seats are in use.\n")
			if code != 0 || verbose != (asked == 2) || verbose != (said == 1) {
				t.Errorf("verbose %v: code %d, asked %d times\n%s", verbose, code, asked, stderr)
			}
		})
	}
}
