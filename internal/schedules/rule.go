package schedules

import (
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // zones of schedules, on machines without a zone database too

	"github.com/adhocore/gronx"

	"github.com/roadstead/roadstead/internal/fault"
)

// Rule is a calendar rule of five fields (minute, hour, day of month, month, day of week) in a time zone. Which values a
// field takes is the parser's; which instants they make is ours:
//
//   - A rule whose hours are all hours, or every nth of all (*, */n), goes by elapsed time: its hours and minutes count
//     from the begin of the local day in real time. Hourly and */5 keep their rhythm through both changes of the clock;
//     the next local day begins as always.
//   - Any other rule goes by the clock on the wall. A time shown twice counts the first time only. A time never shown
//     counts at the first instant after the gap, and all those of one gap count once.
//   - A day that does not exist is left out: neither kind fires on it, nor for it.
type Rule struct {
	zone    *time.Location
	minutes uint64 // bit per minute of the hour
	hours   uint64 // bit per hour of the day; of a rule that goes by elapsed time also the 25th and later
	months  uint64 // bit per month, from 1
	days    []string
	every   bool // every day
	elapsed bool
}

// names of the fields, in order, for faults.
var fieldNames = [5]string{"minute", "hour", "day of month", "month", "day of week"}

// forms says what each part of a field, between commas, may look like. The parser alone would take more, and give it no
// meaning.
var forms = func() (f [5]*regexp.Regexp) {
	form := func(value, more string) *regexp.Regexp {
		return regexp.MustCompile(`^((\*|` + value + `(-` + value + `)?)(/\d{1,2})?` + more + `)$`)
	}
	month := `(\d{1,2}|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)`
	day := `([0-7]|SUN|MON|TUE|WED|THU|FRI|SAT)`
	return [5]*regexp.Regexp{
		form(`\d{1,2}`, ""), form(`\d{1,2}`, ""), form(`\d{1,2}`, `|L|\d{1,2}W`), form(month, ""), form(day, `|`+day+`(L|#[1-5])`),
	}
}()

// allHours are the hour fields that go by elapsed time.
var allHours = regexp.MustCompile(`^(\*|0-23|(\*|0|0-23)/\d{1,2})$`)

const maxRule = 256

// ParseRule reads a rule and its zone. Its fault names the field rule or zone. It does not say whether the rule ever
// fires.
func ParseRule(rule, zone string) (Rule, error) {
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "" || zone == "Local" {
		return Rule{}, fault.Invalid("zone", "must be the name of a time zone, such as Europe/Berlin, is %q", zone)
	}
	fields, err := fieldsOf(rule)
	if err != nil {
		return Rule{}, err
	}
	r := Rule{zone: location, days: []string{"*", "*", "*", fields[2], fields[3], fields[4]}, every: fields[2] == "*" && fields[4] == "*"}
	if r.minutes, err = valuesOf(fields[0], 0, 0, 59); err != nil {
		return Rule{}, err
	}
	if r.hours, err = valuesOf(fields[1], 1, 0, 23); err != nil {
		return Rule{}, err
	}
	if r.months, err = valuesOf(fields[3], 3, 1, 12); err != nil {
		return Rule{}, err
	}
	for _, f := range []int{2, 4} {
		if err := checkDays(fields[f], f); err != nil {
			return Rule{}, err
		}
	}
	if allHours.MatchString(fields[1]) && r.hours > 1 { // */24 is midnight only
		r.elapsed = true
		r.hours |= repeated(r.hours)
	}
	return r, nil
}

// repeated are the hours after the 24th of a day that the clock made longer: the rhythm of the first 24 goes on.
func repeated(hours uint64) (later uint64) {
	step := 1
	for hours&(1<<step) == 0 {
		step++
	}
	for h := 24; h < 48; h++ {
		if h%step == 0 {
			later |= 1 << h
		}
	}
	return later
}

// fieldsOf splits a rule or one of the words for one (@hourly, @daily, @weekly, @monthly, @yearly) and holds each field to
// its form.
func fieldsOf(rule string) ([]string, error) {
	const want = "must be five fields (minute, hour, day of month, month, day of week) or one of @hourly, @daily, @weekly, @monthly, @yearly"
	text := strings.ToUpper(strings.TrimSpace(rule))
	if len(text) > maxRule {
		return nil, fault.Invalid("rule", "must not be longer than %d bytes", maxRule)
	}
	switch text {
	case "@HOURLY", "@DAILY", "@WEEKLY", "@MONTHLY", "@YEARLY":
	default:
		fields := strings.Fields(text)
		if len(fields) != len(forms) {
			return nil, fault.Invalid("rule", want)
		}
		for i, field := range fields {
			for part := range strings.SplitSeq(field, ",") {
				if !forms[i].MatchString(part) {
					return nil, fault.Invalid("rule", "the %s can't be %q", fieldNames[i], part)
				}
			}
		}
		text = strings.Join(fields, " ")
	}
	segments, err := gronx.Segments(text)
	if err != nil || len(segments) != 1+len(forms) || segments[0] != "0" {
		return nil, fault.Invalid("rule", want)
	}
	return segments[1:], nil
}

// valuesOf is the set of values a field takes. Each part of the field must take one at least.
func valuesOf(field string, f, lo, hi int) (all uint64, err error) {
	for part := range strings.SplitSeq(field, ",") {
		var taken uint64
		for v := lo; v <= hi; v++ {
			ref := time.Date(2028, time.January, 1, 0, 0, 0, 0, time.UTC)
			switch f {
			case 0:
				ref = ref.Add(time.Duration(v) * time.Minute)
			case 1:
				ref = ref.Add(time.Duration(v) * time.Hour)
			default:
				ref = ref.AddDate(0, v-1, 0)
			}
			due, err := takes(part, f, ref)
			if err != nil {
				return 0, err
			}
			if due {
				taken |= 1 << v
			}
		}
		if taken == 0 {
			return 0, fault.Invalid("rule", "the %s can't be %q", fieldNames[f], part)
		}
		all |= taken
	}
	return all, nil
}

// checkDays holds each part of a field of days to taking one day of a leap year at least.
func checkDays(field string, f int) error {
	if field == "*" {
		return nil
	}
	for part := range strings.SplitSeq(field, ",") {
		some := false
		for day := range 366 {
			due, err := takes(part, f, time.Date(2028, time.January, 1+day, 0, 0, 0, 0, time.UTC))
			if err != nil {
				return err
			}
			some = some || due
		}
		if !some {
			return fault.Invalid("rule", "the %s can't be %q", fieldNames[f], part)
		}
	}
	return nil
}

// takes asks the parser whether a part of a field takes the value that ref has in it.
func takes(part string, f int, ref time.Time) (bool, error) {
	c := &gronx.SegmentChecker{}
	c.SetRef(ref)
	due, err := c.CheckDue(part, f+1) // the parser counts seconds as the first field
	if err != nil {
		return false, fault.Invalid("rule", "the %s can't be %q", fieldNames[f], part)
	}
	return due, nil
}

// on reports whether the rule takes a local day, given as its midnight in UTC. A rule that names days of the month and
// days of the week takes both, as cron always did.
func (r Rule) on(day time.Time) bool {
	if r.every {
		return true
	}
	g := gronx.Gronx{C: &gronx.SegmentChecker{}}
	g.C.SetRef(day)
	due, err := g.SegmentsDue(r.days)
	return due && err == nil // that there is no error was found out when the rule was read
}
