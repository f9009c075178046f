package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

func runsCommand(a *app) *cobra.Command {
	return group("runs", "Runs: where they stand, what they wrote, what came of them", runsList(a), runsShow(a), runsWhy(a), runsLogs(a), runsEvents(a),
		runsWait(a), runsResults(a), runsCancel(a), runsRerun(a))
}

// filterFlags select Runs.
type filterFlags struct {
	f      sdk.RunFilter
	labels []string
}

func (f *filterFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringSliceVar(&f.f.States, "state", nil, "queued, active, succeeded, failed, interrupted, cancelled or expired; may be repeated")
	fl.StringVar(&f.f.Pool, "pool", "", "of this pool")
	fl.StringVar(&f.f.Package, "package", "", "of this package: NAME or NAME@VERSION")
	fl.StringVar(&f.f.Array, "array", "", "elements of this array")
	fl.StringArrayVarP(&f.labels, "label", "l", nil, "NAME=VALUE that they have; may be repeated")
	fl.BoolVar(&f.f.All, "all", false, "of all tenants (operators)")
}

func (f *filterFlags) read() (sdk.RunFilter, error) {
	labels, err := pairs("label", f.labels)
	f.f.Labels = labels
	return f.f, err
}

func runsList(a *app) *cobra.Command {
	var f filterFlags
	var most int
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List Runs, the newest first", Args: cobra.NoArgs,
		Example: "  roadctl runs list --state queued --state active\n  roadctl runs list --label sweep=june --limit 1000",
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := f.read()
			if err != nil {
				return err
			}
			if most < 1 {
				return usagef("--limit must be at least 1")
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				all, more, err := upTo(c.Runs(ctx, filter, most+1), most)
				if err != nil {
					return err
				}
				if err := a.listRuns(all); err != nil || !more {
					return err
				}
				a.say("there are more; see them with a larger --limit")
				return nil
			})
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&most, "limit", 50, "how many at most")
	return cmd
}

// upTo reads a listing up to a number of items, and says whether there would be more.
func upTo[T any](seq func(func(T, error) bool), most int) (all []T, more bool, err error) {
	for item, e := range seq {
		if e != nil {
			return nil, false, e
		}
		if len(all) == most {
			return all, true, nil
		}
		all = append(all, item)
	}
	return all, false, nil
}

func (a *app) listRuns(all []api.Run) error {
	now := a.now()
	return show(a, all, []string{"RUN", "STATE", "WHAT", "POOL", "MADE", "TOOK", "REASON"}, func(r api.Run) []string {
		why := "-"
		if r.Reason != "" && r.Reason != "done" {
			why = reasonWords(r.Reason)
		}
		if p := r.Place; p != nil && p.Known && p.StartP50 != nil {
			why = placeWords(*p, now)
		}
		return []string{r.ID, r.State, what(r), r.Pool, when(r.CreatedAt, now), took(r, now), why}
	})
}

// what a Run runs, as short as a list wants it.
func what(r api.Run) string {
	s := r.Package
	if s == "" {
		s = "command"
	}
	if r.Index != nil {
		s += "[" + strconv.Itoa(*r.Index) + "]"
	}
	return s
}

func runsShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show RUN", Short: "Show a Run with its Attempts and results", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				r, err := c.Run(ctx, args[0])
				if err != nil {
					return err
				}
				if a.flags.output == "json" {
					return a.json(r)
				}
				return a.showRun(r)
			})
		},
	}
}

