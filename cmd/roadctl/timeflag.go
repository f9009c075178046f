package main

import (
	"strconv"
	"strings"
	"time"
)

// spanFlag is a duration flag that knows days: 90m, 12h, 30d.
type spanFlag time.Duration

func (f *spanFlag) Set(s string) error {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return usagef("must look like 90m, 12h or 30d")
		}
		*f = spanFlag(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return usagef("must look like 90m, 12h or 30d")
	}
	*f = spanFlag(d)
	return nil
}

func (f *spanFlag) String() string {
	if f == nil || *f == 0 {
		return ""
	}
	return time.Duration(*f).String()
}

func (f *spanFlag) Type() string { return "duration" }

// parseInstant reads RFC 3339, or HH:MM as its next occurrence after base, in base's time zone (D-5.1).
func parseInstant(flag, s string, base time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	clock, err := time.Parse("15:04", s)
	if err != nil || len(s) != len("15:04") {
		return time.Time{}, usagef("--%s must be like 2026-12-04T02:10:00Z, or HH:MM for its next occurrence", flag)
	}
	at := func(days int) time.Time {
		return time.Date(base.Year(), base.Month(), base.Day()+days, clock.Hour(), clock.Minute(), 0, 0, base.Location())
	}
	if t := at(0); t.After(base) {
		return t, nil
	}
	return at(1), nil
}
