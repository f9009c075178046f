package main

import (
	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
)

func tenantCommand(a *app) *cobra.Command {
	return group("tenant", "Tenants (operators only)",
		&cobra.Command{
			Use: "create NAME", Short: "Make a tenant", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				c, err := a.client()
				if err != nil {
					return err
				}
				defer c.Close()
				t, err := c.CreateTenant(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return showOne(a, t, "%s", t.ID)
			},
		},
		&cobra.Command{
			Use: "ls", Short: "List tenants", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				c, err := a.client()
				if err != nil {
					return err
				}
				defer c.Close()
				tenants, err := collect(c.Tenants(cmd.Context()))
				if err != nil {
					return err
				}
				return show(a, tenants, []string{"ID", "NAME", "MADE"}, func(t api.Tenant) []string {
					return []string{t.ID, t.Name, when(t.CreatedAt, a.now())}
				})
			},
		},
	)
}
