package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

func runsResults(a *app) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "results RUN [NAME...]", Short: "List the results of a Run, or download them", Args: cobra.MinimumNArgs(1),
		Long: `Lists the results of a Run that succeeded. With --dir it downloads them, or those that are named, into the folder; like
any download it waits its turn, resumes, and puts only verified bytes in place.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				r, err := c.Run(ctx, args[0])
				if err != nil {
					return err
				}
				if r.Results, err = named(r.Results, args[1:]); err != nil {
					return err
				}
				if len(r.Results) == 0 && r.State != "succeeded" {
					a.say("%s has no results: %s", r.ID, printable(runWords(r, a.now())))
				}
				if dir == "" {
					return a.listResults(r.Results)
				}
				all, err := a.downloadResults(ctx, c, r, dir)
				if err != nil {
					return err
				}
				return show(a, all, []string{"FILE", "SIZE", "DIGEST"}, func(f sdk.Result) []string {
					return []string{f.File, amount(f.Size), shortDigest(f.Digest)}
				})
			})
		},
	}
	cmd.Flags().StringVarP(&dir, "dir", "d", "", "folder to download them to")
	return cmd
}

// named are the results of these names; all of them without a name.
func named(all []api.Result, names []string) ([]api.Result, error) {
	if len(names) == 0 {
		return all, nil
	}
	var out []api.Result
	for _, name := range names {
		i := slices.IndexFunc(all, func(r api.Result) bool { return r.Name == name })
		if i < 0 {
			return nil, usagef("the Run has no result %q", name)
		}
		out = append(out, all[i])
	}
	return out, nil
}

func (a *app) listResults(all []api.Result) error {
	return show(a, all, []string{"RESULT", "SIZE", "TYPE", "DIGEST"}, func(r api.Result) []string {
		return []string{r.Name, amount(r.Size), orDash(r.MediaType), shortDigest(r.Digest)}
	})
}

// downloadResults fetches the results of a Run into a folder, each under its name.
func (a *app) downloadResults(ctx context.Context, c *sdk.Client, r api.Run, dir string) (all []sdk.Result, err error) {
	for _, one := range r.Results {
		name := safeName(one.Name)
		if name == "" || name != one.Name {
			return all, fmt.Errorf("the result %q has no name for a file here", one.Name)
		}
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return all, fmt.Errorf("make the folder for results: %w", err)
		}
		file := filepath.Join(dir, name)
		report := a.report(file)
		got, err := c.DownloadResult(ctx, r.ID, one.Name, sdk.Download{File: file, Digest: one.Digest, Events: report.event})
		report.close()
		if err != nil {
			return all, kept(err, file)
		}
		all = append(all, got)
	}
	return all, nil
}

func sortedNames(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
