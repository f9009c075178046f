package apptest_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/app"
	"github.com/roadstead/roadstead/internal/app/apptest"
)

const settingsURL = "/api/v1/system/downloads/settings"

// set changes settings as the operator and fails unless that is answered 200.
func set(t *testing.T, s *apptest.Server, revision int64, record api.DownloadSettings) (out api.DownloadSettingsState) {
	t.Helper()
	a := s.JSON(s.Key, "PUT", settingsURL, api.DownloadSettingsChange{Settings: record, ExpectedRevision: revision}, &out)
	if a.Status != http.StatusOK {
		t.Fatalf("set: %d %s", a.Status, a.Body)
	}
	return out
}

func waitHeld(t *testing.T, s *apptest.Server, want int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		var q api.Queue
		s.JSON(s.Key, "GET", "/api/v1/system/downloads/queue", nil, &q)
		if q.Classes[0].Held == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d requests are held, want %d", q.Classes[0].Held, want)
		}
	}
}

// The strategy is switched in the middle of downloads: nobody is cut, who was held leaves the queue and starts, and the
// queue comes back with the strategy (D-3, D-2.4).
func TestSwitchStrategyUnderWay(t *testing.T) {
	s := apptest.Start(t, oneSeat, func(c *app.Config) { c.MaxDownloads, c.Hold = 8, time.Hour })
	s.Repository("demo")
	body := content(fourMegabytes)
	s.Put("demo", "big", body)
	first := begin(t, s, "first")
	defer func() { _ = first.Body.Close() }()
	held := make(chan apptest.Answer, 1)
	go func() { held <- s.Do("GET", "/files/demo/big", nil) }()
	waitHeld(t, s, 1)

	shared, smallest := api.StrategyShared, api.StrategySmallestFirst
	if got := set(t, s, 0, api.DownloadSettings{Strategy: &shared}); got.Admission != api.AdmissionPerRequest || got.Revision != 1 {
		t.Errorf("got %+v", got)
	}
	second := begin(t, s, "second") // beside the first, on one seat: there are none any more
	defer func() { _ = second.Body.Close() }()
	waitHeld(t, s, 0)
	set(t, s, 1, api.DownloadSettings{Strategy: &smallest})
	if a := s.Do("GET", "/files/demo/big", nil, api.HeaderDownloadID, "third"); a.Status != 503 || s.Problem(a).Reason != api.ReasonQueued {
		t.Errorf("after the switch back: %d %s", a.Status, a.Body)
	}
	var q api.Queue
	s.JSON(s.Key, "GET", "/api/v1/system/downloads/queue", nil, &q)
	if q.Strategy != smallest || q.Admission != api.AdmissionSessions {
		t.Errorf("the queue says %s, %s", q.Strategy, q.Admission)
	}
	if a := <-held; a.Status != 200 || !bytes.Equal(a.Body, body) {
		t.Errorf("the held request: %d with %d bytes", a.Status, len(a.Body))
	}
	for name, res := range map[string]*http.Response{"first": first, "second": second} {
		if rest, err := io.ReadAll(res.Body); err != nil || !bytes.Equal(rest, body[1:]) {
			t.Errorf("the %s download was cut: %d bytes, %v", name, len(rest), err)
		}
	}
}

// Settings outlive a restart, keep their history, and say what they refuse (D-9).
func TestSettings(t *testing.T) {
	s := apptest.Start(t)
	_, service := s.ServiceAccount("ci", "", "")
	if a := s.JSON(service, "GET", settingsURL, nil, nil); a.Status != http.StatusForbidden {
		t.Errorf("a service account sees settings: %d", a.Status)
	}
	two := 2
	got := set(t, s, 0, api.DownloadSettings{Sessions: &two})
	if *got.Effective.PerPrincipal != 2 || !slices.ContainsFunc(got.Changes, func(c api.SettingChange) bool { return c.Field == "perPrincipal" && c.Note != "" }) {
		t.Errorf("what was lowered: %+v", got.Changes)
	}
	for body, want := range map[string]struct {
		status int
		field  string
	}{
		`{"settings":{"sessions":0},"expectedRevision":1}`:                                                         {400, "settings.sessions"},
		`{"settings":{"colour":"red"},"expectedRevision":1}`:                                                       {400, "settings.colour"},
		`{"settings":{"weights":{"interactive":1}},"expectedRevision":1}`:                                          {400, "settings.weights"},
		`{"settings":{"sessions":"2"},"expectedRevision":1}`:                                                       {400, "settings.sessions"},
		`{"settings":{"strategy":"lifo"},"expectedRevision":1}`:                                                    {400, "settings.strategy"},
		`{"settings":{},"expectedRevision":0}`:                                                                     {409, ""},
		`{"settings":{}}`:                                                                                          {400, "body"},
		`{"settings":{"windows":{"bulk":{"zone":"UTC","open":[{"from":"x","to":"06:00"}]}}},"expectedRevision":1}`: {400, "settings.windows.bulk.open[0].from"},
	} {
		a := s.Do("PUT", settingsURL, strings.NewReader(body), "Content-Type", "application/json")
		p := s.Problem(a)
		if a.Status != want.status || want.field != "" && (len(p.Details) == 0 || p.Details[0].Field != want.field) {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
		if want.status == 409 && p.Code != "revision_mismatch" {
			t.Errorf("%s: code %s", body, p.Code)
		}
	}
	var dry api.DownloadSettingsState
	s.JSON(s.Key, "PUT", settingsURL, api.DownloadSettingsChange{ExpectedRevision: 1, DryRun: true}, &dry)
	if !dry.DryRun || dry.Forecast == nil || *dry.Effective.Sessions != 16 || dry.Revision != 1 {
		t.Errorf("dry run: %+v", dry)
	}
	s.Restart()
	var after api.DownloadSettingsState
	s.JSON(s.Key, "GET", settingsURL, nil, &after)
	if after.Revision != 1 || after.Running != 1 || *after.Effective.Sessions != 2 || after.ChangedByName != "operator" {
		t.Errorf("after a restart: %+v", after)
	}
	set(t, s, 1, api.DownloadSettings{})
	var page api.Page[api.DownloadSettingsRevision]
	s.JSON(s.Key, "GET", settingsURL+"/history?limit=1", nil, &page)
	if len(page.Items) != 1 || page.Items[0].Revision != 2 || page.Next != "2" || !slices.Equal(page.Items[0].Fields, []string{"sessions"}) {
		t.Errorf("history %+v", page)
	}
	page = api.Page[api.DownloadSettingsRevision]{}
	s.JSON(s.Key, "GET", settingsURL+"/history?after=2", nil, &page)
	if len(page.Items) != 1 || page.Items[0].Settings.Sessions == nil || page.Next != "" {
		t.Errorf("older history %+v", page)
	}
	if a := s.Do("GET", "/readyz?verbose", nil); !bytes.Contains(a.Body, []byte(`"settings"`)) {
		t.Errorf("readiness says nothing of settings: %s", a.Body)
	}
}
