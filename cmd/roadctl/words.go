package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

// The wording of times, places and amounts: a time is a clock plus a distance, an amount is decimal (GB = 10^9).

// span renders a duration in at most two units.
func span(d time.Duration) string {
	d = max(d, 0)
	two := func(big time.Duration, bigName string, small time.Duration, smallName string) string {
		d := d.Round(small)
		if rest := d % big / small; rest > 0 {
			return fmt.Sprintf("%d %s %d %s", d/big, bigName, rest, smallName)
		}
		return fmt.Sprintf("%d %s", d/big, bigName)
	}
	switch {
	case d >= 24*time.Hour:
		return two(24*time.Hour, "d", time.Hour, "h")
	case d >= time.Hour:
		return two(time.Hour, "h", time.Minute, "min")
	case d >= 10*time.Minute:
		return fmt.Sprintf("%d min", d.Round(time.Minute)/time.Minute)
	case d >= time.Minute:
		return two(time.Minute, "min", time.Second, "s")
	case d > 0 && d < time.Second:
		return "1 s"
	}
	return fmt.Sprintf("%d s", d.Round(time.Second)/time.Second)
}

// clockTime renders an instant as people say it today.
func clockTime(t, now time.Time) string {
	t = t.In(now.Location())
	day := func(t time.Time) int {
		return int(time.Date(t.Year(), t.Month(), t.Day(), 12, 0, 0, 0, time.UTC).Unix() / 86400)
	}
	switch day(t) - day(now) {
	case 0:
		return t.Format("15:04")
	case 1:
		return "tomorrow " + t.Format("15:04")
	case -1:
		return "yesterday " + t.Format("15:04")
	}
	if t.Year() != now.Year() {
		return t.Format("2 Jan 2006 15:04")
	}
	return t.Format("Mon 2 Jan 15:04")
}

// when is a clock time with its distance.
func when(t, now time.Time) string {
	if t.After(now) {
		return clockTime(t, now) + " (in " + span(t.Sub(now)) + ")"
	}
	return clockTime(t, now) + " (" + span(now.Sub(t)) + " ago)"
}

// amount renders a count of bytes.
func amount(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	f, units := float64(n)/1000, "kMGTPE"
	for f >= 999.95 && len(units) > 1 {
		f, units = f/1000, units[1:]
	}
	return fmt.Sprintf("%.1f %cB", f, units[0])
}

// ordinal renders a place: next, 2nd, 312th.
func ordinal(n int) string {
	if n == 1 {
		return "next"
	}
	suffix := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}

// waitingWords says where a download stands (D-11.1). asked is when the server was asked.
func waitingWords(w sdk.Waiting, asked, now time.Time) string {
	again := "asking again in " + span(w.CheckIn-now.Sub(asked))
	switch {
	case w.Known:
	case w.Reason == api.ReasonQueued:
		return "queue: place not known yet, " + again
	case w.Reason == api.ReasonDraining:
		return "busy: the server is restarting, your place is kept, " + again
	default:
		return "busy: the server asks to come later, " + again
	}
	s := "queue: " + ordinal(w.Position)
	switch {
	case w.StartsAt.IsZero():
		return s + ", start not known yet, " + again
	case w.StartsAt.After(now):
		s += ", starts about " + when(w.StartsAt, now)
	case !w.Latest.IsZero() && now.After(w.Latest):
		s += ", late by " + span(now.Sub(w.Latest)) + ", " + again
	default:
		s += ", due now"
	}
	if !w.Earliest.IsZero() && w.Latest.After(now) && w.Latest.Sub(w.Earliest) >= time.Minute {
		s += ", between " + clockTime(w.Earliest, now) + " and " + clockTime(w.Latest, now)
	}
	return s
}

// progressWords says how far the bytes are.
func progressWords(p sdk.Progress, now time.Time) string {
	s := amount(p.Offset)
	if p.Size > 0 {
		s += fmt.Sprintf(" of %s (%d %%)", amount(p.Size), p.Offset*100/p.Size)
	}
	if p.Rate > 0 {
		s += ", " + amount(int64(p.Rate)) + "/s"
	}
	if p.ETA > 0 && p.Offset < p.Size {
		s += ", done about " + when(now.Add(p.ETA), now)
	}
	return s
}
