package settings

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/downloads"
	"github.com/roadstead/roadstead/internal/fault"
)

// environment is a server of 16 seats, a reserve of one and a share of four.
func environment() downloads.Settings {
	s := downloads.Default(16).Settings
	s.Policy.LinkRate = 100 << 20
	return s
}

// Each field lies over the environment by itself; what is not given stays (D-9.1).
func TestOverlay(t *testing.T) {
	for _, c := range []struct {
		record string
		change func(s *downloads.Settings)
	}{
		{`{}`, func(*downloads.Settings) {}},
		{`{"fromTheFuture":{"a":[1]},"idleSeconds":7}`, func(s *downloads.Settings) { s.Policy.Idle = 7 * time.Second }}, // D-9.3
		{`{"strategy":"smallest-first"}`, func(s *downloads.Settings) { s.Policy.Strategy = session.SmallestFirst }},
		{`{"strategy":"shared"}`, func(s *downloads.Settings) { s.Shared = true }},
		{`{"reserve":0,"perPrincipal":9}`, func(s *downloads.Settings) { s.Policy.Reserve, s.Policy.PerPrincipal = 0, 9 }},
		{`{"weights":{"interactive":1,"release":2,"bulk":3,"background":4}}`, func(s *downloads.Settings) { s.Policy.Weights = [class.Count]uint32{1, 2, 3, 4} }},
		{`{"sessionMinBytes":0,"agingMinutes":0,"preempt":false,"rangesPerSession":8,"minRate":40000,"pollBudget":50}`, func(s *downloads.Settings) {
			s.SessionMinBytes, s.Policy.Aging, s.Policy.Preempt, s.Policy.RangesPerSession, s.Policy.PollBudget = 0, 0, false, 8, 50
			s.Policy.MinRate = 40000
		}},
		// Fewer seats lower what does not fit; more raise nothing (D-9.2).
		{`{"sessions":1}`, func(s *downloads.Settings) { s.Policy.Sessions, s.Policy.Reserve, s.Policy.PerPrincipal = 1, 0, 1 }},
		{`{"sessions":3}`, func(s *downloads.Settings) { s.Policy.Sessions, s.Policy.Reserve, s.Policy.PerPrincipal = 3, 1, 3 }},
		{`{"sessions":64}`, func(s *downloads.Settings) { s.Policy.Sessions = 64 }},
		{`{"sessions":3,"reserve":2,"perPrincipal":2}`, func(s *downloads.Settings) { s.Policy.Sessions, s.Policy.Reserve, s.Policy.PerPrincipal = 3, 2, 2 }},
	} {
		record, err := Parse(c.record)
		if err != nil {
			t.Fatalf("%s: %v", c.record, err)
		}
		want := environment()
		c.change(&want)
		got, err := Overlay(environment(), record)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\ngot  %+v\nwant %+v", c.record, err, got, want)
		}
	}
}

// What cannot work on this server is refused with its field (D-9.2).
func TestOverlayRefuses(t *testing.T) {
	const hours = `"open":[{"from":"22:00","to":"06:00"}]`
	for record, field := range map[string]string{
		`{"strategy":"fifo"}`:                   "strategy",
		`{"sessions":0}`:                        "sessions",
		`{"sessions":65537}`:                    "sessions",
		`{"reserve":16}`:                        "reserve",
		`{"sessions":2,"reserve":2}`:            "reserve",
		`{"perPrincipal":17}`:                   "perPrincipal",
		`{"sessions":2,"perPrincipal":3}`:       "perPrincipal",
		`{"perPrincipal":0}`:                    "perPrincipal",
		`{"weights":{"interactive":8}}`:         "weights.release", // all four or none (D-4.1)
		`{"sessionMinBytes":-1}`:                "sessionMinBytes",
		`{"sessionMinBytes":1099511627777}`:     "sessionMinBytes",
		`{"idleSeconds":0}`:                     "idleSeconds",
		`{"idleSeconds":9223372036854775807}`:   "idleSeconds", // no overflow into the allowed
		`{"agingMinutes":-1}`:                   "agingMinutes",
		`{"agingMinutes":43201}`:                "agingMinutes",
		`{"rangesPerSession":65}`:               "rangesPerSession",
		`{"pollBudget":-1}`:                     "pollBudget",
		`{"minRate":-1}`:                        "minRate",
		`{"windows":{"people":{}}}`:             "windows.people",
		`{"windows":{"bulk":{"zone":"Mars"}}}`:  "windows.bulk.zone",
		`{"windows":{"bulk":{"zone":"Local"}}}`: "windows.bulk.zone",
		`{"windows":{"bulk":{` + hours + `}}}`:  "windows.bulk.zone",
		`{"windows":{"bulk":{"zone":"UTC"}}}`:   "windows.bulk.open",
		`{"windows":{"bulk":{"zone":"UTC","open":[{"from":"22:00","to":"06:00"},{"from":"7","to":"8"}]}}}`: "windows.bulk.open[1].from",
		`{"windows":{"bulk":{"zone":"UTC","outsideShare":1.5,` + hours + `}}}`:                             "windows.bulk.outsideShare",
	} {
		r, err := Parse(record)
		if err != nil {
			t.Fatalf("%s: %v", record, err)
		}
		_, err = Overlay(environment(), r)
		if f := fault.From(err); f.Code != fault.InvalidInput || len(f.Details) != 1 || f.Details[0].Field != field {
			t.Errorf("%s: %v, want the field %s", record, err, field)
		}
	}
}

