package schedules

import (
	"iter"
	"time"
)

// horizon bounds the search: the rarest rule there is, 29 February on one day of the week, comes back within 40 years.
const horizon = 41 * 366 * 24 * time.Hour

// Next is the first instant after t at which the rule fires, or zero when it does not within 40 years. It looks at each
// local day of that time once at most, so it always ends.
func (r Rule) Next(t time.Time) time.Time {
	for at := range r.Between(t, t.Add(horizon)) {
		return at
	}
	return time.Time{}
}

// Between walks the instants after from, up to and with to, at which the rule fires, in order; no more than 41 years of
// them.
func (r Rule) Between(from, to time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		if end := from.Add(horizon); to.After(end) {
			to = end
		}
		last := from
		local := from.In(r.zone)
		// The day before also counts: what a gap at its end hides fires on this day.
		day := time.Date(local.Year(), local.Month(), local.Day()-1, 0, 0, 0, 0, time.UTC)
		for !begin(r.zone, day).After(to) {
			if r.months&(1<<day.Month()) == 0 {
				day = time.Date(day.Year(), day.Month()+1, 1, 0, 0, 0, 0, time.UTC)
				continue
			}
			if r.on(day) {
				for at := range r.instants(day) {
					if !at.After(last) {
						continue
					}
					if at.After(to) || !yield(at.UTC()) {
						return
					}
					last = at
				}
			}
			day = day.AddDate(0, 0, 1)
		}
	}
}

// instants walks the instants of one local day in order; those of times in one gap are the same.
func (r Rule) instants(day time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		start, end := begin(r.zone, day), begin(r.zone, day.AddDate(0, 0, 1))
		if !start.Before(end) {
			return // a day that does not exist
		}
		even := !offsetUntil(start).Before(end)
		hours := 24
		if r.elapsed {
			hours = int((end.Sub(start) + time.Hour - 1) / time.Hour)
		}
		for h := range hours {
			if r.hours&(1<<h) == 0 {
				continue
			}
			for m := range 60 {
				if r.minutes&(1<<m) == 0 {
					continue
				}
				clock := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
				at := start.Add(clock)
				switch {
				case r.elapsed && !at.Before(end):
					return
				case !r.elapsed && !(even && atMidnight(start)):
					at = begin(r.zone, day.Add(clock))
				}
				if !yield(at) {
					return
				}
			}
		}
	}
}

// atMidnight reports whether a local day begins at midnight, as all do save where the clock is set forward over it.
func atMidnight(start time.Time) bool {
	return start.Hour() == 0 && start.Minute() == 0 && start.Second() == 0
}

// begin is the first instant at which the clock on the wall of a zone shows a time (given in UTC) or later: of a time
// shown twice the first, of a time never shown the end of the gap.
func begin(zone *time.Location, wall time.Time) time.Time {
	// No zone is further from UTC than 15 hours, so the clock shows less than wall here.
	t := wall.Add(-26 * time.Hour).In(zone)
	for {
		_, offset := t.Zone()
		at := wall.Add(-time.Duration(offset) * time.Second).In(zone)
		if at.Before(t) {
			at = t // the clock was set forward over it
		}
		end := offsetUntil(t)
		if at.Before(end) {
			return at
		}
		t = end
	}
}

// offsetUntil is an instant up to which the offset of t's zone stays as it is at t. It is after t always: time.ZoneBounds
// alone stands still on the last day of leap years from 2040 on (Go 1.26), and would hold the search for ever.
func offsetUntil(t time.Time) time.Time {
	_, end := t.ZoneBounds()
	switch {
	case end.IsZero():
		return t.AddDate(1, 0, 0)
	case !end.After(t):
		return t.Add(time.Hour)
	}
	return end
}
