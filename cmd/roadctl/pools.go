package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

const poolsHelp = `A pool is runners that share work. Tenants take turns in it by their weights.

  roadctl pools set fast excess=reject tenantSoftDepth=100 priceMicroPerSlotSecond=25
  roadctl pools token fast                    for one runner to register with
  roadctl pools share fast TENANT --weight 300 --max-slots 8
  roadctl pools drain fast --deadline 30m --wait`

const policyHelp = `Makes a pool, or changes what is given of its policy. KEY= takes a value back to its default.

  excess                   over a soft bound: reject, or queue up to the hard one
  tenantSoftDepth          queued Runs of one tenant; tenantHardDepth: above it always refused
  softDepth, hardDepth     the same of all tenants together
  softAgeSeconds           age of a tenant's oldest Run
  maxAgeSeconds            a Run that waited so long expires
  priceMicroPerSlotSecond  millionths of the currency for a second of a slot
  network                  true: payloads may use the network
  defaultTimeoutSeconds, maxTimeoutSeconds
  defaultMemoryBytes, defaultDiskBytes, defaultMilliCpu
  logBytes, pids           limits of one Attempt`

func poolsCommand(a *app) *cobra.Command {
	cmd := group("pools", "Pools of runners: rules, shares, draining", poolsList(a), poolsShow(a), poolsSet(a), poolsDrain(a), poolsResume(a), poolsShares(a),
		poolsShare(a), poolsFairness(a), poolsToken(a), poolsRemove(a))
	cmd.Long = poolsHelp
	return cmd
}

func poolsList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List pools and what they do now", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				all, err := collect(c.Pools(ctx))
				if err != nil {
					return err
				}
				return show(a, all, []string{"POOL", "STATE", "RUNNERS", "SLOTS", "ACTIVE", "QUEUED", "OLDEST"}, func(p api.Pool) []string {
					return []string{p.Name, p.State, fmt.Sprint(p.Runners), slotsOf(p), fmt.Sprint(p.Active), fmt.Sprint(p.Queued), oldest(p)}
				})
			})
		},
	}
}

// slotsOf is how many of a pool's slots are taken.
func slotsOf(p api.Pool) string { return fmt.Sprintf("%d of %d", p.Used.Slots, p.Capacity.Slots) }

func oldest(p api.Pool) string {
	if p.Queued == 0 {
		return "-"
	}
	return span(time.Duration(p.OldestAge * float64(time.Second)))
}

func poolsShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show POOL", Short: "Show a pool and its policy", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				p, err := c.Pool(ctx, args[0])
				if err != nil {
					return err
				}
				return a.showPool(p)
			})
		},
	}
}

func (a *app) showPool(p api.Pool) error {
	if a.flags.output == "json" {
		return a.json(p)
	}
	owner, state := "all tenants", p.State
	if p.Tenant != "" {
		owner = "tenant " + p.Tenant
	}
	if p.DrainBy != nil {
		state += ", what still runs is stopped " + a.ends(p.DrainBy)
	}
	rows := [][2]string{
		{"name", p.Name}, {"revision", itoa(p.Revision)}, {"for", owner}, {"state", state}, {"runners", fmt.Sprint(p.Runners)}, {"slots", slotsOf(p)},
		{"cpus", fmt.Sprintf("%g of %g", float64(p.Used.MilliCPU)/1000, float64(p.Capacity.MilliCPU)/1000)},
		{"memory", amount(p.Used.MemoryBytes) + " of " + amount(p.Capacity.MemoryBytes)},
		{"active", fmt.Sprint(p.Active)}, {"queued", fmt.Sprint(p.Queued)}, {"oldest", oldest(p)},
	}
	set, err := policyTexts(p.Policy)
	if err != nil {
		return err
	}
	holds, err := policyTexts(p.Effective)
	if err != nil {
		return err
	}
	for _, key := range policyKeys() {
		value := holds[key]
		switch _, own := set[key]; {
		case value == "":
			continue // 0 or false, and so by default
		case !own:
			value += " (default)"
		}
		rows = append(rows, [2]string{key, value})
	}
	return show(a, rows, []string{"POOL", ""}, func(r [2]string) []string { return r[:] })
}

// policyKeys are the fields of a policy, in the order they are shown.
func policyKeys() []string {
	return []string{"excess", "tenantSoftDepth", "tenantHardDepth", "softDepth", "hardDepth", "softAgeSeconds", "maxAgeSeconds", "priceMicroPerSlotSecond",
		"network", "defaultTimeoutSeconds", "maxTimeoutSeconds", "defaultMemoryBytes", "defaultDiskBytes", "defaultMilliCpu", "logBytes", "pids"}
}

// policyTexts is each field of a policy as people write it.
func policyTexts(p api.PoolPolicy) (map[string]string, error) {
	raw, err := json.Marshal(p)
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
	return texts, nil
}

// setPolicy writes KEY=VALUE over a policy.
func setPolicy(p *api.PoolPolicy, args []string) error {
	for _, arg := range args {
		key, value, found := strings.Cut(arg, "=")
		if !found {
			return usagef("%q must look like KEY=VALUE", arg)
		}
		if !slices.Contains(policyKeys(), key) {
			return usagef("a pool's policy has no %q; there are %s", key, strings.Join(policyKeys(), ", "))
		}
		switch {
		case key == "excess":
			p.Excess = value
			continue
		case value == "" && key == "network":
			value = "false"
		case value == "":
			value = "0"
		}
		if err := json.Unmarshal([]byte(`{"`+key+`":`+value+`}`), p); err != nil {
			if key == "network" {
				return usagef("network: must be true or false, is %q", value)
			}
			return usagef("%s: must be a whole number, is %q", key, value)
		}
	}
	return nil
}

func poolsSet(a *app) *cobra.Command {
	var tenant string
	var revision int64
	cmd := &cobra.Command{
		Use: "set POOL [KEY=VALUE...]", Short: "Make a pool, or change its policy", Args: cobra.MinimumNArgs(1), Long: policyHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := setPolicy(&api.PoolPolicy{}, args[1:]); err != nil {
				return err // before anything is asked of the server
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				was, err := c.Pool(ctx, args[0])
				if refusal, found := errors.AsType[*sdk.Error](err); found && refusal.Code == "not_found" {
					was, err = api.Pool{}, nil
				}
				if err != nil {
					return err
				}
				change := api.PoolChange{ExpectedRevision: was.Revision, Tenant: tenant, Policy: was.Policy}
				if a.changed("revision") {
					change.ExpectedRevision = revision
				}
				if err := setPolicy(&change.Policy, args[1:]); err != nil {
					return err
				}
				now, err := c.PutPool(ctx, args[0], change)
				if err != nil {
					return err
				}
				return a.showPool(now)
			})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "when it is made: id of the tenant whose own pool it is")
	cmd.Flags().Int64Var(&revision, "revision", 0, "revision the change was made from (default: the current one; 0 makes a pool)")
	return cmd
}

func poolsRemove(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "rm POOL", Short: "Remove a pool that has neither Runs nor runners", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				if err := c.DeletePool(ctx, args[0]); err != nil {
					return err
				}
				a.say("deleted %s", printable(args[0]))
				return nil
			})
		},
	}
}

func poolsToken(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "token POOL", Short: "Make a token with which one runner registers, once", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				t, err := c.NewRunnerToken(ctx, args[0])
				if err != nil {
					return err
				}
				a.say("for one runner of pool %s; it ends %s and is shown only now", printable(t.Pool), a.untilWhen(&t.ExpiresAt))
				return showOne(a, t, "%s", t.Token)
			})
		},
	}
}
