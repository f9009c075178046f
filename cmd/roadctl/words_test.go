package main

import (
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 0: "0 s", time.Millisecond: "1 s", 40 * time.Second: "40 s", 90 * time.Second: "1 min 30 s",
		5 * time.Minute: "5 min", 47*time.Minute + 20*time.Second: "47 min", 12*time.Hour + 52*time.Minute: "12 h 52 min",
		24 * time.Hour: "1 d", 84 * time.Hour: "3 d 12 h",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestWhen(t *testing.T) {
	for d, want := range map[time.Duration]string{
		47 * time.Minute:              "12:47 (in 47 min)",
		-16 * time.Minute:             "11:44 (16 min ago)",
		14*time.Hour + 10*time.Minute: "tomorrow 02:10 (in 14 h 10 min)",
		84 * time.Hour:                "Fri 4 Dec 00:00 (in 3 d 12 h)",
		-13 * time.Hour:               "yesterday 23:00 (13 h ago)",
		40 * 24 * time.Hour:           "9 Jan 2027 12:00 (in 40 d)",
	} {
		if got := when(noon.Add(d), noon); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestAmount(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 999_949: "999.9 kB", 999_950: "1.0 MB", 6_000_000_000: "6.0 GB", 1 << 62: "4.6 EB"} {
		if got := amount(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestOrdinal(t *testing.T) {
	for n, want := range map[int]string{1: "next", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 111: "111th", 312: "312th", 1023: "1023rd"} {
		if got := ordinal(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// D-11.1: place, start and time left.
func TestWaitingWords(t *testing.T) {
	at := func(d time.Duration) time.Time { return noon.Add(d) }
	tests := []struct {
		w    sdk.Waiting
		want string
	}{
		{sdk.Waiting{Known: true, Position: 312, StartsAt: at(47 * time.Minute)}, "queue: 312th, starts about 12:47 (in 47 min)"},
		{sdk.Waiting{Known: true, Position: 312, StartsAt: at(47 * time.Minute), Earliest: at(30 * time.Minute), Latest: at(62 * time.Minute)},
			"queue: 312th, starts about 12:47 (in 47 min), between 12:30 and 13:02"},
		{sdk.Waiting{Known: true, Position: 1, StartsAt: at(-time.Second), Latest: at(20 * time.Second)}, "queue: next, due now"},
		{sdk.Waiting{Known: true, Position: 2, StartsAt: at(-10 * time.Minute), Latest: at(-6 * time.Minute), CheckIn: 5 * time.Second},
			"queue: 2nd, late by 6 min, asking again in 5 s"},
		{sdk.Waiting{Known: true, Position: 7, CheckIn: time.Minute}, "queue: 7th, start not known yet, asking again in 1 min"},
		{sdk.Waiting{Reason: api.ReasonQueued, CheckIn: 2 * time.Second}, "queue: place not known yet, asking again in 2 s"},
		{sdk.Waiting{Reason: api.ReasonDraining, CheckIn: 5 * time.Second}, "busy: the server is restarting, your place is kept, asking again in 5 s"},
		{sdk.Waiting{CheckIn: 12 * time.Second}, "busy: the server asks to come later, asking again in 12 s"},
	}
	for _, tt := range tests {
		if got := waitingWords(tt.w, noon, noon); got != tt.want {
			t.Errorf("%+v:\n got %q\nwant %q", tt.w, got, tt.want)
		}
	}
}

func TestProgressWords(t *testing.T) {
	got := progressWords(sdk.Progress{Offset: 6e9, Size: 12e9, Rate: 40e6, ETA: 150 * time.Second}, noon)
	if want := "6.0 GB of 12.0 GB (50 %), 40.0 MB/s, done about 12:02 (in 2 min 30 s)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := progressWords(sdk.Progress{}, noon); got != "0 B" {
		t.Errorf("%q", got)
	}
}

// D-5.1: HH:MM is its next occurrence, in the caller's zone.
func TestParseInstant(t *testing.T) {
	zone := time.FixedZone("here", 3*3600)
	base := time.Date(2026, 11, 30, 22, 30, 0, 0, zone)
	tests := map[string]time.Time{
		"":                     {},
		"22:31":                time.Date(2026, 11, 30, 22, 31, 0, 0, zone),
		"22:30":                time.Date(2026, 12, 1, 22, 30, 0, 0, zone),
		"06:00":                time.Date(2026, 12, 1, 6, 0, 0, 0, zone),
		"2026-12-04T02:10:00Z": time.Date(2026, 12, 4, 2, 10, 0, 0, time.UTC),
	}
	for in, want := range tests {
		if got, err := parseInstant("not-before", in, base); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"6:00", "24:00", "22:60", "tomorrow", "2026-12-04", "22:00:00", "+1:00"} {
		if _, err := parseInstant("not-before", in, base); exitCode(err) != exitUsage {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func FuzzParseInstant(f *testing.F) {
	f.Add("22:00")
	f.Add("2026-12-04T02:10:00Z")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parseInstant("x", s, noon)
		if err == nil && len(s) == 5 && (!got.After(noon) || got.Sub(noon) > 24*time.Hour) {
			t.Errorf("%q: %v", s, got)
		}
	})
}

func TestSpanFlag(t *testing.T) {
	for in, want := range map[string]time.Duration{"30d": 720 * time.Hour, "90m": 90 * time.Minute, "1h30m": 90 * time.Minute, "0d": 0} {
		var f spanFlag
		if err := f.Set(in); err != nil || time.Duration(f) != want {
			t.Errorf("%q: %v %v", in, time.Duration(f), err)
		}
	}
	for _, in := range []string{"", "d", "-1h", "-1d", "1.5d", "soon", "99999999d"} {
		if (new(spanFlag)).Set(in) == nil {
			t.Errorf("%q is accepted", in)
		}
	}
}

func TestSafeName(t *testing.T) {
	for in, want := range map[string]string{"a.bin": "a.bin", "../../etc/passwd": "passwd", `..\..\x`: "x", "..": "", ".bashrc": "", "": "", "dir/": "", "a\x1b[2Jb": "", "наш файл": "наш файл"} {
		if got := safeName(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
