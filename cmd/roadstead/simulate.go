package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/sim"
)

// simulateFlags are the options besides the fleet itself.
type simulateFlags struct {
	file, output, html string
	gate               bool
	replays            int
	faults             faultFlags
}

// errGate says that a measure missed its limit; the lines before it say which.
var errGate = errors.New("a measure is over its limit")

// simulateCommand runs a fleet against the download machine on a virtual clock.
func simulateCommand() *cobra.Command {
	cfg, opts := sim.Default(), simulateFlags{}
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Run a fleet of downloads against the queue on a virtual clock",
		Long: `Run a fleet of downloads against the queue on a virtual clock and report beside even sharing.

The queue is the server's own. The same options and seed give the same result, down to the hash.`,
		Example: `  roadstead simulate --clients 1000 --sizes 4GB-20GB --link 1Gbit --seats 4
  roadstead simulate --file fleet.json --html report.html
  roadstead simulate --gate
  roadstead simulate --faults --seeds 1-500 --hours 48
  roadstead simulate --faults --seed 42`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.faults.on {
				opts.faults.seed = cfg.Seed
				return simulateFaults(cmd.Context(), opts.faults, cmd.OutOrStdout())
			}
			for _, flag := range []string{"seeds", "hours", "workers"} {
				if cmd.Flags().Changed(flag) {
					return fault.Invalid("--"+flag, "goes with --faults only")
				}
			}
			if err := readFleet(opts.file, cmd.Flags()); err != nil {
				return err
			}
			return simulate(cmd.Context(), cfg, opts, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fleetFlags(cmd.Flags(), &cfg)
	f := cmd.Flags()
	f.StringVar(&opts.file, "file", "", "read the fleet from a JSON `file` of these flags' names; flags given beside it win")
	f.StringVarP(&opts.output, "output", "o", "table", "what to print: table or json")
	f.StringVar(&opts.html, "html", "", "also write a page with charts to this `file`")
	f.BoolVar(&opts.gate, "gate", false, "check the promises about the document's fleet, a line each; fails if one is missed")
	f.IntVar(&opts.replays, "replay", 20, "with --gate: how often the replayed fleet runs")
	f.BoolVar(&opts.faults.on, "faults", false, "generated fleets in trouble instead: crashes, lost polls, lies, settings; a seed that breaks a rule tells its story")
	f.StringVar(&opts.faults.seeds, "seeds", "", "with --faults: the seeds `A-B` instead of --seed alone")
	f.Float64Var(&opts.faults.hours, "hours", 48, "with --faults: virtual hours of each seed")
	f.IntVar(&opts.faults.workers, "workers", runtime.GOMAXPROCS(0), "with --faults: seeds at once")
	return cmd
}

// fleetFlags are the options a fleet file may hold too.
func fleetFlags(f *pflag.FlagSet, cfg *sim.Config) {
	f.IntVar(&cfg.Clients, "clients", cfg.Clients, "downloads, one client each")
	f.Var(&cfg.Sizes, "sizes", "size of a file, as 8GB or evenly drawn as 4GB-20GB")
	f.Var(&cfg.Link, "link", "the scarce link, as 1Gbit or 40MB (a second)")
	f.IntVar(&cfg.Seats, "seats", cfg.Seats, "sessions that may be active at once")
	f.IntVar(&cfg.Reserve, "reserve", cfg.Reserve, "seats kept for the interactive class; -1: as the server does for so many seats")
	f.IntVar(&cfg.PerPrincipal, "per-principal", cfg.PerPrincipal, "seats of one principal while others wait; 0: as the server does")
	f.IntVar(&cfg.Principals, "principals", cfg.Principals, "principals the clients belong to; 0: one each")
	f.Var(&cfg.Classes, "classes", "classes of the clients, as interactive=0.1,bulk=0.9")
	f.DurationVar(&cfg.Spread, "spread", cfg.Spread, "span over which the first requests come")
	f.DurationVar(&cfg.Latency, "latency", cfg.Latency, "round trip of a client")
	f.Var(&cfg.ClientRate, "client-rate", "highest rate of one client; 0: the link's")
	f.Float64Var(&cfg.Vanish, "vanish", cfg.Vanish, "share of clients that leave for good, in the queue or in mid-file")
	f.Float64Var(&cfg.Stall, "stall", cfg.Stall, "share of clients that fall silent once in mid-file, up to two minutes")
	f.Float64Var(&cfg.Stock, "stock", cfg.Stock, "share of clients without a download id, held by the server")
	f.StringVar(&cfg.Strategy, "strategy", cfg.Strategy, "ordered (the queue) or shared (everybody at once)")
	f.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "seed of every draw")
}

