package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

func runsWait(a *app) *cobra.Command {
	w := waiting{wait: true}
	cmd := &cobra.Command{
		Use: "wait RUN", Short: "Follow a Run, or all of an array, to the end, and end with the outcome", Args: cobra.ExactArgs(1),
		Long: `Follows a Run as "roadctl run --wait" does: it tells the place and the start while the Run is queued, then passes on
what the Run writes, from its first line, and ends with its outcome. Of an array it tells how many are left.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				if strings.HasPrefix(args[0], "arr_") {
					return a.waitMany(ctx, c, many{what: args[0], filter: sdk.RunFilter{Array: args[0]}}, w)
				}
				r, err := c.Run(ctx, args[0])
				if err != nil {
					return err
				}
				return a.waitOne(ctx, c, r, w)
			})
		},
	}
	cmd.Flags().StringVarP(&w.results, "results", "d", "", "folder to download the results to")
	return cmd
}

// lookEvery is how often one who waits asks where a Run stands.
const lookEvery = 2 * time.Second

// waitOne follows a Run to its end: its place, what it writes, its results.
func (a *app) waitOne(ctx context.Context, c *sdk.Client, r api.Run, w waiting) error {
	goesOn := fmt.Sprintf("%s goes on; look again with \"roadctl runs wait %s\"", r.ID, r.ID)
	s := &screen{a: a}
	looking, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.look(looking, c, r)
	}()
	err := a.follow(ctx, c, r.ID, s.message)
	stop()
	<-done
	s.clear()
	if err != nil {
		return &keptError{err, goesOn}
	}
	if r, err = c.Run(ctx, r.ID); err != nil {
		return &keptError{err, goesOn}
	}
	a.say("%s: %s", r.ID, printable(runWords(r, a.now())))
	if w.results != "" {
		if _, err := a.downloadResults(ctx, c, r, w.results); err != nil {
			return err
		}
	} else if len(r.Results) > 0 {
		a.sayResults(r)
	}
	if a.flags.output == "json" {
		if err := a.json(r); err != nil {
			return err
		}
	}
	return outcome(r.State, "roadctl runs show "+r.ID)
}

// sayResults lists the results of a Run beside what it wrote, which has standard output for itself.
func (a *app) sayResults(r api.Run) {
	for _, one := range r.Results {
		a.say("result %s, %s", printable(one.Name), amount(one.Size))
	}
	a.say("get them with \"roadctl runs results %s --dir DIR\"", r.ID)
}

// many is a set of Runs that is waited for.
type many struct {
	what   string
	filter sdk.RunFilter
}

// waitMany waits until no Run of a set is queued or active.
func (a *app) waitMany(ctx context.Context, c *sdk.Client, m many, w waiting) error {
	goesOn := fmt.Sprintf("%s goes on; look again with \"roadctl runs list%s\"", m.what, filterWords(m.filter))
	s := &screen{a: a}
	for {
		begun := time.Now()
		open := m.filter
		open.States = []string{"queued", "active"}
		left, err := collect(c.Runs(ctx, open, 0))
		if err != nil {
			s.clear()
			return &keptError{err, goesOn}
		}
		if len(left) == 0 {
			break
		}
		s.status(leftWords(left))
		if err := pause(ctx, max(lookEvery, 10*time.Since(begun))); err != nil { // a large set is not asked for without end
			s.clear()
			return &keptError{err, goesOn}
		}
	}
	s.clear()
	all, err := collect(c.Runs(ctx, m.filter, 0))
	if err != nil {
		return &keptError{err, goesOn}
	}
	return a.endMany(ctx, c, m, all, w)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// endMany says how a set ended and fetches its results.
func (a *app) endMany(ctx context.Context, c *sdk.Client, m many, all []api.Run, w waiting) error {
	states := map[string]int{}
	for _, r := range all {
		states[r.State]++
	}
	var words []string
	for _, state := range []string{"succeeded", "failed", "interrupted", "expired", "cancelled"} {
		if n := states[state]; n > 0 {
			words = append(words, strconv.Itoa(n)+" "+state)
		}
	}
	a.say("%s: %s", m.what, strings.Join(words, ", "))
	if w.results != "" {
		for _, r := range all {
			if r.State != "succeeded" {
				continue
			}
			r, err := c.Run(ctx, r.ID)
			if err != nil {
				return err
			}
			if _, err := a.downloadResults(ctx, c, r, filepath.Join(w.results, folderOf(r))); err != nil {
				return err
			}
		}
	}
	if a.flags.output == "json" {
		if err := show(a, all, nil, nil); err != nil {
			return err
		}
	}
	for _, state := range []string{"failed", "interrupted", "expired", "cancelled"} {
		if states[state] > 0 {
			return &outcomeError{state, fmt.Sprintf("%d of %s %s", states[state], count(len(all), "Run", "Runs"), outcomeWords(state, states[state])),
				"roadctl runs list" + filterWords(m.filter) + " --state " + state}
		}
	}
	return nil
}

// folderOf is where the results of a Run of a set go: the name it has in its batch, then its index in its array.
func folderOf(r api.Run) string {
	name := safeName(r.Labels[nameLabel])
	if r.Index != nil {
		return filepath.Join(name, strconv.Itoa(*r.Index))
	}
	if name == "" {
		return safeName(r.ID)
	}
	return name
}

func filterWords(f sdk.RunFilter) string {
	if f.Array != "" {
		return " --array " + f.Array
	}
	s := ""
	for _, name := range sortedNames(f.Labels) {
		s += " --label " + name + "=" + f.Labels[name]
	}
	return s
}

func leftWords(left []api.Run) string {
	queued := 0
	for _, r := range left {
		if r.State == "queued" {
			queued++
		}
	}
	return fmt.Sprintf("%d queued, %d active", queued, len(left)-queued)
}

// outcomeError is a Run, or several, that did not succeed; the exit code says how.
type outcomeError struct{ state, words, look string }

func (e *outcomeError) Error() string { return e.words }

func outcome(state, look string) error {
	if state == "succeeded" {
		return nil
	}
	return &outcomeError{state, "the Run " + outcomeWords(state, 1), look}
}

func outcomeWords(state string, n int) string {
	switch {
	case state == "failed" || state == "expired":
		return state
	case n == 1:
		return "was " + state
	}
	return "were " + state
}
