package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
)

const settingsHelp = `Shows and changes the settings of the download queue while it runs. What you set lies over the
server's environment; what you reset follows the environment again.

  strategy          ordered, smallest-first, shared
  sessions          seats; reserve and perPrincipal are lowered to fit
  sessionsMin       with sessionsMax: the fewest seats
  sessionsMax       the seats follow the use of the link up to this many; 0: they stay at sessions
  reserve           seats kept for interactive
  perPrincipal      seats of one principal while others wait
  weights           interactive,release,bulk,background, for example 8,4,2,1
  sessionMinBytes   larger objects queue for a seat
  idleSeconds       pause after which a download gives its seat back
  agingMinutes      waiting this long raises a download; 0: never
  preempt           true or false
  rangesPerSession  responses of one download at once
  windows           JSON, for example
                    {"bulk":{"zone":"Europe/Berlin","open":[{"days":["fri"],"from":"22:00","to":"06:00"}]}}
  minRate           bytes a second a seat asks of its reader; a slower one moves aside; 0: none
  pollBudget        polls a second of all who wait; 0: no such bound`

func settingsCommand(a *app) *cobra.Command {
	cmd := group("settings", "Settings of the download queue (operators)", settingsGet(a), settingsSet(a), settingsReset(a), settingsHistory(a))
	cmd.Long = settingsHelp
	return cmd
}

func settingsGet(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "get", Short: "Show what runs, and where each value comes from", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			state, err := c.DownloadSettings(cmd.Context())
			if err != nil {
				return err
			}
			return a.showSettings(state)
		},
	}
}

func settingsSet(a *app) *cobra.Command {
	return settingsChange(a, &cobra.Command{
		Use: "set KEY=VALUE...", Short: "Change settings at once, without a restart", Args: cobra.MinimumNArgs(1), Long: settingsHelp,
	}, func(record *api.DownloadSettings, args []string) error {
		for _, arg := range args {
			key, value, ok := strings.Cut(arg, "=")
			if !ok {
				return usagef("%q must look like KEY=VALUE", arg)
			}
			if err := setSetting(record, key, value); err != nil {
				return err
			}
		}
		return nil
	})
}

func settingsReset(a *app) *cobra.Command {
	return settingsChange(a, &cobra.Command{
		Use: "reset [KEY...]", Short: "Let settings follow the server's environment again; all of them without a KEY",
	}, func(record *api.DownloadSettings, args []string) error {
		if len(args) == 0 {
			*record = api.DownloadSettings{}
		}
		for _, key := range args {
			if err := setSetting(record, key, ""); err != nil {
				return err
			}
		}
		return nil
	})
}

// settingsChange is a command that reads the record, edits it, and puts it back at the revision it read, or at the one
// the user names.
func settingsChange(a *app, cmd *cobra.Command, edit func(record *api.DownloadSettings, args []string) error) *cobra.Command {
	var dryRun bool
	var revision int64
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := edit(&api.DownloadSettings{}, args); err != nil {
			return err // before anything is asked of the server
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		defer c.Close()
		was, err := c.DownloadSettings(cmd.Context())
		if err != nil {
			return err
		}
		change := api.DownloadSettingsChange{Settings: was.Settings, ExpectedRevision: was.Revision, DryRun: dryRun}
		if a.changed("revision") {
			change.ExpectedRevision = revision
		}
		if err := edit(&change.Settings, args); err != nil {
			return err
		}
		now, err := c.ChangeDownloadSettings(cmd.Context(), change)
		if err != nil {
			return err
		}
		return a.showSettingsChange(was, now)
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "store nothing; say what would change, with a forecast of the queue")
	cmd.Flags().Int64Var(&revision, "revision", 0, "revision the change was made from (default: the current one)")
	return cmd
}

