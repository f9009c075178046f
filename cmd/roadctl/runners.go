package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

func runnersCommand(a *app) *cobra.Command {
	cmd := group("runners", "Machines that run Attempts", runnersList(a), runnersShow(a), runnersDrain(a), runnersRevoke(a))
	cmd.Long = "Runners belong to one pool each. A new one registers with a token of \"roadctl pools token POOL\"."
	return cmd
}

func runnersList(a *app) *cobra.Command {
	var pool string
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List runners of the pools that you may change", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				all, err := collect(c.Runners(ctx, pool))
				if err != nil {
					return err
				}
				return show(a, all, []string{"ID", "NAME", "POOL", "STATE", "SLOTS", "ATTEMPTS", "HEARD OF"}, func(r api.Runner) []string {
					return []string{r.ID, r.Name, r.Pool, r.State, fmt.Sprintf("%d of %d", r.Used.Slots, r.Capacity.Slots), fmt.Sprint(r.Attempts), a.ends(r.SeenAt)}
				})
			})
		},
	}
	cmd.Flags().StringVar(&pool, "pool", "", "only of this pool")
	return cmd
}

func runnersShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show RUNNER", Short: "Show a runner", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				r, err := c.Runner(ctx, args[0])
				if err != nil {
					return err
				}
				return a.showRunner(r)
			})
		},
	}
}

func (a *app) showRunner(r api.Runner) error {
	if a.flags.output == "json" {
		return a.json(r)
	}
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		labels = append(labels, name+"="+r.Labels[name])
	}
	rows := [][2]string{
		{"id", r.ID}, {"name", r.Name}, {"pool", r.Pool}, {"state", r.State}, {"slots", fmt.Sprintf("%d of %d", r.Used.Slots, r.Capacity.Slots)},
		{"cpus", fmt.Sprintf("%g of %g", float64(r.Used.MilliCPU)/1000, float64(r.Capacity.MilliCPU)/1000)},
		{"memory", amount(r.Used.MemoryBytes) + " of " + amount(r.Capacity.MemoryBytes)}, {"disk", amount(r.Used.DiskBytes) + " of " + amount(r.Capacity.DiskBytes)},
		{"attempts", fmt.Sprint(r.Attempts)}, {"labels", strings.Join(labels, " ")}, {"version", r.Version}, {"made", when(r.CreatedAt, a.now())}, {"heard of", a.ends(r.SeenAt)},
	}
	return show(a, rows, []string{"RUNNER", ""}, func(row [2]string) []string { return row[:] })
}

func runnersDrain(a *app) *cobra.Command {
	var resume bool
	cmd := &cobra.Command{
		Use: "drain RUNNER", Short: "Give a runner nothing new; what it runs may finish", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				r, err := c.DrainRunner(ctx, args[0], resume)
				if err != nil {
					return err
				}
				return showOne(a, r, "%s: %s, %d still run", r.Name, r.State, r.Attempts)
			})
		},
	}
	cmd.Flags().BoolVar(&resume, "resume", false, "let it take work again")
	return cmd
}

func runnersRevoke(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "revoke RUNNER", Short: "End a runner's key for good; what it runs is lost", Args: cobra.ExactArgs(1),
		Long: "Ends a runner's key at once and for good. What it runs is lost when its leases end, and retried as its policy says.\nTo let it finish first: roadctl runners drain RUNNER.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				if err := c.RevokeRunner(ctx, args[0]); err != nil {
					return err
				}
				a.say("revoked %s", printable(args[0]))
				return nil
			})
		},
	}
}
