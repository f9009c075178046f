package main

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

func accountCommand(a *app) *cobra.Command {
	return group("account", "People and service accounts", accountCreate(a, true), accountCreate(a, false), accountList(a), accountSetClass(a), accountSetRole(a))
}

func accountCreate(a *app, person bool) *cobra.Command {
	var in api.NewAccount
	cmd := &cobra.Command{
		Use: "create-service NAME", Short: "Make an account for machines", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			create := c.CreateServiceAccount
			if person {
				create = c.CreateUser
			}
			in.Name = args[0]
			made, err := create(cmd.Context(), in)
			if err != nil {
				return err
			}
			a.say("made %s %s, class %s; give it a key: roadctl key create --account %s NAME", made.Kind, printable(made.Name), made.Class, made.ID)
			return showOne(a, made, "%s", made.ID)
		},
	}
	cmd.Flags().StringVar(&in.Tenant, "tenant", "", "tenant id (default: your own)")
	cmd.Flags().StringVar(&in.Class, "class", "", "highest class of its downloads (default: the highest of its kind)")
	if person {
		cmd.Use, cmd.Short = "create-user NAME", "Make a person's account"
		cmd.Flags().BoolVar(&in.Operator, "operator", false, "may do everything in every tenant")
	}
	return cmd
}

func accountList(a *app) *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use: "ls", Short: "List people and service accounts", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			users, err := collect(c.Users(cmd.Context(), tenant))
			if err != nil {
				return err
			}
			services, err := collect(c.ServiceAccounts(cmd.Context(), tenant))
			if err != nil {
				return err
			}
			return show(a, append(users, services...), []string{"ID", "NAME", "KIND", "CLASS", "POLICY", "STATE"}, func(x api.Account) []string {
				return []string{x.ID, x.Name, x.Kind, x.Class, itoa(x.Revision), accountState(x)}
			})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "tenant id (default: your own)")
	return cmd
}

func accountState(x api.Account) string {
	var words []string
	if x.Operator {
		words = append(words, "operator")
	}
	if x.Role != "" {
		words = append(words, "tenant "+x.Role)
	}
	if x.Disabled {
		words = append(words, "disabled")
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, ", ")
}

func accountSetClass(a *app) *cobra.Command {
	var tenant string
	var revision int64
	cmd := &cobra.Command{
		Use: "set-class ID|NAME CLASS", Short: "Change the highest class of a service account", Args: cobra.ExactArgs(2),
		Long: "Changes the highest class a service account's downloads may use. The change is made to the policy\nrevision that is current now, or to --revision; if someone else changed it meanwhile, it is refused.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			found, err := findService(cmd.Context(), c, tenant, args[0])
			if err != nil {
				return err
			}
			if !a.changed("revision") {
				revision = found.Revision
			}
			changed, err := c.SetClass(cmd.Context(), found.ID, args[1], revision)
			if err != nil {
				return err
			}
			return showOne(a, changed, "%s: class %s, policy revision %d", changed.Name, changed.Class, changed.Revision)
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "tenant id (default: your own)")
	cmd.Flags().Int64Var(&revision, "revision", 0, "policy revision the change was made from")
	return cmd
}

func accountSetRole(a *app) *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use: "set-role ID|NAME member|admin", Short: "Make an account an admin of its tenant, or a member again (operators)", Args: cobra.ExactArgs(2),
		Long: "An admin of a tenant says what the tenant keeps: its secrets, and which packages it shares.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			for _, kind := range []iter.Seq2[api.Account, error]{c.Users(cmd.Context(), tenant), c.ServiceAccounts(cmd.Context(), tenant)} {
				for x, err := range kind {
					if err != nil {
						return err
					}
					if x.ID != args[0] && x.Name != args[0] {
						continue
					}
					changed, err := c.SetTenantRole(cmd.Context(), x, args[1])
					if err != nil {
						return err
					}
					return showOne(a, changed, "%s: tenant role %s, policy revision %d", changed.Name, args[1], changed.Revision)
				}
			}
			return fmt.Errorf("there is no account %q; see \"roadctl account ls\"", args[0])
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "tenant id (default: your own)")
	return cmd
}

func findService(ctx context.Context, c *sdk.Client, tenant, name string) (api.Account, error) {
	for x, err := range c.ServiceAccounts(ctx, tenant) {
		if err != nil {
			return api.Account{}, err
		}
		if x.ID == name || x.Name == name {
			return x, nil
		}
	}
	return api.Account{}, fmt.Errorf("there is no service account %q; see \"roadctl account ls\"", name)
}

// accountHelp adds to a command's help what stands for an account.
func accountHelp(text string) string {
	return text + "\nACCOUNT is an id, or a name in your own tenant."
}

// accountID reads what stands for an account. An id is taken as it is: it may be of another tenant.
func accountID(ctx context.Context, c *sdk.Client, account string) (string, error) {
	if account == "" || len(account) == 36 && strings.Count(account, "-") == 4 {
		return account, nil
	}
	for _, kind := range []iter.Seq2[api.Account, error]{c.Users(ctx, ""), c.ServiceAccounts(ctx, "")} {
		for x, err := range kind {
			if err != nil {
				return "", err
			}
			if x.Name == account {
				return x.ID, nil
			}
		}
	}
	return "", fmt.Errorf("there is no account %q in your tenant; see \"roadctl account ls\"", account)
}
