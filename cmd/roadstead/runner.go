package main

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/internal/app"
	"github.com/roadstead/roadstead/internal/fault"
)

func runnerCommand() *cobra.Command {
	var o app.RunnerOptions
	var labels []string
	var cpus float64
	var memory, disk, cache string
	var probe bool
	cmd := &cobra.Command{
		Use:   "runner",
		Short: "Run Attempts of a pool on this machine",
		Long: `Run Attempts of a pool on this machine, each in a sandbox under a supervisor of its own.

The first start registers with a token that holds for one runner ("roadctl pools token POOL"); from then on the runner
has a key of its own in its directory. What it isn't told of its capacity is the machine's: a slot for each CPU, three
quarters of the memory, half of the free disk. TERM or Ctrl-C ends the runner; what runs goes on, and the next start
finds it. A machine that can't hold Attempts to their limits is refused, with what it lacks; --probe says only that.

A runner and a server may be one version of their protocol apart, the server being the newer one.`,
		Example: `  roadctl pools token default --token-file token
  roadstead runner --server https://roadstead.example:8443 --dir /var/lib/roadstead-runner --token-file token --slots 8 --label zone=a`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if probe {
				return showProbe(cmd, o.Dir)
			}
			for _, size := range []struct {
				flag, value string
				into        *int64
			}{{"--memory", memory, &o.Capacity.MemoryBytes}, {"--disk", disk, &o.Capacity.DiskBytes}, {"--cache", cache, &o.CacheSize}} {
				if size.value == "" {
					continue
				}
				n, ok := app.ParseSize(size.value)
				if !ok {
					return fault.Invalid(size.flag, "must be a number of bytes such as 8GiB, is %q", size.value)
				}
				*size.into = n
			}
			o.Capacity.MilliCPU = int64(cpus * 1000)
			if o.Labels, err = parseLabels(labels); err != nil {
				return err
			}
			o.Version, o.Log = version, slog.New(slog.NewJSONHandler(os.Stderr, nil))
			r, err := app.OpenRunner(cmd.Context(), o)
			if err != nil {
				return err
			}
			return r.Run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Server, "server", os.Getenv("ROADSTEAD_SERVER"), "the server's `URL` (ROADSTEAD_SERVER)")
	f.StringVar(&o.Dir, "dir", "runner", "`directory` of its key, its cache and its Attempts")
	f.StringVar(&o.Name, "name", "", "its name in lists; the host's unless given")
	f.StringVar(&o.TokenFile, "token-file", os.Getenv("ROADSTEAD_RUNNER_TOKEN_FILE"), "`file` with a token to register with (ROADSTEAD_RUNNER_TOKEN_FILE)")
	f.Int64Var(&o.Capacity.Slots, "slots", 0, "Attempts at once, of one slot each")
	f.Float64Var(&cpus, "cpus", 0, "CPUs for all of them together")
	f.StringVar(&memory, "memory", "", "memory for all of them together, such as 8GiB")
	f.StringVar(&disk, "disk", "", "disk for all of them together")
	f.StringVar(&cache, "cache", "", "disk for packages and images that are kept; 10GiB unless given")
	f.StringArrayVar(&labels, "label", nil, "`NAME=VALUE` that Runs may ask for; may be repeated")
	f.BoolVar(&probe, "probe", false, "say what this machine can hold Attempts to, and end")
	return cmd
}

func parseLabels(given []string) (map[string]string, error) {
	out := map[string]string{}
	for _, l := range given {
		name, value, found := strings.Cut(l, "=")
		if !found || name == "" {
			return nil, fault.Invalid("--label", "must be NAME=VALUE, is %q", l)
		}
		out[name] = value
	}
	return out, nil
}

func showProbe(cmd *cobra.Command, dir string) error {
	report, err := app.Probe(cmd.Context(), dir)
	if err != nil {
		return err
	}
	for _, word := range report.Enforced {
		fmt.Fprintln(cmd.OutOrStdout(), "ok      ", word)
	}
	for _, word := range report.Missing {
		fmt.Fprintln(cmd.OutOrStdout(), "missing ", word)
	}
	if len(report.Missing) > 0 {
		return fault.New(fault.Conflict, "this machine can't hold Attempts to their limits")
	}
	return nil
}
