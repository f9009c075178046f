package problem

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
)

// What is written out by hand is what encoding/json writes, to the byte (D-1.1, D-2.3).
func TestEncode(t *testing.T) {
	at := time.Date(2026, 11, 30, 23, 5, 1, 120_000_000, time.UTC)
	abroad := at.In(time.FixedZone("", 5400))
	waiting := api.Wait{Known: true, Position: 7, StartsAt: &at, StartsEarliest: &abroad, StartsLatest: &at, CheckAt: at, CheckInMillis: 1500, Class: "bulk"}
	explained := waiting
	explained.Why = &api.Why{Ahead: []api.WhyAhead{{Class: "bulk", Sessions: 3}}}
	for name, p := range map[string]api.Problem{
		"empty":     {},
		"plain":     {Type: "urn:x", Title: "Not Found", Status: 404, Code: "not_found", Message: "file not found", RequestID: "r-1"},
		"escapes":   {Title: "a\"b\\c", Message: "<é\n\x00>&\u2028\xff", Code: "x", Reason: "\x7f"},
		"details":   {Status: 400, Details: []api.Detail{{Field: "path", Problem: "must not be empty"}}},
		"waiting":   {Status: 503, Reason: api.ReasonQueued, RetryAfterSeconds: 2, Queue: &waiting},
		"new":       {Status: 503, Queue: &api.Wait{CheckAt: at}},
		"explained": {Status: 503, Queue: &explained},
	} {
		want, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(encode(p)); got != string(want) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

func FuzzEncode(f *testing.F) {
	f.Add("busy", "waiting for a seat", int64(3), 9, int64(1_790_000_000_123))
	f.Add("", "\u2028<\\", int64(-1), 0, int64(0))
	f.Fuzz(func(t *testing.T, code, message string, seconds int64, position int, millis int64) {
		at := time.UnixMilli(millis % 1e14).UTC()
		p := api.Problem{Code: code, Reason: message, Message: message, RequestID: code, RetryAfterSeconds: seconds}
		p.Queue = &api.Wait{Position: position, StartsAt: &at, CheckAt: at, CheckInMillis: millis, Class: code}
		want, err := json.Marshal(p)
		if err != nil {
			return // a year that RFC 3339 cannot tell
		}
		if got := string(encode(p)); got != string(want) {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
