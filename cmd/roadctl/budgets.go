package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

func budgetsCommand(a *app) *cobra.Command {
	cmd := group("budgets", "Money that tenants may spend on Runs", budgetsShow(a), budgetsSet(a))
	cmd.Long = "A budget is what a tenant may spend on Runs in all. While an Attempt lives, its pool's price for its whole time limit\nis held; at its end what it used is spent. A tenant without a budget has no bound."
	return cmd
}

func budgetsShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show [TENANT]", Short: "Show a budget; your own tenant's without TENANT", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				tenant := ""
				if len(args) > 0 {
					tenant = args[0]
				} else {
					me, err := c.Whoami(ctx)
					if err != nil {
						return err
					}
					tenant = me.Tenant
				}
				b, err := c.Budget(ctx, tenant)
				if err != nil {
					return err
				}
				return a.showBudget(b)
			})
		},
	}
}

func (a *app) showBudget(b api.Budget) error {
	if b.Revision == 0 {
		return showOne(a, b, "%s has no budget, and no bound", b.Tenant)
	}
	left := b.LimitMicro - b.SpentMicro - b.HeldMicro
	over := ""
	if left < 0 {
		left, over = -left, "-"
	}
	return show(a, []api.Budget{b}, []string{"TENANT", "LIMIT", "SPENT", "HELD", "LEFT", "REVISION"}, func(b api.Budget) []string {
		return []string{b.Tenant, money(b.LimitMicro), money(b.SpentMicro), money(b.HeldMicro), over + money(left), itoa(b.Revision)}
	})
}

func budgetsSet(a *app) *cobra.Command {
	var revision int64
	cmd := &cobra.Command{
		Use: "set TENANT AMOUNT", Short: "Set what a tenant may spend in all (operators)", Args: cobra.ExactArgs(2),
		Example: "  roadctl budgets set TENANT 250.50",
		RunE: func(cmd *cobra.Command, args []string) error {
			micro, err := parseMoney(args[1])
			if err != nil {
				return err
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				was, err := c.Budget(ctx, args[0])
				if err != nil {
					return err
				}
				if !a.changed("revision") {
					revision = was.Revision
				}
				now, err := c.SetBudget(ctx, args[0], api.BudgetChange{ExpectedRevision: revision, LimitMicro: micro})
				if err != nil {
					return err
				}
				return a.showBudget(now)
			})
		},
	}
	cmd.Flags().Int64Var(&revision, "revision", 0, "revision the change was made from (default: the current one)")
	return cmd
}

// parseMoney reads an amount with at most six decimals into millionths.
func parseMoney(s string) (int64, error) {
	whole, part, _ := strings.Cut(s, ".")
	n, err := strconv.ParseUint(whole, 10, 40)
	if err != nil || len(part) > 6 {
		return 0, usagef("%q must be an amount such as 250 or 250.50, with at most six decimals", s)
	}
	millionths, err := strconv.ParseUint((part + "000000")[:6], 10, 32)
	if err != nil {
		return 0, usagef("%q must be an amount such as 250 or 250.50, with at most six decimals", s)
	}
	return int64(n)*1_000_000 + int64(millionths), nil
}
