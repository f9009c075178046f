package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
)

func keyCommand(a *app) *cobra.Command {
	return group("key", "API keys", keyCreate(a), keyList(a), keyRevoke(a))
}

func keyCreate(a *app) *cobra.Command {
	var account string
	var expires spanFlag
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make an API key; it is shown only now", Args: cobra.ExactArgs(1),
		Example: "  roadctl key create laptop --expires 90d > laptop.key",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			id, err := accountID(cmd.Context(), c, account)
			if err != nil {
				return err
			}
			k, err := c.CreateKey(cmd.Context(), id, args[0], time.Duration(expires))
			if err != nil {
				return err
			}
			a.say("key %s of account %s, ends: %s; the key is not shown again", k.ID, k.Account, a.untilWhen(k.ExpiresAt))
			return showOne(a, k, "%s", k.Secret)
		},
	}
	cmd.Flags().StringVar(&account, "account", "", "id, or name in your tenant (default: your own)")
	cmd.Flags().Var(&expires, "expires", "life of the key, for example 12h or 90d (default: until revoked)")
	return cmd
}

func keyList(a *app) *cobra.Command {
	var account string
	cmd := &cobra.Command{
		Use: "ls", Short: "List API keys", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			id, err := accountID(cmd.Context(), c, account)
			if err != nil {
				return err
			}
			keys, err := c.Keys(cmd.Context(), id)
			if err != nil {
				return err
			}
			return show(a, keys, []string{"ID", "NAME", "MADE", "LAST USED", "ENDS", "REVOKED"}, func(k api.Key) []string {
				return []string{k.ID, k.Name, when(k.CreatedAt, a.now()), a.ends(k.LastUsed), a.ends(k.ExpiresAt), a.ends(k.RevokedAt)}
			})
		},
	}
	cmd.Flags().StringVar(&account, "account", "", "id, or name in your tenant (default: your own)")
	return cmd
}

func keyRevoke(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "End an API key at once and for good", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.RevokeKey(cmd.Context(), args[0]); err != nil {
				return err
			}
			a.say("revoked %s", args[0])
			return nil
		},
	}
}