// A class with hours is open inside them and closed outside; without outsideShare nothing starts there (D-5.2).
func TestOverlayWindows(t *testing.T) {
	r, err := Parse(`{"windows":{"bulk":{"zone":"Europe/Berlin","open":[{"days":["mon"],"from":"22:00","to":"06:00"}],"outsideShare":0.25}}}`)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Overlay(environment(), r)
	if err != nil {
		t.Fatal(err)
	}
	monday := time.Date(2026, 1, 5, 21, 30, 0, 0, time.UTC) // 22:30 in Berlin
	w := s.Windows[class.Bulk]
	if !w.Hours.Open(monday) || w.Hours.Open(monday.Add(-time.Hour)) || w.Outside != 0.25 || s.Windows[class.Release].Hours != nil {
		t.Errorf("window %+v", w)
	}
}

// A share of a link whose bandwidth nobody told would be no bound (D-5.2).
func TestOutsideShareNeedsBandwidth(t *testing.T) {
	unbounded := environment()
	unbounded.Policy.LinkRate = 0
	for share, want := range map[string]bool{"0": true, "0.5": false, "1": true} {
		r, err := Parse(`{"windows":{"bulk":{"zone":"UTC","open":[{"from":"22:00","to":"06:00"}],"outsideShare":` + share + `}}}`)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Overlay(unbounded, r); (err == nil) != want {
			t.Errorf("share %s without bandwidth: %v", share, err)
		}
		if _, err := Overlay(environment(), r); err != nil {
			t.Errorf("share %s with bandwidth: %v", share, err)
		}
	}
}

func TestFieldsAndDifferences(t *testing.T) {
	two, three := 2, 3
	a := api.DownloadSettings{Sessions: &two}
	b := api.DownloadSettings{Sessions: &three, Weights: &api.ClassWeights{}}
	if got := Fields(a, b); !slices.Equal(got, []string{"sessions", "weights"}) {
		t.Errorf("fields %v", got)
	}
	if got := Fields(a, api.DownloadSettings{Sessions: &two}); len(got) != 0 {
		t.Errorf("equal records differ in %v", got)
	}
	lowered, err := Overlay(environment(), a)
	if err != nil {
		t.Fatal(err)
	}
	got := differences(wire(environment(), nil), wire(lowered, nil), a)
	want := []api.SettingChange{
		{Field: "sessions", From: "16", To: "2"},
		{Field: "perPrincipal", From: "4", To: "2", Note: "as the environment says, lowered where the seats need it"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	got = differences(wire(lowered, nil), wire(environment(), nil), api.DownloadSettings{})
	if len(got) != 2 || got[1].Note != "back to the environment" {
		t.Errorf("got %+v", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{}`, `{"sessions":2,"x":1}`, `{"windows":{"bulk":{"zone":"UTC","open":[{"from":"22:00","to":"06:00"}]}}}`, `[]`, `{"weights":null}`, `{"idleSeconds":1e99}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text)
		if err != nil {
			if !fault.Is(err, fault.InvalidInput) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if s, err := Overlay(environment(), r); err == nil && s.Validate() != nil {
			t.Errorf("%q was taken and does not work: %v", text, s.Validate())
		}
		again, err := Format(r)
		if err != nil {
			t.Fatalf("%q does not go back: %v", text, err)
		}
		back, err := Parse(again)
		if want, _ := json.Marshal(r); err != nil {
			t.Errorf("%q comes back as %q: %v", text, again, err)
		} else if got, _ := json.Marshal(back); string(got) != string(want) {
			t.Errorf("%q comes back as %s", text, got)
		}
	})
}
