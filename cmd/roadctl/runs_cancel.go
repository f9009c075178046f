package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/sdk"
)

func runsCancel(a *app) *cobra.Command {
	var f filterFlags
	var yes bool
	cmd := &cobra.Command{
		Use: "cancel RUN... | --label NAME=VALUE --yes", Short: "End Runs", Args: cobra.ArbitraryArgs,
		Long: `Ends a queued Run at once, and asks for the end of an active one: its processes get TERM, and KILL after the Run's
grace. With flags instead of ids it ends every Run that they select and that has not ended; without --yes it only
says how many those are.`,
		Example: "  roadctl runs cancel run_01k9\n  roadctl runs cancel --label sweep=june --state queued --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.read()
			if err != nil {
				return err
			}
			selected := slices.ContainsFunc([]string{"state", "pool", "package", "array", "label"}, a.changed)
			switch {
			case len(args) > 0 && (selected || a.changed("all")):
				return usagef("name Runs, or select them with flags, not both")
			case len(args) == 0 && !selected:
				return usagef("name Runs, or select them with --state, --pool, --package, --array or --label")
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				if len(args) > 0 {
					return a.cancelRuns(ctx, c, args)
				}
				return a.cancelAll(ctx, c, filter, yes)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "do it, for all that the flags select")
	return cmd
}

// cancelRuns cancels each and says what failed with those that did.
func (a *app) cancelRuns(ctx context.Context, c *sdk.Client, ids []string) error {
	var all []error
	for _, id := range ids {
		r, err := c.CancelRun(ctx, id)
		if err != nil {
			all = append(all, err)
			continue
		}
		a.say("%s: %s", r.ID, printable(runWords(r, a.now())))
	}
	return errors.Join(all...)
}

func (a *app) cancelAll(ctx context.Context, c *sdk.Client, filter sdk.RunFilter, yes bool) error {
	byState := len(filter.States) > 0
	if !byState {
		filter.States = []string{"queued", "active"}
	}
	n := 0
	var err error
	switch {
	case !yes || byState:
		n, err = a.cancelEach(ctx, c, filter, yes)
	default:
		filter.States = nil // every call of the server's is about those that have not ended
		n, err = c.CancelRuns(ctx, filter)
	}
	if err != nil {
		return err
	}
	if !yes {
		return usagef("%s would be cancelled; add --yes to do it", count(n, "Run", "Runs"))
	}
	return showOne(a, struct {
		Cancelled int `json:"cancelled"`
	}{n}, "%s cancelled", count(n, "Run", "Runs"))
}

// cancelEach cancels those that are in one of the states at this moment, by their ids, or only counts them.
func (a *app) cancelEach(ctx context.Context, c *sdk.Client, filter sdk.RunFilter, yes bool) (n int, err error) {
	all, err := collect(c.Runs(ctx, filter, 0))
	if err != nil {
		return 0, err
	}
	for _, r := range all {
		if r.State != "queued" && r.State != "active" {
			continue
		}
		if yes {
			if _, err := c.CancelRun(ctx, r.ID); err != nil {
				return n, err
			}
		}
		n++
	}
	return n, nil
}
