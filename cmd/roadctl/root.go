package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/sdk"
)

// app is what the commands share: the process's edges, and the flags that every command has.
type app struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string
	now      func() time.Time
	inTTY    bool
	outTTY   bool
	errTTY   bool
	http     *http.Client // nil: the SDK's own

	flags   globalFlags
	changed func(flag string) bool
	running bool // arguments were understood; errors from here on are not about usage
}

type globalFlags struct {
	url, keyFile, config, output string
	quiet                        bool
}

const longHelp = `roadctl talks to a Roadstead server: it stores files, shares them, and downloads them through the
server's queue, telling your place and your start while you wait. It submits Runs and follows them.

Settings come from flags, then the environment (ROADSTEAD_URL, ROADSTEAD_API_KEY_FILE,
ROADSTEAD_API_KEY; ROADSTEAD_CONFIG names another settings file), then the file that "roadctl login"
writes; "roadctl config print" shows which. A server whose certificate this machine does not trust:
name the certificate, or that of who signed it, in SSL_CERT_FILE.

The result goes to standard output, progress to standard error.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not signed in or not allowed, 4 network, busy or
deadline, 5 wrong bytes, 6 conflict, 7 local files, 8 no room, 130 interrupted; a Run that was waited
for: 9 interrupted, 10 cancelled, 11 expired.`

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use: "roadctl", Short: "Store, share and download files through a fair queue", Long: longHelp, Version: programVersion(),
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.changed = func(name string) bool { return cmd.Flags().Changed(name) }
			if a.flags.output != "table" && a.flags.output != "json" {
				return usagef("--output must be table or json")
			}
			a.running = true
			return nil
		},
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	f := root.PersistentFlags()
	f.StringVar(&a.flags.url, "url", "", "server address, for example https://store.example")
	f.StringVar(&a.flags.keyFile, "key-file", "", "file that holds the API key")
	f.StringVar(&a.flags.config, "config", "", "settings file (default $XDG_CONFIG_HOME/roadstead/roadctl.json)")
	f.StringVarP(&a.flags.output, "output", "o", "table", "form of the result: table or json")
	f.BoolVarP(&a.flags.quiet, "quiet", "q", false, "no progress on standard error")
	root.AddCommand(loginCommand(a), whoamiCommand(a), uploadCommand(a), downloadCommand(a), lsCommand(a), rmCommand(a),
		linkCommand(a), repoCommand(a), keyCommand(a), accountCommand(a), tenantCommand(a), queueCommand(a), bookCommand(a), settingsCommand(a), packagesCommand(a), secretsCommand(a), runCommand(a), runsCommand(a),
		schedulesCommand(a), poolsCommand(a), runnersCommand(a), budgetsCommand(a), planCommand(a), configCommand(a), manCommand(), versionCommand(a))
	root.InitDefaultCompletionCmd()
	forms(root)
	completions(root)
	return root
}

// run executes one command line and gives the exit code.
func run(ctx context.Context, args []string, a *app) int {
	root := newRoot(a)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.running {
		err = &usageError{err}
	}
	if err != nil && ctx.Err() != nil {
		err = interrupted(err)
	}
	a.explain(err, cmd.CommandPath()+" --help")
	return exitCode(err)
}

// group is a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: onlyHolds}
	cmd.AddCommand(commands...)
	return cmd
}

// onlyHolds is what a command does that only holds others.
func onlyHolds(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return usagef("unknown command %q for %q", args[0], cmd.CommandPath())
}

// forms answers a wrong number of arguments with the right form.
func forms(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if check(cmd, args) != nil {
				return usagef("the form is: %s", cmd.UseLine())
			}
			return nil
		}
	}
	if !cmd.Runnable() && cmd.HasParent() { // that of cobra for completions, which would take any word for a call for help
		cmd.Args, cmd.RunE = cobra.ArbitraryArgs, onlyHolds
	}
	for _, sub := range cmd.Commands() {
		forms(sub)
	}
}

// client makes the SDK's client for the server in the settings.
func (a *app) client() (*sdk.Client, error) {
	s, err := a.settings()
	if err != nil {
		return nil, err
	}
	return a.clientFor(s.url.value, s.key.value)
}

func (a *app) clientFor(url, key string) (*sdk.Client, error) {
	c, err := sdk.New(sdk.Config{URL: url, Key: key, HTTP: a.http, UserAgent: "roadctl/" + programVersion()})
	if err != nil {
		return nil, usagef("%v", err)
	}
	return c, nil
}

// splitTarget reads REPO/PATH.
func splitTarget(s string) (repository, path string, err error) {
	repository, path, ok := strings.Cut(s, "/")
	if !ok || repository == "" || path == "" {
		return "", "", usagef("%q must look like REPO/PATH", s)
	}
	return repository, path, nil
}
