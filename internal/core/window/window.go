// Package window is the arithmetic of weekly opening hours in a time zone: whether they are open at an instant, and when
// that changes next (D-5.2).
//
// Hours follow the clock on the wall of their zone. Whatever it shows at an instant decides, so a night of 22:00-06:00
// is an hour shorter when summer time begins, an hour longer when it ends, an hour shown twice counts both times, and
// one never shown counts not at all.
package window

import (
	"strconv"
	"strings"
	"time"

	"github.com/roadstead/roadstead/internal/fault"
)

const minutesADay = 24 * 60

// Rule opens on some weekdays from one minute of the day to another. To at or before From lies on the next day; From
// equal to To is a whole day.
type Rule struct {
	Days     [7]bool // by time.Weekday, of the day it opens
	From, To int     // minutes after midnight, 0..1439; To may be 1440
}

var dayNames = [7]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// ParseRule reads weekdays (mon..sun; none means every day) and hours HH:MM; a fault names the wrong field under the
// given one.
func ParseRule(field string, days []string, from, to string) (r Rule, err error) {
	for _, d := range days {
		known := false
		for i, name := range dayNames {
			if strings.ToLower(d) == name {
				r.Days[i], known = true, true
			}
		}
		if !known {
			return Rule{}, fault.Invalid(field+".days", "must be of mon, tue, wed, thu, fri, sat, sun; is %q", d)
		}
	}
	if len(days) == 0 {
		r.Days = [7]bool{true, true, true, true, true, true, true}
	}
	if r.From, err = parseClock(field+".from", from, minutesADay-1); err != nil {
		return Rule{}, err
	}
	r.To, err = parseClock(field+".to", to, minutesADay)
	return r, err
}

func parseClock(field, s string, most int) (int, error) {
	h, m, ok := strings.Cut(s, ":")
	hours, err1 := strconv.Atoi(h)
	minutes, err2 := strconv.Atoi(m)
	n := hours*60 + minutes
	if !ok || len(h) != 2 || len(m) != 2 || err1 != nil || err2 != nil || hours < 0 || minutes < 0 || minutes > 59 || n > most {
		return 0, fault.Invalid(field, "must be HH:MM, is %q", s)
	}
	return n, nil
}

// Window is the union of its rules. The zero value is never open.
type Window struct {
	zone  *time.Location
	rules []Rule
}

// New makes a window; the zone is not nil.
func New(zone *time.Location, rules ...Rule) Window { return Window{zone: zone, rules: rules} }

// Open reports whether the window is open at an instant.
func (w Window) Open(t time.Time) bool {
	if w.zone == nil {
		return false
	}
	local := t.In(w.zone)
	day, minute := local.Weekday(), local.Hour()*60+local.Minute()
	for _, r := range w.rules {
		if r.open(day, minute) {
			return true
		}
	}
	return false
}

func (r Rule) open(day time.Weekday, minute int) bool {
	if r.From < r.To {
		return r.Days[day] && r.From <= minute && minute < r.To
	}
	yesterday := (day + 6) % 7
	return r.Days[day] && minute >= r.From || r.Days[yesterday] && minute < r.To
}

// Changes lists the instants after t at which the window opens or closes, in turn, up to a horizon and no more than
// most.
func (w Window) Changes(t time.Time, horizon time.Duration, most int) (changes []time.Time) {
	open, end := w.Open(t), t.Add(horizon)
	for t = w.next(t); !t.IsZero() && !t.After(end) && len(changes) < most; t = w.next(t) {
		if now := w.Open(t); now != open {
			changes, open = append(changes, t), now
		}
	}
	return changes
}

// next is the first instant after t at which the state may change: a rule's hour, midnight, or a change of the zone's
// offset. It is zero when the window has no rules.
func (w Window) next(t time.Time) time.Time {
	if w.zone == nil || len(w.rules) == 0 {
		return time.Time{}
	}
	local := t.In(w.zone)
	second := local.Hour()*3600 + local.Minute()*60 + local.Second()
	ahead := minutesADay*60 - second // midnight
	for _, r := range w.rules {
		for _, m := range []int{r.From, r.To} {
			if d := m*60 - second; d > 0 {
				ahead = min(ahead, d)
			}
		}
	}
	at := t.Truncate(time.Second).Add(time.Duration(ahead) * time.Second)
	if _, change := local.ZoneBounds(); !change.IsZero() && change.Before(at) {
		return change
	}
	return at
}
