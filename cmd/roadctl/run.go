package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

const runHelp = `Submits a Run: of a published package, of a command, or of a command in an image of the store. What follows
-- is the command; with a package, further arguments of its program.

Without --wait it prints the Run's id and ends. With it, it tells the place and the start while the Run is
queued, then passes on what the Run writes, and ends with the Run's outcome: 0 succeeded, 1 failed,
9 interrupted, 10 cancelled, 11 expired. Ctrl-C ends the waiting, not the Run.

An input is NAME=VALUE, NAME=@REPO/PATH for a file of the store, or NAME=run:RUN/OUTPUT for a result of
another Run or array, which is then waited for. Values that begin with @ or run: are given with --batch.

--batch FILE submits Runs that may follow each other, all of them or none. The file is JSON; @name means
another Run of it:

  {"runs": [{"name": "each", "run": {"package": "prices", "array": {"first": 0, "last": 3}}},
            {"name": "join", "run": {"package": "join", "after": [{"run": "@each"}],
              "inputs": {"parts": {"result": {"run": "@each", "output": "summary.csv"}}}}}]}`

// runFlags are the flags of roadctl run.
type runFlags struct {
	n                         api.NewRun // what flags write into directly
	batch, array, retry       string
	notBefore                 string
	inputs, outputs           []string
	env, labels, placement    []string
	after                     []string
	laneKey, lanePolicy       string
	timeout, expected, grace  spanFlag
	memory, disk              sizeFlag
	cpu                       float64
	key, results, traceparent string
	waitLimit                 spanFlag
	wait                      bool
}

func runCommand(a *app) *cobra.Command {
	f := &runFlags{waitLimit: spanFlag(15 * time.Minute)}
	cmd := &cobra.Command{
		Use: "run [flags] [PACKAGE] [-- COMMAND...]", Short: "Submit a Run, and wait for it if asked to", Args: cobra.ArbitraryArgs, Long: runHelp,
		Example: "  roadctl run prices --input prices=@data/prices.csv --wait --results out\n" +
			"  roadctl run --memory 1GiB --out sums.txt --wait -- sh -c 'sha256sum /usr/bin/* > $ROADSTEAD_OUTPUTS/sums.txt'\n" +
			"  roadctl run prices@1.0.0 --array 0-99%10 --label sweep=june",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.read(a, args, cmd.ArgsLenAtDash()); err != nil {
				return err
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error { return a.submit(ctx, c, f) })
		},
	}
	f.addWhat(cmd)
	f.addHow(cmd)
	f.addWaiting(cmd)
	return cmd
}

// addWhat adds the flags that say what runs.
func (f *runFlags) addWhat(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVarP(&f.n.Package, "package", "p", "", "[TENANT/]NAME[@VERSION] of a published package, instead of the first argument")
	fl.StringVar(&f.n.Image, "image", "", "REPO/PATH of an OCI image layout (tar) in the store; the command runs in it")
	fl.StringArrayVarP(&f.inputs, "input", "i", nil, "NAME=VALUE, NAME=@REPO/PATH or NAME=run:RUN/OUTPUT; may be repeated")
	fl.StringArrayVar(&f.outputs, "out", nil, "NAME[=PATH] of a result that a command leaves in its output folder; may be repeated")
	fl.StringArrayVarP(&f.env, "env", "e", nil, "NAME=VALUE; not for secrets; may be repeated")
	fl.StringSliceVar(&f.n.Secrets, "secret", nil, "name of a secret, given as a file; may be repeated")
	fl.StringVar(&f.array, "array", "", "make a Run for each index: FIRST-LAST, and %N for at most N at once, for example 0-99%10")
	fl.StringVar(&f.batch, "batch", "", "submit the Runs of this JSON file; no other flag says what runs then")
	fl.StringVar(&f.traceparent, "traceparent", "", "trace context (W3C) for the payload")
}

