package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/roadstead/roadstead/internal/demo"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/sim"
)

// demoCommand shows the main job: a server, a limited link and a fleet, all in this process.
func demoCommand() *cobra.Command {
	cfg := demo.Config{Version: version}
	var rate sim.Rate
	var size sim.Sizes
	cmd := &cobra.Command{
		Use:   "demo [FILE]",
		Short: "Watch a fleet download a file from a real server over a limited link",
		Long: `Watch a fleet download a file from a real server over a limited link.

Starts a server on a free port of this machine, stores FILE (or one that it makes), and lets a fleet of clients of all
classes download it over HTTP at once. A table shows each client's place, announced start and progress; a summary sets
the result beside even sharing of the same link. Nothing is left behind, however it ends.`,
		Example: `  roadstead demo
  roadstead demo --quick
  roadstead demo debian.iso --clients 40 --seats 2`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fault.Invalid("arguments", "%s takes one file, not %q; see %s --help", cmd.CommandPath(), args, cmd.CommandPath())
			}
			if size.Min != size.Max {
				return fault.Invalid("--size", "must be one size, as 30MB: every client wants the same file")
			}
			cfg.File, cfg.Rate, cfg.Size = strings.Join(args, ""), int64(rate), size.Min
			return runDemo(cmd.Context(), cfg, cmd.OutOrStdout(), os.Getenv)
		},
	}
	f := cmd.Flags()
	f.IntVar(&cfg.Clients, "clients", 0, "clients, one download each (24; 12 with --quick)")
	f.IntVar(&cfg.Seats, "seats", 0, "clients served at once (4; 3 with --quick)")
	f.Var(&rate, "rate", "the link, as 40MB or 1Gbit a second (16MB, or as the file needs)")
	f.Var(&size, "size", "size of the file that is made (as fills the link for 45 s)")
	f.Uint64Var(&cfg.Seed, "seed", 1, "seed of the file's bytes and of the order in which the clients come")
	f.BoolVar(&cfg.Quick, "quick", false, "a run of about ten seconds")
	f.Lookup("rate").DefValue, f.Lookup("size").DefValue = "", "" // chosen to fit: the usage says how
	return cmd
}

// runDemo shows the demo on out. A closed terminal or pipe ends it like Ctrl-C does: with everything cleared away.
func runDemo(ctx context.Context, cfg demo.Config, out io.Writer, env func(string) string) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE) // so that writing to a closed pipe is an error and not the end
	defer signal.Stop(broken)
	err := demo.Run(ctx, cfg, demoScreen(out, env))
	if fault.Is(err, fault.InvalidInput) && fault.From(err).Details[0].Field != "FILE" {
		return flagged(err)
	}
	return err
}

// demoScreen finds out what can be shown on out.
func demoScreen(out io.Writer, env func(string) string) demo.Screen {
	s := demo.Screen{Out: out}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} { // the first that is set decides
		if v := env(name); v != "" {
			v = strings.ToUpper(strings.ReplaceAll(v, "-", ""))
			s.Unicode = strings.Contains(v, "UTF8")
			break
		}
	}
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || env("TERM") == "dumb" {
		return s
	}
	s.Color = env("NO_COLOR") == ""
	s.Size = func() (columns, lines int) {
		columns, lines, err := term.GetSize(int(file.Fd()))
		if err != nil || columns <= 0 || lines <= 0 {
			return 80, 24
		}
		return columns, lines
	}
	return s
}
