package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

const schedulesHelp = `Schedules make Runs at the times of calendar rules.

A rule has five fields: minute, hour, day of month, month, day of week; or it is one of @hourly, @daily,
@weekly, @monthly, @yearly. It counts in a time zone. When the clock there is changed, a rule for all hours
(*, */n) keeps its rhythm in real time. Any other follows the clock on the wall: a time shown twice counts
once, a time never shown counts at the end of the gap, a day that does not exist does not count.

  roadctl schedules set nightly --rule '30 2 * * *' --zone Europe/Berlin --template run.json
  roadctl schedules preview nightly --rule '0 2 * * *'
  roadctl schedules fires nightly`

func schedulesCommand(a *app) *cobra.Command {
	cmd := group("schedules", "Runs at the times of calendar rules", schedulesList(a), schedulesGet(a), schedulesSet(a), schedulesPreview(a),
		schedulesPause(a, true), schedulesPause(a, false), schedulesRemove(a), schedulesFires(a))
	cmd.Long = schedulesHelp
	cmd.PersistentFlags().String("tenant", "", "tenant id, for operators (default: your own)")
	return cmd
}

// withSchedules runs a command against the server, in the tenant that the flag names.
func (a *app) withSchedules(cmd *cobra.Command, act func(c *sdk.Client, tenant string) error) error {
	tenant, err := cmd.Flags().GetString("tenant")
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	return act(c, tenant)
}

func schedulesList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List schedules and their next fires", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withSchedules(cmd, func(c *sdk.Client, tenant string) error {
				all, err := collect(c.Schedules(cmd.Context(), tenant))
				if err != nil {
					return err
				}
				return show(a, all, []string{"NAME", "RULE", "ZONE", "POOL", "NEXT"}, func(d api.Schedule) []string {
					return []string{d.Name, d.Plan.Rule, d.Plan.Zone, d.Pool, a.nextFire(d)}
				})
			})
		},
	}
}

func (a *app) nextFire(d api.Schedule) string {
	if d.Paused {
		return "paused"
	}
	return a.ends(d.NextAt)
}

func schedulesGet(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Short: "Show a schedule", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSchedules(cmd, func(c *sdk.Client, tenant string) error {
				d, err := c.Schedule(cmd.Context(), tenant, args[0])
				if err != nil {
					return err
				}
				return a.showSchedule(d)
			})
		},
	}
}

func (a *app) showSchedule(d api.Schedule) error {
	if a.flags.output == "json" {
		return a.json(d)
	}
	p := d.Plan
	caught := "none"
	if p.CatchUp != nil {
		caught = p.CatchUp.Policy
		if p.CatchUp.Max > 0 {
			caught += fmt.Sprintf(", %d at most", p.CatchUp.Max)
		}
		if s := p.CatchUp.MaxAgeSeconds; s > 0 {
			caught += ", none older than " + span(time.Duration(s)*time.Second)
		}
	}
	rows := [][2]string{
		{"name", d.Name}, {"revision", itoa(d.Revision)}, {"rule", p.Rule + " in " + p.Zone}, {"next", a.nextFire(d)},
		{"spread", span(time.Duration(p.SpreadSeconds) * time.Second)}, {"overlap", p.Overlap}, {"catch-up", caught}, {"refused", p.Refused},
		{"pool", d.Pool}, {"owner", d.Owner}, {"template", string(p.Template)},
	}
	return show(a, rows, []string{"SCHEDULE", ""}, func(r [2]string) []string { return r[:] })
}

// planFlags are the flags that say a plan.
type planFlags struct {
	rule, zone, overlap, refused, template, catchUp string
	spread, catchAge                                spanFlag
	catchMax                                        int
}

func (f *planFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.rule, "rule", "", "five fields, or @hourly, @daily, @weekly, @monthly, @yearly")
	flags.StringVar(&f.zone, "zone", "", "time zone of the rule, such as Europe/Berlin (default of a new one: UTC)")
	flags.Var(&f.spread, "spread", "move its fires by up to this much, always by the same")
	flags.StringVar(&f.overlap, "overlap", "", "while an earlier Run is not at its end: skip, queue, replace or allow")
	flags.StringVar(&f.catchUp, "catch-up", "", "fires that came while the server was down: none, last or all")
	flags.IntVar(&f.catchMax, "catch-up-max", 0, "with all: how many")
	flags.Var(&f.catchAge, "catch-up-age", "with last and all: none older than this")
	flags.StringVar(&f.refused, "refused", "", "a Run that is refused: drop, or retry until the next fire")
	flags.StringVar(&f.template, "template", "", "file with the Run to submit, as JSON")
}