// addHow adds the flags that say how and when it runs.
func (f *runFlags) addHow(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.n.Pool, "pool", "", "where to run (default: the pool named default)")
	fl.StringVar(&f.n.Class, "class", "", "workload class: interactive, background, periodic or build")
	fl.IntVar(&f.n.Priority, "priority", 0, "-10 to 10, within your tenant; each step counts as ten minutes of waiting")
	fl.StringVar(&f.notBefore, "not-before", "", "don't start earlier: RFC 3339, or HH:MM for its next occurrence")
	fl.Var(&f.timeout, "timeout", "time it may take (default: the package's or the pool's)")
	fl.Var(&f.expected, "expected", "time you believe it takes (default: learnt)")
	fl.Var(&f.grace, "grace", "time between TERM and KILL when it is ended (default: 10s)")
	fl.Int64Var(&f.n.Resources.Slots, "slots", 0, "units of the pool's concurrency it takes (default: 1)")
	fl.Float64Var(&f.cpu, "cpu", 0, "CPUs, for example 0.5")
	fl.Var(&f.memory, "memory", "memory, for example 2GiB")
	fl.Var(&f.disk, "disk", "disk, for example 10GB")
	fl.StringArrayVar(&f.placement, "placement", nil, "NAME=VALUE of a label that the runner must have; may be repeated")
	fl.StringVar(&f.retry, "retry", "", "FAILURES[,LOSSES] more tries, or never; one number stands for both")
	fl.StringArrayVarP(&f.labels, "label", "l", nil, "NAME=VALUE to find it by; may be repeated")
	fl.StringArrayVar(&f.after, "after", nil, "[ok:|any:|fail:]RUN, a Run or array that must have ended so; may be repeated")
	fl.StringVar(&f.laneKey, "key", "", "Runs of the same key are not active at the same time")
	fl.StringVar(&f.lanePolicy, "key-policy", "", "when there is one: queue (the default), replace or skip")
}

// addWaiting adds the flags of the submit itself and of what follows it.
func (f *runFlags) addWaiting(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.n.DryRun, "dry-run", false, "store nothing; say where it would stand, what it costs, and what blocks it")
	fl.BoolVarP(&f.wait, "wait", "w", false, "follow it to its end, and end with its outcome")
	fl.StringVarP(&f.results, "results", "d", "", "folder to download the results to; waits too")
	fl.StringVar(&f.key, "idempotency-key", "", "names this submit: sent again, the same Runs are found (default: a new one each time)")
	fl.Var(&f.waitLimit, "wait-limit", "ask a full queue again for so long; 0s: not at all")
}

// submit sends what the flags say and shows, or follows, what came of it.
func (a *app) submit(ctx context.Context, c *sdk.Client, f *runFlags) error {
	s := sdk.Submission{Key: f.key, Traceparent: f.traceparent, WaitLimit: time.Duration(f.waitLimit), Events: a.submitEvents()}
	if s.WaitLimit == 0 {
		s.WaitLimit = -1
	}
	if s.Key == "" {
		s.Key = sdk.NewKey()
	}
	if f.batch != "" {
		return a.submitBatch(ctx, c, f, s)
	}
	if err := f.readInputs(ctx, c); err != nil {
		return err
	}
	out, err := c.Submit(ctx, f.n, s)
	if err != nil {
		return err
	}
	if out.DryRun {
		return a.showDryRun(out)
	}
	return a.submitted(ctx, c, out, f.waiting())
}

// submitted shows what a submit made, or follows it to its end.
func (a *app) submitted(ctx context.Context, c *sdk.Client, out api.Submitted, w waiting) error {
	if out.Repeat {
		a.say("submitted before; these are the Runs of that time")
	}
	switch {
	case !w.wait:
		return a.showSubmitted(out)
	case out.Array != "":
		a.say("array %s: %s", out.Array, count(out.Count, "Run", "Runs"))
		return a.waitMany(ctx, c, many{what: out.Array, filter: sdk.RunFilter{Array: out.Array}}, w)
	case len(out.Runs) == 1:
		a.say("%s", out.Runs[0].ID)
		return a.waitOne(ctx, c, out.Runs[0], w)
	}
	return a.showSubmitted(out)
}

// Labels of every Run of a batch, so that they can be listed, waited for and cancelled together.
const (
	batchLabel = "roadctl.batch"
	nameLabel  = "roadctl.name" // its name in the batch
)

