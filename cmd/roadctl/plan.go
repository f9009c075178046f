package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/plan"
)

const planHelp = `Plans the capacity that a stream of Runs needs: from given numbers, without asking a server, or without any
numbers from what the server measured of a pool.

The slots follow from Little's law: rate x duration is what is busy on average; divided by the target load it is
what should be there. A slot is no server: what fits on a node is the least of its CPU, memory, disk and API
calls. Averages say nothing of how long a Run waits. That is a forecast: a random load, played on the machine
that orders Runs. Only a load measurement proves an objective.

  roadctl plan --window 24h
  roadctl plan --per-minute 120 --duration 3m --load 0.7
  roadctl plan --per-minute 120 --duration 3m --cpu 0.5 --memory 2GiB --node-cpu 16 --node-memory 64GiB

Several classes are given as a file:

  {"targetLoad":0.7, "node":{"milliCpu":16000},
   "classes":[{"name":"report","perMinute":120,"seconds":180,"variation":1,"need":{"milliCpu":500}}]}`

// planArgs are the flags of a plan.
type planArgs struct {
	input                   string
	perMinute, load, vary   float64
	duration                spanFlag
	cpu, nodeCPU            float64
	memory, nodeMemory      sizeFlag
	disk, nodeDisk          sizeFlag
	calls, nodeCalls, quota float64
	slots                   int
	seed                    uint64
	averages                bool
	pool                    string
	window                  spanFlag
}

func planCommand(a *app) *cobra.Command {
	var p planArgs
	cmd := &cobra.Command{
		Use: "plan", Short: "Plan slots and nodes for a stream of Runs, measured or given", Long: planHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.live(a.changed) {
				return a.livePlan(cmd.Context(), p)
			}
			in, err := p.read(a.changed)
			if err != nil {
				return err
			}
			return a.makePlan(in, p)
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.input, "input", "", "file with classes, node and target load as JSON, instead of the flags below")
	f.Float64Var(&p.perMinute, "per-minute", 0, "Runs that come each minute")
	f.Var(&p.duration, "duration", "how long one takes, on average")
	f.Float64Var(&p.vary, "variation", 1, "standard deviation of that, in parts of the average; 0: all take the same")
	f.Float64Var(&p.load, "load", 0.7, "target: part of the slots that is busy on average")
	f.Float64Var(&p.cpu, "cpu", 0, "CPUs that one Run takes")
	f.Var(&p.memory, "memory", "memory that one Run takes, for example 2GiB")
	f.Var(&p.disk, "disk", "disk that one Run takes")
	f.Float64Var(&p.calls, "api-calls", 0, "calls a minute of an external API that one Run makes while it runs")
	f.Float64Var(&p.nodeCPU, "node-cpu", 0, "CPUs of a node")
	f.Var(&p.nodeMemory, "node-memory", "memory of a node")
	f.Var(&p.nodeDisk, "node-disk", "disk of a node")
	f.Float64Var(&p.nodeCalls, "node-api-calls", 0, "calls a minute that the API allows a node")
	f.Float64Var(&p.quota, "api-quota", 0, "calls a minute that the API allows all nodes together")
	f.IntVar(&p.slots, "slots", 0, "forecast for this many slots instead of the planned ones")
	f.Uint64Var(&p.seed, "seed", 1, "of the forecast's random load")
	f.StringVar(&p.pool, "pool", "", "measure this pool; default unless given")
	f.Var(&p.window, "window", "measure so far back, from 1h to 7d; a day unless given")
	f.BoolVar(&p.averages, "no-forecast", false, "only the averages")
	return cmd
}

// live reports whether the numbers are the server's: none are given, or what only it can measure is asked for.
func (p planArgs) live(changed func(string) bool) bool {
	if changed("pool") || changed("window") {
		return true
	}
	for _, flag := range append(numberFlags(), "input") {
		if flag != "load" && changed(flag) {
			return false
		}
	}
	return true
}

// numberFlags are those that say what a file would.
func numberFlags() []string {
	return []string{"per-minute", "duration", "variation", "cpu", "memory", "disk", "api-calls", "node-cpu", "node-memory", "node-disk", "node-api-calls", "api-quota", "load"}
}