// readFleet sets flags from a JSON object of their names, written as --per-principal or perPrincipal. A flag given on
// the command line wins.
func readFleet(path string, flags *pflag.FlagSet) error {
	if path == "" {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return fault.Invalid("--file", "%v", err)
	}
	defer file.Close()
	var values map[string]any
	d := json.NewDecoder(io.LimitReader(file, 1<<20))
	d.UseNumber()
	if err := d.Decode(&values); err != nil {
		return fault.Invalid("--file", "%s is not a JSON object: %v", path, err)
	}
	known := pflag.NewFlagSet("fleet", pflag.ContinueOnError)
	fleetFlags(known, new(sim.Config))
	for key, value := range values {
		name := kebab(key)
		if known.Lookup(name) == nil {
			return fault.Invalid("--file", "%s has an unknown field %q", path, key)
		}
		switch value.(type) {
		case string, json.Number:
		default:
			return fault.Invalid("--file", "%s: %q must be a string or a number", path, key)
		}
		if flags.Changed(name) {
			continue
		}
		target := flags.Lookup(name).Value
		if err := target.Set(fmt.Sprint(value)); err != nil {
			return fault.Invalid("--file", "%s: %q is not a %s: %v", path, key, target.Type(), err)
		}
	}
	return nil
}

// kebab turns perPrincipal into per-principal.
func kebab(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('-')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// simulate runs and prints what was asked for.
func simulate(ctx context.Context, cfg sim.Config, opts simulateFlags, stdout, stderr io.Writer) error {
	if opts.output != "table" && opts.output != "json" {
		return fault.Invalid("--output", "must be table or json, is %q", opts.output)
	}
	watch, clear := progressLine(stderr, time.Now)
	if opts.gate {
		return simulateGate(ctx, cfg.Seed, opts.replays, watch, clear, stdout)
	}
	if err := cfg.Validate(); err != nil {
		return flagged(err)
	}
	report, err := sim.Run(ctx, cfg, watch)
	clear()
	if err != nil {
		return err
	}
	if opts.html != "" {
		if err := writePage(opts.html, report); err != nil {
			return err
		}
	}
	if opts.output == "json" {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return e.Encode(report)
	}
	return report.WriteTable(stdout)
}

// flagged names the flag of a field at fault.
func flagged(err error) error {
	f := fault.From(err)
	if len(f.Details) == 0 {
		return err
	}
	return fault.Invalid("--"+kebab(f.Details[0].Field), "%s", f.Details[0].Problem)
}

// simulateGate prints a line for each measure and fails if one missed its limit.
func simulateGate(ctx context.Context, seed uint64, replays int, watch sim.Progress, clear func(), stdout io.Writer) error {
	if replays < 1 || replays > 10000 {
		return fault.Invalid("--replay", "must be between 1 and 10000, is %d", replays)
	}
	missed := false
	err := sim.Gate(ctx, seed, replays, watch, func(m sim.Measure) {
		clear()
		fmt.Fprintln(stdout, m)
		missed = missed || !m.OK
	})
	clear()
	if err == nil && missed {
		err = errGate
	}
	return err
}

// writePage writes the report's page, whole or not at all.
func writePage(path string, report sim.Report) error {
	part := path + ".part"
	file, err := os.Create(part)
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	defer os.Remove(part)
	if err := errors.Join(report.WriteHTML(file), file.Close()); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	if err := os.Rename(part, path); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// progressLine gives a watcher that says how far a run is once it takes more than a second, and what wipes the line:
// one line rewritten in place on a terminal, a line every five seconds in a log.
func progressLine(w io.Writer, now func() time.Time) (watch sim.Progress, clear func()) {
	start, last, shown := now(), time.Time{}, false
	every, before, after := 5*time.Second, "", "\n"
	if isTerminal(w) {
		every, before, after = 250*time.Millisecond, "\r\x1b[K", ""
	}
	watch = func(at time.Duration, through, clients int) {
		t := now()
		if t.Sub(start) < time.Second || t.Sub(last) < every {
			return
		}
		last, shown = t, true
		fmt.Fprintf(w, "%ssimulating: %s of fleet time, %d of %d clients through%s", before, at.Round(time.Second), through, clients, after)
	}
	clear = func() {
		if shown {
			fmt.Fprint(w, before)
			shown = false
		}
	}
	return watch, clear
}

// isTerminal says whether w is a terminal.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
