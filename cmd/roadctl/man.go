package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write the manual pages into a folder", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o777); err != nil {
				return fmt.Errorf("make the folder for the manual: %w", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			epoch := time.Unix(0, 0).UTC() // the same pages from the same program, whenever they are made
			if err := doc.GenManTree(root, &doc.GenManHeader{Title: "ROADCTL", Section: "1", Source: "roadctl " + programVersion(), Manual: "Roadstead", Date: &epoch}, args[0]); err != nil {
				return fmt.Errorf("write the manual: %w", err)
			}
			return nil
		},
	}
}

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return showOne(a, map[string]string{"version": programVersion()}, "roadctl %s", programVersion())
		},
	}
}

// version is set by the linker.
var version string

// programVersion is what the linker set, or else what the build recorded: a module version, or the commit.
func programVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}
