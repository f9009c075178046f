package settings

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // zones of windows, on machines without a zone database too

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/core/window"
	"github.com/roadstead/roadstead/internal/downloads"
	"github.com/roadstead/roadstead/internal/fault"
)

// maxRecord bounds a stored record; all fields at their longest need far less.
const maxRecord = 64 << 10

// Parse reads a stored record. Fields that a newer version added are skipped (D-9.3).
func Parse(record string) (r api.DownloadSettings, err error) {
	if len(record) > maxRecord {
		return r, fault.Invalid("settings", "must not be longer than %d bytes", maxRecord)
	}
	if err := json.Unmarshal([]byte(record), &r); err != nil {
		return r, fault.Invalid("settings", "must be a JSON object of settings: %v", err)
	}
	return r, nil
}

// Format writes a record as it is stored: the changed fields only.
func Format(r api.DownloadSettings) (string, error) {
	text, err := json.Marshal(r)
	return string(text), err
}

// Fields lists the fields in which two records differ, by their wire names.
func Fields(a, b api.DownloadSettings) (fields []string) {
	for name, pair := range each(a, b) {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			fields = append(fields, name)
		}
	}
	return fields
}

// each walks the fields of two records, in order.
func each(a, b api.DownloadSettings) func(yield func(name string, pair [2]any) bool) {
	return func(yield func(string, [2]any) bool) {
		x, y := reflect.ValueOf(a), reflect.ValueOf(b)
		for i := range x.NumField() {
			name, _, _ := strings.Cut(x.Type().Field(i).Tag.Get("json"), ",")
			if !yield(name, [2]any{x.Field(i).Interface(), y.Field(i).Interface()}) {
				return
			}
		}
	}
}

// differences lists the settings that run otherwise under b than under a, with a note where the record that made the
// difference does not name the field.
func differences(a, b, record api.DownloadSettings) (changes []api.SettingChange) {
	named := Fields(api.DownloadSettings{}, record)
	for name, pair := range each(a, b) {
		if reflect.DeepEqual(pair[0], pair[1]) {
			continue
		}
		c := api.SettingChange{Field: name, From: text(pair[0]), To: text(pair[1])}
		if !slices.Contains(named, name) {
			c.Note = "back to the environment"
			if slices.Contains(named, "sessions") && (name == "reserve" || name == "perPrincipal") {
				c.Note = "as the environment says, lowered where the seats need it"
			}
		}
		changes = append(changes, c)
	}
	return changes
}

// text is a setting for people.
func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil || string(raw) == "null" {
		return "none"
	}
	return strings.Trim(string(raw), `"`)
}

// Overlay is what runs when a record lies over the environment's settings. Its fault names the first field that cannot
// work on this server (D-9.2). Where sessions is given without reserve or perPrincipal, those of the environment are
// lowered to fit and never raised.
func Overlay(environment downloads.Settings, r api.DownloadSettings) (downloads.Settings, error) {
	s := environment
	p := &s.Policy
	if err := overlayStrategy(&s, r.Strategy); err != nil {
		return s, err
	}
	for _, n := range []struct {
		field  string
		given  *int
		lo, hi int
		set    func(v int)
	}{
		{"sessions", r.Sessions, 1, min(65536, p.MaxSessions), func(v int) {
			p.Sessions, p.Reserve, p.PerPrincipal = v, min(p.Reserve, v-1), min(p.PerPrincipal, v)
		}},
		{"sessionsMin", r.SessionsMin, 0, 65536, func(v int) { p.AutoMin = v }},
		{"sessionsMax", r.SessionsMax, 0, min(65536, p.MaxSessions), func(v int) { p.AutoMax = v }},
		{"reserve", r.Reserve, 0, 65535, func(v int) { p.Reserve = v }},
		{"perPrincipal", r.PerPrincipal, 1, 65536, func(v int) { p.PerPrincipal = v }},
		{"idleSeconds", r.IdleSeconds, 1, 3600, func(v int) { p.Idle = time.Duration(v) * time.Second }},
		{"agingMinutes", r.AgingMinutes, 0, 60 * 24 * 30, func(v int) { p.Aging = time.Duration(v) * time.Minute }},
		{"rangesPerSession", r.RangesPerSession, 1, 64, func(v int) { p.RangesPerSession = v }},
		{"pollBudget", r.PollBudget, 0, 1 << 20, func(v int) { p.PollBudget = v }},
	} {
		if n.given == nil {
			continue
		}
		if *n.given < n.lo || *n.given > n.hi {
			return s, fault.Invalid(n.field, "must be between %d and %d, is %d", n.lo, n.hi, *n.given)
		}
		n.set(*n.given)
	}
	if r.Preempt != nil {
		p.Preempt = *r.Preempt
	}
	if w := r.Weights; w != nil {
		p.Weights = [class.Count]uint32{w.Interactive, w.Release, w.Bulk, w.Background}
	}
	if r.SessionMinBytes != nil {
		s.SessionMinBytes = *r.SessionMinBytes
	}
	if r.MinRate != nil {
		p.MinRate = *r.MinRate
	}
	if err := overlayWindows(&s, r.Windows); err != nil {
		return s, err
	}
	return s, s.Validate()
}

