package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
)

func lsCommand(a *app) *cobra.Command {
	var revisions bool
	cmd := &cobra.Command{
		Use: "ls [REPO[/PREFIX]]", Short: "List repositories, files or a file's revisions", Args: cobra.MaximumNArgs(1),
		Long: "Without an argument lists the repositories you may see, else the files whose path begins with PREFIX.\nWith --revisions lists what REPO/PATH has held, newest first.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listRepositories(cmd.Context())
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			repository, rest, _ := strings.Cut(args[0], "/")
			seq := c.Files(cmd.Context(), repository, rest)
			if revisions {
				if _, _, err := splitTarget(args[0]); err != nil {
					return err
				}
				seq = c.Revisions(cmd.Context(), repository, rest)
			}
			files, err := collect(seq)
			if err != nil {
				return err
			}
			return show(a, files, []string{"PATH", "REV", "SIZE", "CHANGED", "DIGEST"}, func(f api.File) []string {
				if f.Deleted {
					return []string{f.Path, fmt.Sprint(f.Revision), "-", when(f.CreatedAt, a.now()), "deleted"}
				}
				return []string{f.Path, fmt.Sprint(f.Revision), amount(f.Size), when(f.CreatedAt, a.now()), shortDigest(f.Digest)}
			})
		},
	}
	cmd.Flags().BoolVar(&revisions, "revisions", false, "list the revisions of one path")
	return cmd
}

// shortDigest is enough to tell files apart by eye; JSON has the whole.
func shortDigest(d string) string {
	d = strings.TrimPrefix(d, "sha256:")
	return d[:min(12, len(d))]
}

func rmCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "rm REPO/PATH...", Short: "Delete files", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			for _, arg := range args { // all of them are understood before the first is gone
				if _, _, err := splitTarget(arg); err != nil {
					return err
				}
			}
			for _, arg := range args {
				repository, path, _ := strings.Cut(arg, "/")
				if err := c.DeleteFile(cmd.Context(), repository, path); err != nil {
					return fmt.Errorf("delete %s: %w", arg, err)
				}
				a.say("deleted %s", arg)
			}
			return nil
		},
	}
}