func (a *app) submitBatch(ctx context.Context, c *sdk.Client, f *runFlags, s sdk.Submission) error {
	raw, err := os.ReadFile(f.batch)
	if err != nil {
		return err
	}
	var batch api.RunBatch
	if err := strictJSON(raw, &batch); err != nil {
		return usagef("--batch: %s: %v", f.batch, err)
	}
	for i := range batch.Runs {
		labels := map[string]string{batchLabel: s.Key, nameLabel: batch.Runs[i].Name}
		for name, value := range batch.Runs[i].Run.Labels {
			labels[name] = value
		}
		batch.Runs[i].Run.Labels = labels
	}
	out, err := c.SubmitBatch(ctx, batch, s)
	if err != nil {
		return err
	}
	w := f.waiting()
	if !w.wait {
		a.say("find them again with --label %s=%s", batchLabel, s.Key)
		return a.showSubmitted(out)
	}
	a.say("batch %s: %s", s.Key, count(out.Count, "Run", "Runs"))
	return a.waitMany(ctx, c, many{what: "batch " + s.Key, filter: sdk.RunFilter{Labels: map[string]string{batchLabel: s.Key}}}, w)
}

// waiting is what to do after a submit.
type waiting struct {
	wait    bool
	results string // folder; empty: none
}

func (f *runFlags) waiting() waiting {
	return waiting{wait: f.wait || f.results != "", results: f.results}
}

// submitEvents says why a submit takes its time.
func (a *app) submitEvents() func(sdk.Event) {
	return func(e sdk.Event) {
		switch e := e.(type) {
		case sdk.Waiting:
			why := "the server is busy"
			if e.Reason != "" {
				why = reasonWords(e.Reason)
			}
			a.say("not taken yet: %s, asking again in %s", why, span(e.CheckIn))
		case sdk.Retrying:
			a.say("%s", noteWords(e, "", a.now(), a.now()))
		}
	}
}

func (a *app) showSubmitted(out api.Submitted) error {
	if a.flags.output == "json" {
		return a.json(out)
	}
	if out.Array != "" {
		_, err := fmt.Fprintln(a.out, printable(out.Array))
		a.say("%s, indexes %s", count(out.Count, "Run", "Runs"), indexes(out.Runs, out.Count))
		return err
	}
	for _, r := range out.Runs {
		if _, err := fmt.Fprintln(a.out, printable(r.ID)); err != nil {
			return err
		}
	}
	if len(out.Runs) == 1 {
		a.say("%s", runWords(out.Runs[0], a.now()))
	}
	if out.Count > len(out.Runs) {
		a.say("and %d more", out.Count-len(out.Runs))
	}
	return nil
}

func indexes(runs []api.Run, n int) string {
	if len(runs) == 0 || runs[0].Index == nil {
		return "-"
	}
	return fmt.Sprintf("%d-%d", *runs[0].Index, *runs[0].Index+n-1)
}

func (a *app) showDryRun(out api.Submitted) error {
	if a.flags.output == "json" {
		return a.json(out)
	}
	var place api.Place
	if len(out.Runs) > 0 && out.Runs[0].Place != nil {
		place = *out.Runs[0].Place
	}
	place.Reason, place.Detail = "", "" // the blockers say so
	rows := [][2]string{{"runs", itoa(int64(out.Count))}, {"place", placeWords(place, a.now())}, {"cost", "nothing"}}
	if place.CostMicro > 0 {
		rows[2][1] = "at most " + money(place.CostMicro) + " each"
	}
	for _, b := range out.Blocked {
		words := b.Detail
		if words == "" {
			words = reasonWords(b.Reason)
		}
		if b.Until != nil {
			words += ", until " + when(*rounded(b.Until), a.now())
		}
		rows = append(rows, [2]string{"blocked", words})
	}
	return show(a, rows, []string{"DRY RUN", ""}, func(r [2]string) []string { return r[:] })
}

// strictJSON reads JSON and refuses fields that would be a wish silently not met.
func strictJSON(raw []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return err
	}
	if d.More() {
		return fmt.Errorf("more than one JSON value")
	}
	return nil
}
