package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/roadstead/roadstead/api"
)

// reasonWords is a reason of the wire as people say it.
func reasonWords(reason string) string {
	switch reason {
	case "waiting_turn":
		return "others come first, or its runners are busy"
	case "exit_code":
		return "ended with an error"
	case "queue_full":
		return "the pool's queue is full"
	case "queue_too_old":
		return "your oldest Run waits too long already"
	}
	return strings.ReplaceAll(reason, "_", " ")
}

// money renders millionths with as many decimals as they need, two at least.
func money(micro int64) string {
	s := strings.TrimRight(fmt.Sprintf("%d.%06d", micro/1e6, micro%1e6), "0")
	for dot := strings.IndexByte(s, '.'); len(s) < dot+3; {
		s += "0"
	}
	return s
}

// placeWords says where a queued Run stands and why it waits.
func placeWords(p api.Place, now time.Time) string {
	for _, at := range []**time.Time{&p.StartP10, &p.StartP50, &p.StartP90} {
		*at = rounded(*at)
	}
	s := "place not known yet"
	if p.Known && p.Position != nil {
		s = ordinal(*p.Position + 1)
	}
	if p.Known && p.StartP50 != nil {
		switch {
		case p.StartP50.After(now.Add(time.Second)):
			s += ", starts about " + when(*p.StartP50, now)
		default:
			s += ", due now"
		}
		if p.StartP10 != nil && p.StartP90 != nil && p.StartP90.Sub(*p.StartP10) >= time.Minute && p.StartP90.After(now) {
			s += ", between " + clockTime(*p.StartP10, now) + " and " + clockTime(*p.StartP90, now)
		}
	}
	if why := whyQueued(p, now); why != "" {
		s += "; " + why
	}
	return s
}

// whyQueued is the reason of a wait, unless it is only that others come first.
func whyQueued(p api.Place, now time.Time) string {
	if p.Reason == "" || p.Reason == "waiting_turn" && p.Known {
		return ""
	}
	s := p.Detail
	if s == "" {
		s = reasonWords(p.Reason)
	}
	if p.Until != nil {
		s += ", until " + when(*rounded(p.Until), now)
	}
	return s
}

// rounded is an instant to the second, since 22:59:59.999 is read as 23:00.
func rounded(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	at := t.Round(time.Second)
	return &at
}

// runWords says in one line what a Run is doing or how it ended.
func runWords(r api.Run, now time.Time) string {
	switch {
	case r.State == "queued" && r.Place != nil:
		return "queued: " + placeWords(*r.Place, now)
	case r.State == "queued":
		return "queued"
	case r.State == "active":
		return activeWords(r, now)
	}
	s, last := r.State, lastAttempt(r)
	switch {
	case r.Reason == "exit_code" && last != nil && last.ExitCode != nil:
		s += " with exit code " + strconv.Itoa(*last.ExitCode)
	case r.Reason != "" && r.Reason != "done":
		s += ": " + reasonWords(r.Reason)
		if last != nil && last.Detail != "" {
			s += " (" + last.Detail + ")"
		}
	}
	if r.StartedAt != nil && r.EndedAt != nil {
		s += ", after " + span(r.EndedAt.Sub(*r.StartedAt))
	}
	return s
}

func activeWords(r api.Run, now time.Time) string {
	s := "active"
	if last := lastAttempt(r); last != nil {
		s = last.State
		if last.Number > 1 {
			s += ", try " + strconv.Itoa(last.Number)
		}
		if last.StartedAt != nil && last.State == "running" {
			s += " for " + span(now.Sub(*last.StartedAt))
		}
	}
	if r.CancelRequested {
		s += ", to be cancelled"
	}
	if p := r.Progress; p != nil {
		s += fmt.Sprintf(", %.0f %%", 100*p.Fraction)
		if p.Message != "" {
			s += " " + p.Message
		}
	}
	return s
}

func lastAttempt(r api.Run) *api.Attempt {
	if len(r.Attempts) == 0 {
		return nil
	}
	return &r.Attempts[len(r.Attempts)-1]
}

// took is how long the payload of a Run has run.
func took(r api.Run, now time.Time) string {
	switch {
	case r.StartedAt == nil:
		return "-"
	case r.EndedAt != nil:
		return span(r.EndedAt.Sub(*r.StartedAt))
	}
	return span(now.Sub(*r.StartedAt))
}

// eventLine is an event as one line.
func eventLine(e api.RunEvent, now time.Time) string {
	s := e.At.In(now.Location()).Format("15:04:05") + "  " + e.Kind
	if e.Reason != "" && e.Reason != "done" {
		s += ": " + reasonWords(e.Reason)
	}
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	if e.Attempt != "" {
		s += "  " + e.Attempt
	}
	return printable(s)
}