// read makes the plan's input of the file or the flags.
func (p planArgs) read(changed func(string) bool) (in plan.Input, err error) {
	if p.input == "" {
		if p.perMinute == 0 || p.duration == 0 {
			return in, usagef("give --per-minute and --duration, or --input")
		}
		return plan.Input{
			TargetLoad: p.load, CallsPerMinute: p.quota,
			Node: plan.Amounts{MilliCPU: int64(p.nodeCPU * 1000), MemoryBytes: int64(p.nodeMemory), DiskBytes: int64(p.nodeDisk), CallsPerMinute: p.nodeCalls},
			Classes: []plan.Class{{
				Name: "runs", PerMinute: p.perMinute, Seconds: time.Duration(p.duration).Seconds(), Variation: p.vary,
				Need: plan.Amounts{MilliCPU: int64(p.cpu * 1000), MemoryBytes: int64(p.memory), DiskBytes: int64(p.disk), CallsPerMinute: p.calls},
			}},
		}, nil
	}
	for _, flag := range numberFlags() {
		if changed(flag) {
			return in, usagef("--%s and --input say the same: leave one out", flag)
		}
	}
	raw, err := os.ReadFile(p.input)
	if err != nil {
		return in, err
	}
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&in); err != nil {
		return in, usagef("--input: %v", err)
	}
	return in, nil
}

// planned is the answer as JSON.
type planned struct {
	plan.Result
	Forecast *plan.Forecast `json:"forecast,omitempty"`
}

func (a *app) makePlan(in plan.Input, p planArgs) error {
	result, err := plan.Make(in)
	if err != nil {
		return usagef("%s", fault.From(err).Message)
	}
	out := planned{Result: result}
	if !p.averages {
		slots := result.Slots
		if p.slots > 0 {
			slots = p.slots
		}
		f, err := plan.Play(in, slots, p.seed)
		if err != nil {
			return usagef("no forecast (--no-forecast leaves it out): %s", fault.From(err).Message)
		}
		out.Forecast = &f
	}
	if a.flags.output == "json" {
		return a.json(out)
	}
	return a.showPlan(out, in.TargetLoad)
}

func (a *app) showPlan(p planned, load float64) error {
	err := show(a, p.Classes, []string{"CLASS", "BUSY", "SLOTS", "PER NODE", "BOUND BY"}, func(c plan.ClassPlan) []string {
		perNode, binds := "-", "-"
		if c.PerNode > 0 {
			perNode, binds = strconv.Itoa(c.PerNode), c.Binds
		}
		return []string{c.Name, fmt.Sprintf("%.1f", c.Busy), strconv.Itoa(c.Slots), perNode, binds}
	})
	if err != nil {
		return err
	}
	line := fmt.Sprintf("%d slots for a load of %g: %.1f are busy on average", p.Slots, load, p.Busy)
	if p.Nodes > 0 {
		line += fmt.Sprintf("; %d nodes", p.Nodes)
	}
	if p.Binds != "" {
		line += ", bound by " + p.Binds
	}
	_, _ = fmt.Fprintln(a.out, line)
	for _, note := range p.Notes {
		_, _ = fmt.Fprintln(a.out, "note: "+note)
	}
	if f := p.Forecast; f != nil {
		_, err = fmt.Fprint(a.out, forecastText(*f))
	}
	return err
}

func forecastText(f plan.Forecast) string {
	seconds := func(s float64) string {
		if s < 0.05 {
			return "0 s"
		}
		if s < 10 {
			return fmt.Sprintf("%.1f s", s)
		}
		return span(time.Duration(s * float64(time.Second)))
	}
	if !f.Stable {
		return fmt.Sprintf("forecast: more comes than %d slots can do (load %.2f): waits grow for ever\n", f.Slots, f.Load)
	}
	least, most := f.P95s[0], f.P95s[0]
	for _, v := range f.P95s {
		least, most = min(least, v), max(most, v)
	}
	return fmt.Sprintf("forecast of the wait on %d slots (load %.2f): p50 %s, p95 %s (%s to %s in %d plays), p99 %s\n"+
		"a forecast on a random load, %d Runs, seed %d; the averages above do not give a p95, and neither is proof: measure\n",
		f.Slots, f.Load, seconds(f.Wait.P50), seconds(f.Wait.P95), seconds(least), seconds(most), f.Plays, seconds(f.Wait.P99), f.Runs, f.Seed)
}

// sizeFlag is an amount of bytes: 500MB, 2GiB, or a bare number.
type sizeFlag int64

func (f *sizeFlag) Set(s string) error {
	number, unit := s, int64(1)
	for i, u := range []string{"kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"} {
		if before, ok := strings.CutSuffix(s, u); ok {
			number, unit = before, 1
			for range i%4 + 1 {
				unit *= []int64{1000, 1024}[i/4]
			}
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v >= 0) || v*float64(unit) > 1<<60 {
		return usagef("must look like 500MB, 2GiB or a number of bytes")
	}
	*f = sizeFlag(v * float64(unit))
	return nil
}

func (f *sizeFlag) String() string {
	if f == nil || *f == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*f), 10)
}

func (f *sizeFlag) Type() string { return "bytes" }
