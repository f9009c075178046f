package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

func poolsDrain(a *app) *cobra.Command {
	var deadline spanFlag
	var wait bool
	cmd := &cobra.Command{
		Use: "drain POOL", Short: "Start nothing new in a pool", Args: cobra.ExactArgs(1),
		Long: `Starts nothing new in a pool. What runs may finish, until the deadline if there is one; what is stopped then is
retried elsewhere in time, if its policy says so. What is queued waits until "roadctl pools resume".`,
		Example: "  roadctl pools drain fast --deadline 30m --wait",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				p, err := c.DrainPool(ctx, args[0], api.PoolDrain{DeadlineSeconds: int64(time.Duration(deadline) / time.Second)})
				if err != nil {
					return err
				}
				if wait {
					if p, err = a.waitDrained(ctx, c, p); err != nil {
						return &keptError{err, "the pool goes on draining; end that with \"roadctl pools resume " + p.Name + "\""}
					}
				}
				return showOne(a, p, "%s: %s", p.Name, drainWords(a, p))
			})
		},
	}
	cmd.Flags().Var(&deadline, "deadline", "stop what still runs after this long (default: never)")
	cmd.Flags().BoolVar(&wait, "wait", false, "return when nothing runs any more")
	return cmd
}

func drainWords(a *app, p api.Pool) string {
	if p.State != "draining" {
		return p.State
	}
	s := fmt.Sprintf("draining, %d still run", p.Active)
	if p.DrainBy != nil {
		s += ", what is left is stopped " + a.ends(p.DrainBy)
	}
	return s
}

// waitDrained looks at a pool until nothing runs in it, and tells whenever less does. Somebody who resumes it ends the wait.
func (a *app) waitDrained(ctx context.Context, c *sdk.Client, p api.Pool) (api.Pool, error) {
	told := -1
	for p.State == "draining" {
		if p.Active != told {
			a.say("%s: %s", printable(p.Name), drainWords(a, p))
			told = p.Active
		}
		t := time.NewTimer(lookEvery)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return p, ctx.Err()
		}
		now, err := c.Pool(ctx, p.Name)
		if err != nil {
			return p, err
		}
		p = now
	}
	if p.State != "drained" {
		return p, fmt.Errorf("the pool was resumed: it is %s", p.State)
	}
	return p, nil
}

func poolsResume(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "resume POOL", Short: "Let a drained pool go on", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				p, err := c.DrainPool(ctx, args[0], api.PoolDrain{Resume: true})
				if err != nil {
					return err
				}
				return showOne(a, p, "%s: %s", p.Name, p.State)
			})
		},
	}
}

func poolsShares(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "shares POOL", Short: "List the tenants' weights and caps in a pool", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				all, err := collect(c.PoolShares(ctx, args[0]))
				if err != nil {
					return err
				}
				return show(a, all, []string{"TENANT", "WEIGHT", "MAX SLOTS"}, func(s api.PoolShare) []string {
					return []string{s.Tenant, itoa(s.Weight), capWords(s.MaxSlots)}
				})
			})
		},
	}
}

func capWords(slots int64) string {
	if slots == 0 {
		return "-"
	}
	return itoa(slots)
}

func poolsShare(a *app) *cobra.Command {
	var in api.ShareChange
	cmd := &cobra.Command{
		Use: "share POOL TENANT", Short: "Set a tenant's weight and cap in a pool", Args: cobra.ExactArgs(2),
		Long: "Sets how much of a pool's turns a tenant gets against the others, and how many slots it may hold at once.\nWhat no flag names stays as it is. A tenant without a share has weight 100 and no cap.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !a.changed("weight") && !a.changed("max-slots") {
				return usagef("give --weight, --max-slots or both")
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				was := api.ShareChange{Weight: 100}
				for s, err := range c.PoolShares(ctx, args[0]) {
					if err != nil {
						return err
					}
					if s.Tenant == args[1] {
						was = api.ShareChange{Weight: s.Weight, MaxSlots: s.MaxSlots}
					}
				}
				if !a.changed("weight") {
					in.Weight = was.Weight
				}
				if !a.changed("max-slots") {
					in.MaxSlots = was.MaxSlots
				}
				now, err := c.SetPoolShare(ctx, args[0], args[1], in)
				if err != nil {
					return err
				}
				return showOne(a, now, "%s in %s: weight %d, max slots %s", now.Tenant, now.Pool, now.Weight, capWords(now.MaxSlots))
			})
		},
	}
	cmd.Flags().Int64Var(&in.Weight, "weight", 0, "1 to 10000")
	cmd.Flags().Int64Var(&in.MaxSlots, "max-slots", 0, "slots it may hold at once; 0: no cap")
	return cmd
}

func poolsFairness(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "fairness POOL", Short: "Show how fairly a pool serves its tenants, against the bound", Args: cobra.ExactArgs(1),
		Long: "Shows what each tenant was served, in dominant-share-seconds by its weight, and the largest difference to another\ntenant that waited all the while. The order of Runs promises that it stays within the bound.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				all, err := collect(c.PoolFairness(ctx, args[0]))
				if err != nil {
					return err
				}
				if len(all) > 0 {
					a.say("bound: %s", printable(all[0].Formula))
				}
				return show(a, all, []string{"TENANT", "WEIGHT", "SERVED", "ERROR", "BOUND"}, func(s api.TenantShare) []string {
					return []string{s.Tenant, itoa(s.Weight), fmt.Sprintf("%.3f", s.Served), fmt.Sprintf("%.3f", s.Error), fmt.Sprintf("%.3f", s.Bound)}
				})
			})
		},
	}
}
