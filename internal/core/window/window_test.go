package window

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/roadstead/roadstead/internal/fault"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func rule(t *testing.T, days []string, from, to string) Rule {
	t.Helper()
	r, err := ParseRule("window", days, from, to)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Nights over a change of the clock have the length that the wall shows, and the next night is usual (D-5.2).
func TestNightsOverClockChanges(t *testing.T) {
	for _, c := range []struct{ zone, evening, opens, closes, hours string }{
		{"Europe/Berlin", "2026-03-28 12:00", "2026-03-28 21:00", "2026-03-29 04:00", "7h"},     // forward
		{"Europe/Berlin", "2026-03-29 12:00", "2026-03-29 20:00", "2026-03-30 04:00", "8h"},     // the night after
		{"Europe/Berlin", "2026-10-24 12:00", "2026-10-24 20:00", "2026-10-25 05:00", "9h"},     // back
		{"America/New_York", "2026-03-07 20:00", "2026-03-08 03:00", "2026-03-08 10:00", "7h"},  // forward
		{"America/New_York", "2026-10-31 20:00", "2026-11-01 02:00", "2026-11-01 11:00", "9h"},  // back
		{"America/Sao_Paulo", "2018-11-03 15:00", "2018-11-04 01:00", "2018-11-04 08:00", "7h"}, // local midnight does not exist
	} {
		w := New(zone(t, c.zone), rule(t, nil, "22:00", "06:00"))
		at := func(s string) time.Time {
			v, err := time.ParseInLocation("2006-01-02 15:04", s, time.UTC)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		changes := w.Changes(at(c.evening), 48*time.Hour, 2)
		if len(changes) != 2 || !changes[0].Equal(at(c.opens)) || !changes[1].Equal(at(c.closes)) {
			t.Errorf("%s after %s: changes %v, want %s and %s UTC", c.zone, c.evening, changes, c.opens, c.closes)
			continue
		}
		if want, _ := time.ParseDuration(c.hours); changes[1].Sub(changes[0]) != want {
			t.Errorf("%s: the night is %v long, want %s", c.zone, changes[1].Sub(changes[0]), c.hours)
		}
	}
}

// An hour shown twice counts both times; an hour never shown counts not at all.
func TestDoubledAndMissingHour(t *testing.T) {
	w := New(zone(t, "Europe/Berlin"), rule(t, []string{"sun"}, "02:00", "03:00"))
	back := time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC)
	if c := w.Changes(back, 24*time.Hour, 9); len(c) != 2 || c[1].Sub(c[0]) != 2*time.Hour {
		t.Errorf("the doubled hour gives %v, want two hours in one piece", c)
	}
	forward := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	if c := w.Changes(forward, 24*time.Hour, 9); len(c) != 0 {
		t.Errorf("the missing hour gives %v, want nothing", c)
	}
}

// Every listed change is one, nothing changes between them, minute by minute through a year.
func TestChangesAgreeWithOpen(t *testing.T) {
	w := New(zone(t, "America/Sao_Paulo"), rule(t, []string{"fri", "sat"}, "23:30", "00:30"), rule(t, []string{"mon"}, "08:00", "24:00"), rule(t, []string{"wed"}, "12:00", "12:00"))
	at := time.Date(2018, 1, 1, 0, 0, 0, 0, time.UTC)
	changes := w.Changes(at, 366*24*time.Hour, 10_000)
	open, i := w.Open(at), 0
	for end := at.Add(365 * 24 * time.Hour); at.Before(end); at = at.Add(time.Minute) {
		if now := w.Open(at); now != open {
			if !changes[i].Equal(at) {
				t.Fatalf("the window turned %t at %v, the list says %v", now, at, changes[i])
			}
			open, i = now, i+1
		}
	}
	if i < 300 {
		t.Fatalf("only %d changes in a year", i)
	}
}

func TestParseRuleNamesTheField(t *testing.T) {
	for _, c := range []struct {
		days     []string
		from, to string
		field    string
	}{
		{[]string{"monday"}, "01:00", "02:00", "w.days"}, {nil, "24:00", "02:00", "w.from"}, {nil, "1:00", "02:00", "w.from"},
		{nil, "01:60", "02:00", "w.from"}, {nil, "01:00", "25:00", "w.to"}, {nil, "01:00", "", "w.to"}, {nil, "-1:00", "02:00", "w.from"},
	} {
		_, err := ParseRule("w", c.days, c.from, c.to)
		if f := fault.From(err); f.Code != fault.InvalidInput || f.Details[0].Field != c.field {
			t.Errorf("%v %s-%s: %v, want the field %s", c.days, c.from, c.to, err, c.field)
		}
	}
}

func FuzzParseRule(f *testing.F) {
	f.Add("mon", "22:00", "06:00")
	f.Fuzz(func(t *testing.T, day, from, to string) {
		r, err := ParseRule("w", []string{day}, from, to)
		if err == nil && (r.From < 0 || r.From >= minutesADay || r.To < 0 || r.To > minutesADay) {
			t.Errorf("%q-%q gives %+v", from, to, r)
		}
	})
}
