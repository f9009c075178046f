package main

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/roadstead/roadstead/api"
)

func whole[T any](v T) *T { return &v }

// full is every setting, as an effective record or an environment has it.
func full(seats int) api.DownloadSettings {
	return api.DownloadSettings{
		Strategy: whole("ordered"), Sessions: whole(seats), Reserve: whole(1), PerPrincipal: whole(min(4, seats)),
		Weights: &api.ClassWeights{Interactive: 8, Release: 4, Bulk: 2, Background: 1}, SessionMinBytes: whole(int64(16 << 20)), IdleSeconds: whole(30),
		AgingMinutes: whole(60), Preempt: whole(true), RangesPerSession: whole(4), MinRate: whole(int64(0)), PollBudget: whole(0),
	}
}

func state() api.DownloadSettingsState {
	return api.DownloadSettingsState{
		Revision: 3, Running: 3, Settings: api.DownloadSettings{Sessions: whole(2)}, Effective: full(2), Environment: full(16),
		Admission: "sessions", ChangedAt: whole(noon.Add(-3600e9)), ChangedByName: "anna",
	}
}

func TestSettingsOutput(t *testing.T) {
	changed := state()
	changed.Revision, changed.Changes = 4, []api.SettingChange{{Field: "sessions", From: "2", To: "1"}, {Field: "reserve", From: "1", To: "0", Note: "lowered"}}
	dry := changed
	dry.Revision, dry.DryRun = 3, true
	dry.Forecast = &api.SettingsForecast{
		Known: true, Sessions: 40, Truncated: true, Reason: "7 more wait", Before: api.ForecastDrain{DrainSeconds: 600, FinishSeconds: 660}, After: api.ForecastDrain{DrainSeconds: 540, FinishSeconds: 600},
		Classes: []api.ForecastClass{{Class: "bulk", Waiting: 40, Before: api.ForecastWaits{MeanWaitSeconds: 300, MaxWaitSeconds: 600, MeanFinishSeconds: 330},
			After: api.ForecastWaits{MeanWaitSeconds: 200, MaxWaitSeconds: 540, MeanFinishSeconds: 230}, Later: 3, Earlier: 37}},
	}
	blind := dry
	blind.Forecast = &api.SettingsForecast{Reason: "the rate of the link is not known yet"}
	idle := dry
	idle.Forecast = &api.SettingsForecast{Known: true}
	broken := state()
	broken.Running, broken.Effective, broken.Problem, broken.Admission = 0, full(16), "it does not fit", "per-request"
	broken.Settings.Reserve = whole(7)
	history := api.Page[api.DownloadSettingsRevision]{Items: []api.DownloadSettingsRevision{
		{Revision: 2, ChangedAt: noon, ChangedByName: "anna", Fields: []string{"sessions", "strategy"}, Settings: api.DownloadSettings{Sessions: whole(2)}}}}
	for _, c := range []struct {
		args   string
		serve  http.HandlerFunc
		code   int
		stdout []string
		stderr []string
	}{
		{args: "settings get", serve: answer(state()), stdout: []string{"revision 3, changed 11:00 (1 h ago) by anna\n", "SETTING           RUNS      FROM\n",
			"sessions          2         set\n", "perPrincipal      2         environment 4, lowered to fit the seats\n", "weights           8,4,2,1   environment\n", "windows           -         environment\n"}},
		{args: "settings get", serve: answer(broken), stdout: []string{"sessions          16        environment; set to 2, which does not run\n"},
			stderr: []string{"problem: it does not fit", "shared"}},
		{args: "settings set sessions=1", serve: inTurn(answer(state()), answer(changed)),
			stdout: []string{"sessions  2       1      \n", "reserve   1       0      lowered\n"}, stderr: []string{"revision 4 runs"}},
		{args: "settings set sessions=1 --dry-run", serve: inTurn(answer(state()), answer(dry)), stdout: []string{
			"40 waiting", "nobody waits after 10 min -> 9 min, the last byte is sent after 11 min -> 10 min", "5 min -> 3 min 20 s", "3      37\n"},
			stderr: []string{"nothing was stored", "7 more wait"}},
		{args: "settings reset --dry-run", serve: inTurn(answer(state()), answer(blind)), stdout: []string{"no forecast: the rate of the link is not known yet\n"}},
		{args: "settings reset --dry-run", serve: inTurn(answer(state()), answer(idle)), stdout: []string{"nobody waits"}},
		{args: "settings set sessions=2", serve: inTurn(answer(state()), answer(state())), stderr: []string{"nothing to change; revision 3 stays"}},
		{args: "settings history", serve: answer(history), stdout: []string{"2         12:00 (0 s ago)  anna  sessions=2 strategy reset\n"}},
		{args: "settings set sessions=1", serve: inTurn(answer(state()), refuse(409, api.Problem{Code: "revision_mismatch", Message: "now at revision 4"})), code: 6,
			stderr: []string{"now at revision 4", "to do: look at what is there now"}},
		{args: "settings set sessions=many", code: 2, stderr: []string{"sessions: must be a whole number, is \"many\""}},
		{args: "settings set minRate=1MB", code: 2, stderr: []string{"a whole number of bytes, without a unit"}},
		{args: "settings set sessions", code: 2, stderr: []string{"KEY=VALUE"}},
		{args: "settings set colour=red", code: 2, stderr: []string{"there is no setting \"colour\"", "pollBudget"}},
		{args: "settings set weights=1,2,3", code: 2, stderr: []string{"weights"}},
		{args: "settings set weights=1,2,3,}", code: 2, stderr: []string{"weights"}},
		{args: "settings reset colour", code: 2, stderr: []string{"there is no setting"}},
		{args: "settings set", code: 2},
	} {
		code, stdout, stderr := command{args: strings.Fields(c.args), serve: c.serve}.run(t)
		if code != c.code {
			t.Errorf("%s: exit code %d, want %d; %s", c.args, code, c.code, stderr)
		}
		for _, want := range c.stdout {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: output lacks %q:\n%s", c.args, want, stdout)
			}
		}
		for _, want := range c.stderr {
			if !strings.Contains(stderr, want) {
				t.Errorf("%s: messages lack %q:\n%s", c.args, want, stderr)
			}
		}
	}
}