// onto writes the flags that were given over a plan.
func (f *planFlags) onto(p *api.SchedulePlan, changed func(string) bool) error {
	for _, s := range []struct {
		flag string
		from string
		to   *string
	}{{"rule", f.rule, &p.Rule}, {"zone", f.zone, &p.Zone}, {"overlap", f.overlap, &p.Overlap}, {"refused", f.refused, &p.Refused}} {
		if changed(s.flag) {
			*s.to = s.from
		}
	}
	if p.Zone == "" {
		p.Zone = "UTC"
	}
	if changed("spread") {
		p.SpreadSeconds = int64(time.Duration(f.spread) / time.Second)
	}
	if p.CatchUp == nil {
		p.CatchUp = &api.CatchUp{Policy: "none"}
	}
	if changed("catch-up") {
		p.CatchUp = &api.CatchUp{Policy: f.catchUp} // the bounds of another policy are not its bounds
	}
	if changed("catch-up-max") {
		p.CatchUp.Max = f.catchMax
	}
	if changed("catch-up-age") {
		p.CatchUp.MaxAgeSeconds = int64(time.Duration(f.catchAge) / time.Second)
	}
	if changed("template") {
		raw, err := os.ReadFile(f.template)
		if err != nil {
			return err
		}
		if !json.Valid(raw) {
			return usagef("--template: %s is not JSON", f.template)
		}
		p.Template = raw
	}
	if p.Rule == "" || len(p.Template) == 0 {
		return usagef("a new schedule needs --rule and --template")
	}
	return nil
}

// planned reads the schedule, if there is one, and writes the flags over its plan.
func (a *app) planned(cmd *cobra.Command, c *sdk.Client, tenant, name string, f *planFlags) (api.Schedule, error) {
	was, err := c.Schedule(cmd.Context(), tenant, name)
	if refusal, ok := errors.AsType[*sdk.Error](err); ok && refusal.Code == "not_found" {
		was, err = api.Schedule{}, nil
	}
	if err != nil {
		return was, err
	}
	return was, f.onto(&was.Plan, a.changed)
}

func schedulesSet(a *app) *cobra.Command {
	var f planFlags
	var revision int64
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Make a schedule, or change what the flags say of one", Args: cobra.ExactArgs(1), Long: schedulesHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSchedules(cmd, func(c *sdk.Client, tenant string) error {
				was, err := a.planned(cmd, c, tenant, args[0], &f)
				if err != nil {
					return err
				}
				change := api.ScheduleChange{Plan: was.Plan, ExpectedRevision: was.Revision}
				if a.changed("revision") {
					change.ExpectedRevision = revision
				}
				now, err := c.PutSchedule(cmd.Context(), tenant, args[0], change)
				if err != nil {
					return err
				}
				return showOne(a, now, "%s is at revision %d, next fire %s", now.Name, now.Revision, a.nextFire(now))
			})
		},
	}
	f.add(cmd)
	cmd.Flags().Int64Var(&revision, "revision", 0, "revision the change was made from (default: the current one)")
	return cmd
}