func (a *app) showRun(r api.Run) error {
	now := a.now()
	rows := [][2]string{{"state", runWords(r, now)}, {"what", whatInFull(r)}, {"pool", r.Pool}, {"class", r.Class}, {"made", when(r.CreatedAt, now) + " by " + r.CreatedBy}}
	for _, row := range [][2]string{
		{"array", r.Array}, {"labels", labelWords(r.Labels)}, {"started", a.optional(r.StartedAt)}, {"ended", a.optional(r.EndedAt)},
	} {
		if row[1] != "" {
			rows = append(rows, row)
		}
	}
	if r.State == "queued" && r.NotBefore != nil {
		rows = append(rows, [2]string{"not before", when(*r.NotBefore, now)})
	}
	if r.Priority != 0 {
		rows = append(rows, [2]string{"priority", strconv.Itoa(r.Priority)})
	}
	if r.SpentMicro > 0 {
		rows = append(rows, [2]string{"cost", money(r.SpentMicro)})
	}
	if err := show(a, rows, []string{"RUN", r.ID}, func(row [2]string) []string { return row[:] }); err != nil {
		return err
	}
	if len(r.Attempts) > 0 {
		_, _ = fmt.Fprintln(a.out)
		if err := show(a, r.Attempts, []string{"ATTEMPT", "STATE", "REASON", "EXIT", "RUNNER", "TOOK", "CPU", "MEMORY"}, attemptRow); err != nil {
			return err
		}
	}
	if len(r.Results) == 0 {
		return nil
	}
	_, _ = fmt.Fprintln(a.out)
	return a.listResults(r.Results)
}

func attemptRow(t api.Attempt) []string {
	row := []string{t.ID, t.State, orDash(reasonWords(t.Reason)), "-", t.Runner, "-", "-", "-"}
	if t.Detail != "" {
		row[2] += " (" + t.Detail + ")"
	}
	if t.ExitCode != nil {
		row[3] = strconv.Itoa(*t.ExitCode)
	}
	if u := t.Usage; u != nil {
		row[5], row[6], row[7] = span(millis(u.WallMillis)), span(millis(u.CPUMillis)), amount(u.MemoryBytes)
	}
	return row
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func (a *app) optional(t *time.Time) string {
	if t == nil {
		return ""
	}
	return when(*t, a.now())
}

// whatInFull is what a Run runs, with its arguments.
func whatInFull(r api.Run) string {
	s := what(r)
	if r.Spec == nil {
		return s
	}
	if r.Package == "" {
		s = strings.TrimPrefix(s, "command")
	}
	if r.Spec.Image != "" {
		s = r.Spec.Image + s
	}
	return strings.TrimSpace(s + " " + strings.Join(r.Spec.Command, " "))
}

func labelWords(labels map[string]string) string {
	var all []string
	for _, name := range sortedNames(labels) {
		all = append(all, name+"="+labels[name])
	}
	return strings.Join(all, ", ")
}

func runsWhy(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "why RUN", Short: "Say why a Run waits, or why it ended as it did", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				r, err := c.Run(ctx, args[0])
				if err != nil {
					return err
				}
				if a.flags.output == "json" {
					return a.json(whyJSON{r.State, r.Reason, r.Place, lastAttempt(r)})
				}
				line := runWords(r, a.now())
				if p := r.Place; p != nil && p.Reason == "waiting_turn" && p.Known && p.Detail != "" {
					line += "; " + p.Detail
				}
				_, err = fmt.Fprintln(a.out, printable(line))
				return err
			})
		},
	}
}

// whyJSON is the answer of roadctl runs why as JSON.
type whyJSON struct {
	State   string       `json:"state"`
	Reason  string       `json:"reason,omitempty"`
	Place   *api.Place   `json:"place,omitempty"`
	Attempt *api.Attempt `json:"attempt,omitempty"`
}

func runsRerun(a *app) *cobra.Command {
	var w waiting
	var key string
	cmd := &cobra.Command{
		Use: "rerun RUN", Short: "Submit what a Run was asked to be once more", Args: cobra.ExactArgs(1),
		Long: "Submits what a Run was asked to be once more, as a new Run. What it waited for and its array are left out: it runs by itself.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				out, err := c.Rerun(ctx, args[0], sdk.Submission{Key: key, Events: a.submitEvents()})
				if err != nil {
					return err
				}
				w.wait = w.wait || w.results != ""
				return a.submitted(ctx, c, out, w)
			})
		},
	}
	fl := cmd.Flags()
	fl.BoolVarP(&w.wait, "wait", "w", false, "follow it to its end, and end with its outcome")
	fl.StringVarP(&w.results, "results", "d", "", "folder to download the results to; waits too")
	fl.StringVar(&key, "idempotency-key", "", "names this submit: sent again, the same Run is found")
	return cmd
}