func overlayStrategy(s *downloads.Settings, strategy *string) error {
	if strategy == nil {
		return nil
	}
	s.Shared, s.Policy.Strategy = false, session.Ordered
	switch *strategy {
	case api.StrategyOrdered:
	case api.StrategySmallestFirst:
		s.Policy.Strategy = session.SmallestFirst
	case api.StrategyShared:
		s.Shared = true
	default:
		return fault.Invalid("strategy", "must be ordered, smallest-first or shared, is %q", *strategy)
	}
	return nil
}

// hoursMost bounds the opening hours of one class.
const hoursMost = 64

func overlayWindows(s *downloads.Settings, windows map[string]api.ClassWindow) error {
	if windows == nil {
		return nil
	}
	s.Windows = [class.Count]downloads.Window{}
	for name := range windows {
		if _, err := class.Parse("windows."+name, name); err != nil {
			return fault.Invalid("windows."+name, "must be one of interactive, release, bulk, background")
		}
	}
	for _, c := range class.All() {
		w, given := windows[c.String()]
		if !given {
			continue
		}
		field := "windows." + c.String()
		zone, err := time.LoadLocation(w.Zone)
		if err != nil || w.Zone == "" || w.Zone == "Local" {
			return fault.Invalid(field+".zone", "must be the name of a time zone, such as Europe/Berlin, is %q", w.Zone)
		}
		if len(w.Open) == 0 || len(w.Open) > hoursMost {
			return fault.Invalid(field+".open", "must hold 1 to %d opening hours; to have a class always open, leave it out", hoursMost)
		}
		var rules []window.Rule
		for i, h := range w.Open {
			rule, err := window.ParseRule(fmt.Sprintf("%s.open[%d]", field, i), h.Days, h.From, h.To)
			if err != nil {
				return err
			}
			rules = append(rules, rule)
		}
		if w.OutsideShare > 0 && w.OutsideShare < 1 && s.Policy.LinkRate == 0 {
			return fault.Invalid(field+".outsideShare", "needs the bandwidth of the link to be a share of: set it in the server's environment, or give 0 or 1")
		}
		hours := window.New(zone, rules...)
		s.Windows[c] = downloads.Window{Hours: &hours, Outside: w.OutsideShare}
	}
	return nil
}

// wire is settings in full; windows are given as the record has them.
func wire(s downloads.Settings, windows map[string]api.ClassWindow) api.DownloadSettings {
	p := s.Policy
	strategy, idle, aging := s.Strategy(), int(p.Idle/time.Second), int(p.Aging/time.Minute)
	return api.DownloadSettings{
		Strategy: &strategy, Sessions: &p.Sessions, SessionsMin: &p.AutoMin, SessionsMax: &p.AutoMax, Reserve: &p.Reserve, PerPrincipal: &p.PerPrincipal,
		Weights:         &api.ClassWeights{Interactive: p.Weights[0], Release: p.Weights[1], Bulk: p.Weights[2], Background: p.Weights[3]},
		SessionMinBytes: &s.SessionMinBytes, IdleSeconds: &idle, AgingMinutes: &aging, Preempt: &p.Preempt,
		RangesPerSession: &p.RangesPerSession, Windows: windows, MinRate: &p.MinRate, PollBudget: &p.PollBudget,
	}
}
