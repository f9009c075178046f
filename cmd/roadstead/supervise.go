package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/internal/executor/sandbox"
	"github.com/roadstead/roadstead/internal/executor/supervisor"
)

// superviseCommand is how the executor starts this program again, as the supervisor of one Attempt and as the stage inside
// its sandbox. It is no command for people: what it does comes by pipe.
func superviseCommand() *cobra.Command {
	var enter bool
	cmd := &cobra.Command{
		Use: "supervise", Short: "Stand over one Attempt of a Run", Hidden: true, Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if enter {
				return sandbox.Enter()
			}
			return supervisor.Main(os.Stdin, os.Stdout)
		},
	}
	cmd.Flags().BoolVar(&enter, "enter", false, "become the payload, inside its sandbox")
	return cmd
}
