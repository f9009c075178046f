package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

// read makes the request of the arguments and all flags but the inputs. dash is how many arguments came before --, -1
// without one.
func (f *runFlags) read(a *app, args []string, dash int) error {
	if f.batch != "" {
		return f.onlyBatch(a, args)
	}
	before := args
	if dash >= 0 {
		before, f.n.Command = args[:dash], args[dash:]
	}
	switch {
	case len(before) > 1:
		return usagef("%q: what a command is given comes after --", before[1])
	case len(before) == 1 && f.n.Package != "":
		return usagef("%s and --package %s: name one package", before[0], f.n.Package)
	case len(before) == 1:
		f.n.Package = before[0]
	}
	if f.n.Package == "" && len(f.n.Command) == 0 {
		return usagef("name a package, or a command after --")
	}
	for _, read := range []func(a *app) error{f.readNumbers, f.readPairs, f.readOrder, f.readArray, f.readOutputs} {
		if err := read(a); err != nil {
			return err
		}
	}
	return nil
}

// onlyBatch refuses what a batch says by itself.
func (f *runFlags) onlyBatch(a *app, args []string) error {
	if len(args) > 0 {
		return usagef("--batch and %q: name one of them", args[0])
	}
	for _, name := range []string{"package", "image", "input", "out", "env", "secret", "array", "pool", "class", "priority", "not-before", "timeout", "expected",
		"grace", "slots", "cpu", "memory", "disk", "placement", "retry", "label", "after", "key", "key-policy", "dry-run"} {
		if a.changed(name) {
			return usagef("--%s and --batch: the file says it for each of its Runs", name)
		}
	}
	return nil
}

func (f *runFlags) readNumbers(a *app) error {
	f.n.Timeout, f.n.Expected, f.n.Grace = wholeSeconds(f.timeout), wholeSeconds(f.expected), wholeSeconds(f.grace)
	if f.cpu < 0 || f.cpu > 10_000 {
		return usagef("--cpu must be from 0 to 10000")
	}
	f.n.Resources.MilliCPU, f.n.Resources.MemoryBytes, f.n.Resources.DiskBytes = int64(f.cpu*1000), int64(f.memory), int64(f.disk)
	at, err := parseInstant("not-before", f.notBefore, a.now())
	if err == nil && !at.IsZero() {
		f.n.NotBefore = &at
	}
	return err
}

// wholeSeconds rounds up: less than was asked for would be too little.
func wholeSeconds(d spanFlag) int64 {
	return int64((time.Duration(d) + time.Second - 1) / time.Second)
}

// readPairs reads the flags that look like NAME=VALUE.
func (f *runFlags) readPairs(*app) error {
	for _, p := range []struct {
		flag string
		from []string
		to   *map[string]string
	}{{"env", f.env, &f.n.Env}, {"label", f.labels, &f.n.Labels}, {"placement", f.placement, &f.n.Placement}} {
		pairs, err := pairs(p.flag, p.from)
		if err != nil {
			return err
		}
		*p.to = pairs
	}
	return nil
}

func pairs(flag string, list []string) (map[string]string, error) {
	var out map[string]string
	for _, one := range list {
		name, value, ok := strings.Cut(one, "=")
		if !ok || name == "" {
			return nil, usagef("--%s %q must look like NAME=VALUE", flag, one)
		}
		if out == nil {
			out = map[string]string{}
		}
		if _, twice := out[name]; twice {
			return nil, usagef("--%s gives %s twice", flag, name)
		}
		out[name] = value
	}
	return out, nil
}

// readOrder reads what decides when it may run and how often.
func (f *runFlags) readOrder(*app) error {
	for _, one := range f.after {
		end, run, ok := strings.Cut(one, ":")
		if !ok {
			end, run = "ok", one
		}
		if run == "" || end != "ok" && end != "any" && end != "fail" {
			return usagef("--after %q must look like RUN, ok:RUN, any:RUN or fail:RUN", one)
		}
		f.n.After = append(f.n.After, api.After{Run: run, When: end})
	}
	if f.laneKey != "" {
		f.n.Concurrency = &api.Concurrency{Key: f.laneKey, Policy: f.lanePolicy}
	} else if f.lanePolicy != "" {
		return usagef("--key-policy needs --key")
	}
	if f.retry == "" {
		return nil
	}
	if f.retry == "never" {
		f.n.Retry = &api.Retry{}
		return nil
	}
	failures, losses, two := strings.Cut(f.retry, ",")
	if !two {
		losses = failures
	}
	n, err1 := strconv.ParseUint(failures, 10, 7)
	m, err2 := strconv.ParseUint(losses, 10, 7)
	if err1 != nil || err2 != nil {
		return usagef("--retry must look like 3, or 3,1 for failures and losses, or never")
	}
	f.n.Retry = &api.Retry{Failures: int(n), Losses: int(m)}
	return nil
}

