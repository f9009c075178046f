package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func repoCommand(a *app) *cobra.Command {
	return group("repo", "Repositories and who may use them",
		&cobra.Command{
			Use: "create NAME", Short: "Make a repository, with you as its admin", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				c, err := a.client()
				if err != nil {
					return err
				}
				defer c.Close()
				r, err := c.CreateRepository(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return showOne(a, r, "%s", r.Name)
			},
		},
		&cobra.Command{
			Use: "ls", Short: "List the repositories you may see", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return a.listRepositories(cmd.Context()) },
		},
		&cobra.Command{
			Use: "rm NAME", Short: "Delete an empty repository", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				c, err := a.client()
				if err != nil {
					return err
				}
				defer c.Close()
				if err := c.DeleteRepository(cmd.Context(), args[0]); err != nil {
					return err
				}
				a.say("deleted %s", args[0])
				return nil
			},
		},
		repoGrants(a), repoGrant(a), repoRevoke(a),
	)
}

func (a *app) listRepositories(ctx context.Context) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	repositories, err := collect(c.Repositories(ctx))
	if err != nil {
		return err
	}
	return show(a, repositories, []string{"NAME", "TENANT", "ROLE", "MADE"}, func(r api.Repository) []string {
		return []string{r.Name, r.Tenant, r.Role, when(r.CreatedAt, a.now())}
	})
}

func repoGrants(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "grants REPO", Short: "List who has which role on a repository", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			grants, err := collect(c.Grants(cmd.Context(), args[0]))
			if err != nil {
				return err
			}
			return show(a, grants, []string{"ACCOUNT", "ROLE"}, func(g api.Grant) []string { return []string{g.Account, g.Role} })
		},
	}
}

func repoGrant(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "grant REPO ACCOUNT ROLE", Short: "Give an account exactly this role: read, write or admin", Args: cobra.ExactArgs(3), Long: accountHelp("Gives an account exactly this role on a repository: read, write or admin."),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			id, err := accountID(cmd.Context(), c, args[1])
			if err != nil {
				return err
			}
			if err := c.Grant(cmd.Context(), args[0], id, args[2]); err != nil {
				return err
			}
			a.say("%s has the role %s on %s", args[1], args[2], args[0])
			return nil
		},
	}
}

func repoRevoke(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "revoke REPO ACCOUNT", Short: "Take an account's role away", Args: cobra.ExactArgs(2), Long: accountHelp("Takes an account's role on a repository away."),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			id, err := accountID(cmd.Context(), c, args[1])
			if err != nil {
				return err
			}
			if err := c.RevokeGrant(cmd.Context(), args[0], id); err != nil {
				return err
			}
			a.say("%s has no role on %s any more", args[1], args[0])
			return nil
		},
	}
}
