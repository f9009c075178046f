package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

// reasons says why a download waits, when that has changed and not more often than a log bears (D-11.1).
type reasons struct {
	a     *app
	to    report
	last  string
	at    time.Time
	known bool // the place was known when they were said last
}

func (r *reasons) event(e sdk.Event) {
	r.to.event(e)
	w, ok := e.(sdk.Waiting)
	if !ok || w.Why == nil {
		return
	}
	now := r.a.now()
	words := whyWords(*w.Why, w.Class, now)
	if words == r.last || !r.at.IsZero() && now.Sub(r.at) < waitingLineEvery && w.Known == r.known {
		return
	}
	r.last, r.at, r.known = words, now, w.Known
	r.to.note("why: " + words)
}

// whyWords puts the reasons of a wait into sentences, the strongest first.
func whyWords(w api.Why, class string, now time.Time) string {
	var s []string
	add := func(format string, args ...any) { s = append(s, fmt.Sprintf(format, args...)+".") }
	switch {
	case w.WindowClosed && w.WindowOpensAt != nil:
		add("Downloads of the class %s may not start now, only from %s on", class, when(*w.WindowOpensAt, now))
	case w.WindowClosed:
		add("Downloads of the class %s may not start at this hour", class)
	}
	switch free := w.Seats - w.SeatsInUse; {
	case free <= 0 && w.Seats == 1:
		add("The only seat is in use")
	case free <= 0:
		add("All %d seats are in use", w.Seats)
	case free <= w.Reserve:
		add("%d of %s in use, the rest is kept for interactive downloads", w.SeatsInUse, count(w.Seats, "seat is", "seats are"))
	default:
		add("%d of %s in use", w.SeatsInUse, count(w.Seats, "seat is", "seats are"))
	}
	if words := aheadWords(w.Ahead); words != "" {
		add("%s first", words)
	}
	if w.OwnSeats >= w.OwnShare {
		add("Your downloads have %s, all that you may have while others wait", count(w.OwnSeats, "seat", "seats"))
	}
	if w.Yielded {
		add("It gave its seat to a download that still waits for one")
	}
	return strings.Join(s, " ")
}

// aheadWords counts who goes first: "3 interactive and 12 bulk downloads go".
func aheadWords(ahead []api.WhyAhead) string {
	total := 0
	var parts []string
	for _, a := range ahead {
		total += a.Sessions
		parts = append(parts, fmt.Sprintf("%d %s", a.Sessions, a.Class))
	}
	switch {
	case total == 0:
		return ""
	case total == 1:
		return parts[0] + " download goes"
	case len(parts) == 1:
		return parts[0] + " downloads go"
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last] + " downloads go"
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