// What is set lies over what was set before, and the revision goes along, or the one that the user names.
func TestSettingsAreEdited(t *testing.T) {
	was := state()
	was.Settings.Strategy = whole("shared")
	for _, c := range []struct {
		args     []string
		revision int64
		want     api.DownloadSettings
	}{
		{[]string{"set", "weights=1,2,3,4", "preempt=false"}, 3, api.DownloadSettings{Strategy: whole("shared"), Sessions: whole(2), Preempt: whole(false),
			Weights: &api.ClassWeights{Interactive: 1, Release: 2, Bulk: 3, Background: 4}}},
		{[]string{"set", `windows={"bulk":{"zone":"UTC","open":[{"from":"22:00","to":"06:00"}]}}`, "strategy=ordered"}, 3, api.DownloadSettings{Strategy: whole("ordered"), Sessions: whole(2),
			Windows: map[string]api.ClassWindow{"bulk": {Zone: "UTC", Open: []api.OpenHours{{From: "22:00", To: "06:00"}}}}}},
		{[]string{"set", "sessions=3", "--revision", "7"}, 7, api.DownloadSettings{Strategy: whole("shared"), Sessions: whole(3)}},
		{[]string{"reset", "sessions"}, 3, api.DownloadSettings{Strategy: whole("shared")}},
		{[]string{"reset"}, 3, api.DownloadSettings{}},
	} {
		var got api.DownloadSettingsChange
		serve := inTurn(answer(was), func(w http.ResponseWriter, r *http.Request) {
			if err := json.NewDecoder(r.Body).Decode(&got); err != nil || r.Method != "PUT" {
				t.Errorf("%v: %s %v", c.args, r.Method, err)
			}
			answer(was)(w, r)
		})
		code, _, stderr := command{args: append([]string{"settings"}, c.args...), serve: serve}.run(t)
		if code != 0 || got.ExpectedRevision != c.revision || !reflect.DeepEqual(got.Settings, c.want) {
			t.Errorf("%v: %d %s, sent %+v", c.args, code, stderr, got)
		}
	}
}
