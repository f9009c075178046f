package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/sdk"
)

func uploadCommand(a *app) *cobra.Command {
	var mediaType string
	var waitLimit spanFlag
	cmd := &cobra.Command{
		Use: "upload SRC... REPO[/PATH]", Short: "Upload files and folders, resumably", Args: cobra.MinimumNArgs(2),
		Long: `Uploads files. One file goes to PATH, or under PATH if that ends with "/"; without PATH it keeps its
name. A folder's content goes under PATH, without the folder's own name. What the server already
has is not sent again, so an interrupted upload goes on when the same command is run again.`,
		Example: "  roadctl upload firmware-7.2.img fleet\n  roadctl upload build/ fleet/nightly/",
		RunE: func(cmd *cobra.Command, args []string) error {
			todo, err := a.plan(args[:len(args)-1], args[len(args)-1])
			if err != nil {
				return err
			}
			for i := range todo {
				todo[i].MediaType, todo[i].WaitLimit = mediaType, time.Duration(waitLimit)
			}
			return a.upload(cmd.Context(), todo)
		},
	}
	cmd.Flags().StringVar(&mediaType, "media-type", "", "media type of the files (default: by their extension)")
	cmd.Flags().Var(&waitLimit, "wait-limit", "give up waiting for a busy server after so long (default: never)")
	return cmd
}

// plan lists what goes where.
func (a *app) plan(sources []string, target string) ([]sdk.Upload, error) {
	repository, prefix, _ := strings.Cut(target, "/")
	if repository == "" {
		return nil, usagef("the target %q must look like REPO or REPO/PATH", target)
	}
	under := len(sources) > 1 || prefix == "" || strings.HasSuffix(prefix, "/")
	var todo []sdk.Upload
	add := func(file, name string) {
		todo = append(todo, sdk.Upload{File: file, Repository: repository, Path: strings.TrimPrefix(path.Join(prefix, name), "/"), StateDir: a.stateDir()})
	}
	for _, src := range sources {
		info, err := os.Stat(src)
		if err != nil {
			return nil, fmt.Errorf("look at what to upload: %w", err)
		}
		switch {
		case info.IsDir():
			err = a.walk(src, add)
		case under:
			add(src, filepath.Base(src))
		default:
			add(src, "")
		}
		if err != nil {
			return nil, err
		}
	}
	return todo, clash(todo)
}

func (a *app) walk(root string, add func(file, name string)) error {
	return filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			a.say("skipped: %s is not a regular file", printable(file))
			return nil
		}
		name, err := filepath.Rel(root, file)
		add(file, filepath.ToSlash(name))
		return err
	})
}

// clash finds two sources for one path before anything is sent.
func clash(todo []sdk.Upload) error {
	seen := map[string]string{}
	for _, u := range todo {
		if other, ok := seen[u.Path]; ok {
			return usagef("%s and %s would both become %s", other, u.File, u.Path)
		}
		seen[u.Path] = u.File
	}
	return nil
}

func (a *app) upload(ctx context.Context, todo []sdk.Upload) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	var stored []sdk.Stored
	for _, u := range todo {
		r := a.report(u.Path)
		u.Events = r.event
		one, err := c.Upload(ctx, u)
		r.close()
		if err != nil {
			note := fmt.Sprintf("%d of %d files are uploaded; to go on, run the same command again", len(stored), len(todo))
			return errors.Join(a.showStored(stored), &keptError{fmt.Errorf("upload %s: %w", printable(u.File), err), note})
		}
		stored = append(stored, one)
	}
	return a.showStored(stored)
}

func (a *app) showStored(stored []sdk.Stored) error {
	if len(stored) == 0 && a.flags.output == "table" {
		return nil
	}
	return show(a, stored, []string{"PATH", "SIZE", "DIGEST", "STATE"}, func(s sdk.Stored) []string {
		state := "stored"
		if s.Unchanged {
			state = "unchanged"
		}
		return []string{s.Repository + "/" + s.Path, amount(s.Size), s.Digest, state}
	})
}