// setSetting sets one field of a record from its text; empty text takes it out. The names are those of the wire.
func setSetting(record *api.DownloadSettings, key, value string) error {
	raw, err := json.Marshal(record)
	if err != nil {
		return err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	if !slices.Contains(settingKeys(), key) {
		return usagef("there is no setting %q; there are %s", key, strings.Join(settingKeys(), ", "))
	}
	delete(fields, key)
	if value != "" {
		fields[key] = settingValue(key, value)
	}
	if raw, err = json.Marshal(fields); err != nil {
		return malformed(key, value)
	}
	var out api.DownloadSettings
	if err := json.Unmarshal(raw, &out); err != nil {
		return malformed(key, value)
	}
	*record = out
	return nil
}

func malformed(key, value string) error {
	form := "a whole number"
	switch key {
	case "preempt":
		form = "true or false"
	case "weights":
		form = "four whole numbers for interactive, release, bulk and background, such as 8,4,2,1"
	case "windows":
		form = `JSON such as {"bulk":{"zone":"Europe/Berlin","open":[{"from":"22:00","to":"06:00"}]}}`
	case "sessionMinBytes", "minRate":
		form = "a whole number of bytes, without a unit"
	}
	return usagef("%s: must be %s, is %q", key, form, value)
}

// settingValue is the JSON of a value as people write it.
func settingValue(key, value string) json.RawMessage {
	switch key {
	case "strategy":
		raw, _ := json.Marshal(value) // a string always can be
		return raw
	case "weights":
		parts := strings.Split(value, ",")
		if len(parts) == 4 {
			value = fmt.Sprintf(`{"interactive":%s,"release":%s,"bulk":%s,"background":%s}`, parts[0], parts[1], parts[2], parts[3])
		}
	}
	return json.RawMessage(value)
}

// settingKeys are the settings there are, in the order they are shown.
func settingKeys() []string {
	return []string{"strategy", "sessions", "sessionsMin", "sessionsMax", "reserve", "perPrincipal", "weights", "sessionMinBytes", "idleSeconds", "agingMinutes",
		"preempt", "rangesPerSession", "windows", "minRate", "pollBudget"}
}

// settingRow is one setting as it runs.
type settingRow struct{ key, value, from string }

func settingRows(s api.DownloadSettingsState) (rows []settingRow, err error) {
	runs, err := settingTexts(s.Effective)
	if err != nil {
		return nil, err
	}
	set, err := settingTexts(s.Settings)
	if err != nil {
		return nil, err
	}
	environment, err := settingTexts(s.Environment)
	if err != nil {
		return nil, err
	}
	for _, key := range settingKeys() {
		row := settingRow{key, runs[key], "environment"}
		switch _, own := set[key]; {
		case own && runs[key] == set[key]:
			row.from = "set"
		case own:
			row.from = "environment; set to " + set[key] + ", which does not run"
		case runs[key] != environment[key]:
			row.from = "environment " + environment[key] + ", lowered to fit the seats"
		}
		if row.value == "" {
			row.value = "-"
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// settingTexts is each field of a record as people write it.
func settingTexts(record api.DownloadSettings) (map[string]string, error) {
	raw, err := json.Marshal(record)
	if err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for key, value := range fields {
		texts[key] = strings.Trim(string(value), `"`)
	}
	if w := record.Weights; w != nil {
		texts["weights"] = fmt.Sprintf("%d,%d,%d,%d", w.Interactive, w.Release, w.Bulk, w.Background)
	}
	return texts, nil
}

func (a *app) showSettings(s api.DownloadSettingsState) error {
	if a.flags.output == "json" {
		return a.json(s)
	}
	rows, err := settingRows(s)
	if err != nil {
		return err
	}
	line := fmt.Sprintf("revision %d", s.Revision)
	if s.Revision == 0 {
		line = "nothing was ever set; the environment runs"
	} else if s.ChangedAt != nil {
		line += fmt.Sprintf(", changed %s by %s", when(*s.ChangedAt, a.now()), printable(s.ChangedByName))
	}
	_, _ = fmt.Fprintln(a.out, line)
	err = show(a, rows, []string{"SETTING", "RUNS", "FROM"}, func(r settingRow) []string { return []string{r.key, r.value, r.from} })
	if s.Admission == api.AdmissionPerRequest {
		a.say("the strategy is shared: every request is admitted by itself, settings of sessions have no effect")
	}
	if s.Problem != "" {
		a.say("problem: %s", printable(s.Problem))
	}
	return err
}

// showSettingsChange says what runs otherwise, or would, with the forecast of a dry run.
func (a *app) showSettingsChange(was, now api.DownloadSettingsState) error {
	if a.flags.output == "json" {
		return a.json(now)
	}
	switch {
	case now.DryRun:
		a.say("nothing was stored; this would change:")
	case now.Revision == was.Revision:
		a.say("nothing to change; revision %d stays", now.Revision)
	default:
		a.say("revision %d runs", now.Revision)
	}
	if len(now.Changes) > 0 {
		err := show(a, now.Changes, []string{"SETTING", "BEFORE", "AFTER", "NOTE"}, func(c api.SettingChange) []string {
			return []string{c.Field, c.From, c.To, c.Note}
		})
		if err != nil {
			return err
		}
	}
	if now.Forecast == nil {
		return nil
	}
	return a.showForecast(*now.Forecast)
}

func (a *app) showForecast(f api.SettingsForecast) error {
	if !f.Known {
		_, err := fmt.Fprintln(a.out, "\nno forecast: "+printable(f.Reason))
		return err
	}
	if f.Sessions == 0 {
		_, err := fmt.Fprintln(a.out, "\nnobody waits, so nobody would start sooner or later")
		return err
	}
	seconds := func(s float64) string { return span(time.Duration(s * float64(time.Second))) }
	_, _ = fmt.Fprintf(a.out, "\nthe queue of now, %d waiting, if nothing else comes:\n", f.Sessions)
	_, _ = fmt.Fprintf(a.out, "nobody waits after %s -> %s, the last byte is sent after %s -> %s\n", seconds(f.Before.DrainSeconds),
		seconds(f.After.DrainSeconds), seconds(f.Before.FinishSeconds), seconds(f.After.FinishSeconds))
	err := show(a, f.Classes, []string{"CLASS", "WAITING", "MEAN WAIT", "LONGEST WAIT", "MEAN FINISH", "LATER", "EARLIER"}, func(c api.ForecastClass) []string {
		return []string{c.Class, strconv.Itoa(c.Waiting), seconds(c.Before.MeanWaitSeconds) + " -> " + seconds(c.After.MeanWaitSeconds),
			seconds(c.Before.MaxWaitSeconds) + " -> " + seconds(c.After.MaxWaitSeconds),
			seconds(c.Before.MeanFinishSeconds) + " -> " + seconds(c.After.MeanFinishSeconds), strconv.Itoa(c.Later), strconv.Itoa(c.Earlier)}
	})
	if f.Truncated {
		a.say("not the whole queue was played: %s", printable(f.Reason))
	}
	return err
}

func settingsHistory(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "history", Short: "Show who changed what, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			revisions, err := collect(c.DownloadSettingsHistory(cmd.Context()))
			if err != nil {
				return err
			}
			return show(a, revisions, []string{"REVISION", "WHEN", "WHO", "CHANGED"}, func(r api.DownloadSettingsRevision) []string {
				return []string{itoa(r.Revision), when(r.ChangedAt, a.now()), r.ChangedByName, changedFields(r)}
			})
		},
	}
}

// changedFields is what a revision set, with the values, and what it took back.
func changedFields(r api.DownloadSettingsRevision) string {
	texts, err := settingTexts(r.Settings)
	if err != nil {
		return strings.Join(r.Fields, ", ")
	}
	var words []string
	for _, f := range r.Fields {
		if text, set := texts[f]; set {
			words = append(words, f+"="+text)
		} else {
			words = append(words, f+" reset")
		}
	}
	return strings.Join(words, " ")
}