func schedulesPreview(a *app) *cobra.Command {
	var f planFlags
	var week bool
	cmd := &cobra.Command{
		Use: "preview NAME", Short: "Show the load of its pool as if what the flags say were stored", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSchedules(cmd, func(c *sdk.Client, tenant string) error {
				was, err := a.planned(cmd, c, tenant, args[0], &f)
				if err != nil {
					return err
				}
				curve, err := c.PreviewSchedule(cmd.Context(), tenant, args[0], api.SchedulePreview{Plan: was.Plan, Week: week})
				if err != nil {
					return err
				}
				return a.showCurve(curve)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&week, "week", false, "over 7 days instead of 24 hours")
	return cmd
}

// showCurve draws the highest minute of each hour, then names the peaks.
func (a *app) showCurve(c api.LoadCurve) error {
	if a.flags.output == "json" {
		return a.json(c)
	}
	_, _ = fmt.Fprintf(a.out, "slots of pool %s that schedules ask for, from %s on, as they declare it:\n", printable(c.Pool), clockTime(c.From, a.now()))
	if err := show(a, hourly(c), []string{"HOUR", "MEAN", "MOST", ""}, func(b api.LoadBucket) []string {
		return []string{clockTime(b.At, a.now()), fmt.Sprintf("%.1f", b.MeanSlots), itoa(b.MaxSlots), bar(b.MaxSlots, c)}
	}); err != nil {
		return err
	}
	for _, p := range c.Peaks {
		var parts []string
		for _, part := range p.Own {
			parts = append(parts, fmt.Sprintf("%s %d", part.Name, part.Slots))
		}
		if p.Others > 0 {
			parts = append(parts, fmt.Sprintf("other tenants %d", p.Others))
		}
		_, _ = fmt.Fprintf(a.out, "peak %s: %d slots (%s)\n", clockTime(p.At, a.now()), p.Slots, printable(strings.Join(parts, ", ")))
	}
	for _, e := range c.Spreads {
		_, _ = fmt.Fprintf(a.out, "with a spread of %s: %d slots at most; %d if all yours of the highest peak had it\n",
			span(time.Duration(e.SpreadSeconds)*time.Second), e.Alone, e.Together)
	}
	if c.NotCounted > 0 {
		a.say("%d more schedules on the pool were not counted", c.NotCounted)
	}
	return nil
}

// hourly sums a curve up by its hours.
func hourly(c api.LoadCurve) (out []api.LoadBucket) {
	for i, b := range c.Buckets {
		at := b.At.Truncate(time.Hour)
		if i == 0 || !out[len(out)-1].At.Equal(at) {
			out = append(out, api.LoadBucket{At: at})
		}
		last := &out[len(out)-1]
		last.MaxSlots = max(last.MaxSlots, b.MaxSlots)
		last.MeanSlots += b.MeanSlots * float64(c.StepSeconds) / 3600
	}
	return out
}

func bar(slots int64, c api.LoadCurve) string {
	if len(c.Peaks) == 0 || c.Peaks[0].Slots == 0 {
		return ""
	}
	return strings.Repeat("#", int((slots*40+c.Peaks[0].Slots-1)/c.Peaks[0].Slots))
}

func schedulesPause(a *app, pause bool) *cobra.Command {
	cmd := &cobra.Command{Use: "pause NAME", Short: "Stop a schedule; what it is trying to submit is given up", Args: cobra.ExactArgs(1)}
	if !pause {
		cmd.Use, cmd.Short = "resume NAME", "Let a schedule go on from now; nothing is caught up"
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withSchedules(cmd, func(c *sdk.Client, tenant string) error {
			step := c.ResumeSchedule
			if pause {
				step = c.PauseSchedule
			}
			d, err := step(cmd.Context(), tenant, args[0])
			if err != nil {
				return err
			}
			return showOne(a, d, "%s: next fire %s", d.Name, a.nextFire(d))
		})
	}
	return cmd
}

func schedulesRemove(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "Remove a schedule; Runs that it made stay", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSchedules(cmd, func(c *sdk.Client, tenant string) error {
				d, err := c.Schedule(cmd.Context(), tenant, args[0])
				if err != nil {
					return err
				}
				return c.DeleteSchedule(cmd.Context(), tenant, args[0], d.Revision)
			})
		},
	}
}

func schedulesFires(a *app) *cobra.Command {
	var most int
	cmd := &cobra.Command{
		Use: "fires NAME", Short: "Show what a schedule fired, latest first", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSchedules(cmd, func(c *sdk.Client, tenant string) error {
				var all []api.ScheduleFire
				for f, err := range c.ScheduleFires(cmd.Context(), tenant, args[0]) {
					if err != nil {
						return err
					}
					if all = append(all, f); len(all) >= most {
						break
					}
				}
				return show(a, all, []string{"INSTANT", "STATE", "RUN", "REASON"}, func(f api.ScheduleFire) []string {
					return []string{when(f.Instant, a.now()), f.State, f.Run, f.Reason}
				})
			})
		},
	}
	cmd.Flags().IntVar(&most, "limit", 100, "how many at most")
	return cmd
}