// readArray reads FIRST-LAST[%LIMIT].
func (f *runFlags) readArray(*app) error {
	if f.array == "" {
		return nil
	}
	span, limit, limited := strings.Cut(f.array, "%")
	first, last, isRange := strings.Cut(span, "-")
	if !isRange {
		last = first
	}
	if !limited {
		limit = "0"
	}
	var out api.Array
	for _, n := range []struct {
		text string
		to   *int
	}{{first, &out.First}, {last, &out.Last}, {limit, &out.Limit}} {
		v, err := strconv.ParseUint(n.text, 10, 31)
		if err != nil {
			return usagef("--array must look like 0-99 or 0-99%%10, not %q", f.array)
		}
		*n.to = int(v)
	}
	if out.Last < out.First || limited && out.Limit == 0 {
		return usagef("--array %s has no element that could run", f.array)
	}
	f.n.Array = &out
	return nil
}

func (f *runFlags) readOutputs(*app) error {
	for _, one := range f.outputs {
		name, path, _ := strings.Cut(one, "=")
		if name == "" {
			return usagef("--out %q must look like NAME or NAME=PATH", one)
		}
		f.n.Outputs = append(f.n.Outputs, api.Output{Name: name, Path: path})
	}
	return nil
}

// readInputs reads the inputs. Whether 30 is a number or a text, only the package's manifest knows.
func (f *runFlags) readInputs(ctx context.Context, c *sdk.Client) error {
	if len(f.inputs) == 0 {
		return nil
	}
	f.n.Inputs = map[string]api.Input{}
	texts := map[string]string{}
	for _, one := range f.inputs {
		name, value, ok := strings.Cut(one, "=")
		if _, twice := f.n.Inputs[name]; !ok || name == "" || twice {
			return usagef("--input %q must look like NAME=VALUE, each name once", one)
		}
		switch {
		case strings.HasPrefix(value, "@"):
			f.n.Inputs[name] = api.Input{File: value[1:]}
		case strings.HasPrefix(value, "run:"):
			run, output, ok := strings.Cut(value[len("run:"):], "/")
			if !ok || run == "" || output == "" {
				return usagef("--input %q must look like %s=run:RUN/OUTPUT", one, name)
			}
			f.n.Inputs[name] = api.Input{Result: &api.ResultOf{Run: run, Output: output}}
			f.waitFor(run)
		default:
			f.n.Inputs[name], texts[name] = api.Input{}, value
		}
	}
	types, err := f.inputTypes(ctx, c, texts)
	if err != nil {
		return err
	}
	for name, text := range texts {
		value, err := inputValue(name, text, types[name])
		if err != nil {
			return err
		}
		f.n.Inputs[name] = api.Input{Value: value}
	}
	return nil
}

// waitFor names a Run whose result is taken in after, unless it is there.
func (f *runFlags) waitFor(run string) {
	for _, a := range f.n.After {
		if a.Run == run {
			return
		}
	}
	f.n.After = append(f.n.After, api.After{Run: run, When: "ok"})
}

// inputTypes are the types of a package's inputs; a command's have none.
func (f *runFlags) inputTypes(ctx context.Context, c *sdk.Client, texts map[string]string) (map[string]string, error) {
	if f.n.Package == "" || len(texts) == 0 {
		return nil, nil
	}
	tenant, name, version, err := splitPackage(f.n.Package)
	if err != nil {
		return nil, err
	}
	v, err := c.PackageVersion(ctx, tenant, name, version)
	if err != nil {
		return nil, fmt.Errorf("look up the package's inputs: %w", err)
	}
	types := map[string]string{}
	if v.Manifest != nil {
		for _, in := range v.Manifest.Inputs {
			types[in.Name] = in.Type
		}
	}
	return types, nil
}

// inputValue is a text as a value of the type; a name without a type the server knows better.
func inputValue(name, text, kind string) (json.RawMessage, error) {
	switch kind {
	case "file":
		return nil, usagef("--input %s is a file: %s=@REPO/PATH, or %s=run:RUN/OUTPUT", name, name, name)
	case "int", "number", "bool", "json":
		if !json.Valid([]byte(text)) {
			return nil, usagef("--input %s must be of type %s, not %q", name, kind, text)
		}
		return bytes.TrimSpace([]byte(text)), nil
	}
	return json.Marshal(text)
}
