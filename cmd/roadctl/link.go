package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
)

func linkCommand(a *app) *cobra.Command {
	return group("link", "Share single files by links", linkCreate(a), linkList(a), linkRevoke(a))
}

func linkCreate(a *app) *cobra.Command {
	var expires spanFlag
	cmd := &cobra.Command{
		Use: "create REPO/PATH", Short: "Make a link to a file as it is now", Args: cobra.ExactArgs(1),
		Long: "Makes a link that gives whoever holds it this file, at its current revision, without an account.\nThe address is shown only now.",
		RunE: func(cmd *cobra.Command, args []string) error {
			repository, path, err := splitTarget(args[0])
			if err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			l, err := c.CreateLink(cmd.Context(), repository, path, time.Duration(expires))
			if err != nil {
				return err
			}
			a.say("link %s to revision %d, ends: %s; the address is not shown again", l.ID, l.Revision, a.untilWhen(l.ExpiresAt))
			return showOne(a, l, "%s", l.URL)
		},
	}
	cmd.Flags().Var(&expires, "expires", "life of the link, for example 12h or 30d (default: until revoked)")
	return cmd
}

func linkList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "ls REPO", Short: "List a repository's links", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			links, err := collect(c.Links(cmd.Context(), args[0]))
			if err != nil {
				return err
			}
			return show(a, links, []string{"ID", "PATH", "REV", "MADE", "ENDS", "REVOKED"}, func(l api.ShareLink) []string {
				return []string{l.ID, l.Path, itoa(l.Revision), when(l.CreatedAt, a.now()), a.ends(l.ExpiresAt), a.ends(l.RevokedAt)}
			})
		},
	}
}

func linkRevoke(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "revoke REPO ID", Short: "End a link", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.RevokeLink(cmd.Context(), args[0], args[1]); err != nil {
				return err
			}
			a.say("revoked %s", args[1])
			return nil
		},
	}
}
