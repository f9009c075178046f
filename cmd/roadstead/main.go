// Command roadstead is the server: a store that serves large files to many clients over a scarce link.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/internal/fault"
)

// version is set by the linker.
var version = "devel"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once instead of waiting for the drain
	os.Exit(run(ctx, os.Args[1:]))
}

// run is main without the process.
func run(ctx context.Context, args []string) int {
	root := rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled): // Ctrl-C: whoever pressed it need not be told
		return 130
	}
	fmt.Fprintln(os.Stderr, "roadstead:", describe(err))
	return exitCode(err)
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "roadstead",
		Short:         "Serve large files to a fleet over a scarce link, fairly and honestly",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fault.Invalid("arguments", "%v", err) })
	root.AddCommand(serveCommand(), configCommand(), openapiCommand(), versionCommand(), simulateCommand(), demoCommand(), superviseCommand(), runnerCommand())
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if !cmd.Runnable() { // it only holds others
			cmd.Args, cmd.RunE = noArgs, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	return root
}

// noArgs refuses arguments as a mistake in use.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fault.Invalid("arguments", "%s does not know %q; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return nil
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version)
			return err
		},
	}
}

// describe is what a person reads: a fault's message, and its cause where there is one.
func describe(err error) string {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err.Error()
	}
	if f.Err != nil {
		return f.Message + ": " + f.Err.Error()
	}
	return f.Message
}

// exitCode follows the documented codes: 2 usage, 6 conflict, 8 capacity, 1 everything else.
func exitCode(err error) int {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return 1
	}
	switch f.Code {
	case fault.InvalidInput:
		return 2
	case fault.Conflict:
		return 6
	case fault.CapacityExceeded:
		return 8
	}
	return 1
}
