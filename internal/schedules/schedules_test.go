package schedules

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// What a plan may not say is refused with its field, a rule that never fires among it; nothing is stored.
func TestPlansThatAreRefused(t *testing.T) {
	for field, change := range map[string]func(p *Plan){
		"rule":                  func(p *Plan) { p.Rule = "0 0 31 2 *" },
		"zone":                  func(p *Plan) { p.Zone = "Mars/Olympus" },
		"overlap":               func(p *Plan) { p.Overlap = "maybe" },
		"refused":               func(p *Plan) { p.Refused = "maybe" },
		"spreadSeconds":         func(p *Plan) { p.Spread = 25 * time.Hour },
		"catchUp.policy":        func(p *Plan) { p.CatchUp.Policy = "some" },
		"catchUp.max":           func(p *Plan) { p.CatchUp.Policy = All },
		"catchUp.maxAgeSeconds": func(p *Plan) { p.CatchUp = CatchUp{Policy: Last, MaxAge: 32 * 24 * time.Hour} },
		"template":              func(p *Plan) { p.Template = nil },
		"template.pool":         func(p *Plan) { p.Template = json.RawMessage(`{}`) },
	} {
		m, h := newMemory(), &hands{wall: berlin("2026-06-01 12:00")}
		p := plan("@daily", "Europe/Berlin")
		change(&p)
		_, err := service(t, m, h).Put(t.Context(), ann(), "", "x", p, 0)
		if f := fault.From(err); f.Code != fault.InvalidInput || len(f.Details) != 1 || f.Details[0].Field != field || len(m.schedules) != 0 {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// Another tenant's schedules are not found; an operator names the tenant.
func TestTenantsApart(t *testing.T) {
	m, h := newMemory(), &hands{wall: berlin("2026-06-01 12:00")}
	s := service(t, m, h)
	put(t, s, "daily", plan("@daily", "UTC"), 0)
	bob := identity.Principal{ID: "bob", Kind: identity.User, Tenant: "other"}
	link := identity.Principal{ID: "l", Kind: identity.Link, Tenant: "acme"}
	operator := identity.Principal{ID: "root", Tenant: "default", Operator: true}
	for _, who := range []identity.Principal{bob, link} {
		_, err1 := s.Schedule(t.Context(), who, "acme", "daily")
		_, _, err2 := s.List(t.Context(), who, "acme", "", 0)
		_, _, err3 := s.Fires(t.Context(), who, "acme", "daily", time.Time{}, 0)
		_, err4 := s.Pause(t.Context(), who, "acme", "daily", true)
		_, err5 := s.Put(t.Context(), who, "acme", "daily", plan("@daily", "UTC"), 1)
		_, err6 := s.Preview(t.Context(), who, "acme", "daily", plan("@daily", "UTC"), false)
		for _, err := range []error{err1, err2, err3, err4, err5, err6, s.Delete(t.Context(), who, "acme", "daily", 1)} {
			if !fault.Is(err, fault.NotFound) {
				t.Errorf("%s: %v", who.ID, err)
			}
		}
	}
	if _, err := s.Schedule(t.Context(), operator, "acme", "daily"); err != nil {
		t.Error(err)
	}
	if err := s.Delete(t.Context(), ann(), "", "daily", 7); !fault.Is(err, fault.RevisionMismatch) {
		t.Error(err)
	}
	if _, err := s.Put(t.Context(), ann(), "", "none", plan("@daily", "UTC"), 3); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if err := s.Delete(t.Context(), ann(), "", "daily", 1); err != nil || len(m.schedules) != 0 {
		t.Error(err)
	}
}

// Places in a spread are stable, inside it, and even: a thousand schedules of one minute are no burst (R-8.3, mass
// scheduled burst with jitter).
func TestSpread(t *testing.T) {
	const many, window = 1000, 10 * time.Minute
	var minutes [10]int
	for n := range many {
		name := fmt.Sprintf("report-%d", n)
		p := Place("acme", name, window)
		if p < 0 || p >= window || p%time.Second != 0 || p != Place("acme", name, window) {
			t.Fatalf("%s: %s", name, p)
		}
		minutes[p/time.Minute]++
	}
	for _, n := range minutes {
		if n < many/10*7/10 || n > many/10*13/10 {
			t.Errorf("not even: %v", minutes)
			break
		}
	}
	if Place("acme", "x", 0) != 0 || Place("acme", "report", time.Hour) == Place("other", "report", time.Hour) {
		t.Error("places of no spread, or of two tenants")
	}

	m, h := newMemory(), &hands{wall: berlin("2026-06-01 12:00")}
	s := service(t, m, h)
	p := plan("0 13 * * *", "Europe/Berlin")
	p.Spread = 10 * time.Minute
	for n := range 200 {
		put(t, s, fmt.Sprintf("report-%d", n), p, 0)
	}
	most, last := 0, 0
	for range 80 * 60 / 10 {
		step(t, s, h, 1, 10*time.Second)
		most, last = max(most, len(m.order)-last), len(m.order)
	}
	if len(m.runs) != 200 || most > 15 {
		t.Errorf("%d runs, %d in ten seconds", len(m.runs), most)
	}
}

// The curve of a pool before a schedule is saved: its peaks name the tenant's own, count the others, and say what a spread
// would do.
func TestPreview(t *testing.T) {
	m, h := newMemory(), &hands{wall: berlin("2026-06-01 12:00")}
	s := service(t, m, h)
	for n := range 60 {
		put(t, s, fmt.Sprintf("report-%02d", n), plan("0 3 * * *", "Europe/Berlin"), 0)
	}
	other := identity.Principal{ID: "bob", Kind: identity.User, Tenant: "other"}
	if _, err := s.Put(t.Context(), other, "", "theirs", plan("5 3 * * *", "Europe/Berlin"), 0); err != nil {
		t.Fatal(err)
	}
	p := plan("0 3 * * *", "Europe/Berlin")
	p.Template = json.RawMessage(`{"pool":"default","slots":40,"seconds":900}`)
	c, err := s.Preview(t.Context(), ann(), "", "new", p, false)
	if err != nil {
		t.Fatal(err)
	}
	peak := c.Peaks[0]
	if !peak.At.Equal(berlin("2026-06-02 03:05")) || peak.Slots != 101 || peak.Others != 1 || len(peak.Own) != partsMost || peak.Own[0] != (Part{"new", 40}) {
		t.Errorf("peak %+v", peak)
	}
	if len(c.Buckets) != 24*12 || c.Step != 5*time.Minute || c.Pool != "default" || c.Left != 0 {
		t.Errorf("%d buckets of %s on %s", len(c.Buckets), c.Step, c.Pool)
	}
	at := func(text string) Bucket { return c.Buckets[int(berlin(text).Sub(c.From)/c.Step)] }
	if b := at("2026-06-02 03:10"); b.Most != 41 || b.Mean != 41 {
		t.Errorf("bucket %+v", b)
	}
	if b := at("2026-06-02 03:15"); b.Most != 0 {
		t.Errorf("bucket %+v", b)
	}
	if e := c.Spreads[0]; e.Spread != 0 || e.Alone != 101 || e.Together != 101 {
		t.Errorf("no spread: %+v", e)
	}
	if e := c.Spreads[3]; e.Alone >= 101 || e.Together >= e.Alone || e.Together < 40 {
		t.Errorf("an hour: %+v", e)
	}
	week, err := s.Preview(t.Context(), ann(), "", "report-00", plan("0 3 * * *", "Europe/Berlin"), true)
	if err != nil || len(week.Buckets) != 7*24 || week.Peaks[0].Slots != 61 || len(week.Peaks) != peaksMost {
		t.Errorf("a week: %d buckets, peaks %+v, %v", len(week.Buckets), week.Peaks, err)
	}
	if len(m.schedules) != 61 {
		t.Error("a preview stored something")
	}
}

// Runs of one schedule that may not overlap take no more than the slots of one.
func TestPreviewWithoutOverlap(t *testing.T) {
	m, h := newMemory(), &hands{wall: berlin("2026-06-01 12:00")}
	s := service(t, m, h)
	p := plan("*/5 * * * *", "UTC") // each takes ten minutes
	for overlap, want := range map[Overlap]int64{Skip: 1, Allow: 2} {
		p.Overlap = overlap
		c, err := s.Preview(t.Context(), ann(), "", "x", p, false)
		if err != nil || c.Peaks[0].Slots != want {
			t.Errorf("%s: %+v, %v", overlap, c.Peaks, err)
		}
	}
}

func TestConfig(t *testing.T) {
	id := func() string { return "" }
	for field, c := range map[string]Config{
		"NewID": {}, "Tick": {NewID: id, Tick: time.Hour}, "Grace": {NewID: id, Grace: -1}, "Keep": {NewID: id, Keep: time.Hour}, "MaxPerTenant": {NewID: id, MaxPerTenant: -1},
	} {
		if _, err := New(c, nil, nil, nil, nil); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
