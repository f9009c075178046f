package runs

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
)

// Bounds of a request. They keep what is absurd out; what a pool can hold, its own policy says.
const (
	maxTimeout  = 30 * 24 * 3600
	maxText     = 64 << 10 // of the command and of the environment together
	maxLabels   = 64
	maxLabel    = 200
	maxMemory   = 1 << 44
	maxDisk     = 1 << 50
	maxMilliCPU = 10_000_000
	maxSlots    = 1_000_000
	maxAfter    = 100
)

var (
	envName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	labelName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._/-]{0,61}[a-z0-9])?$`)
	inputName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`)
)

// checkRequest refuses what needs no look at anything else, naming the field.
func checkRequest(n api.NewRun, maxElements int) error {
	for _, check := range []func(api.NewRun) error{checkWhat, checkNumbers, checkTexts, checkInputs, checkOrder} {
		if err := check(n); err != nil {
			return err
		}
	}
	if a := n.Array; a != nil {
		switch {
		case a.First < 0 || a.Last < a.First:
			return fault.Invalid("array.last", "must not be below array.first")
		case a.Last-a.First >= maxElements:
			return fault.Invalid("array.last", "an array has at most %d elements, not %d", maxElements, a.Last-a.First+1)
		case a.Limit < 0:
			return fault.Invalid("array.limit", "must not be negative")
		}
	}
	return nil
}

func checkWhat(n api.NewRun) error {
	switch {
	case n.Package != "" && n.Image != "":
		return fault.Invalid("image", "give a package or an image, not both")
	case n.Package == "" && len(n.Command) == 0:
		return fault.Invalid("command", "give a package, or a command to run")
	case len(n.Command) > 0 && n.Package == "" && n.Command[0] == "":
		return fault.Invalid("command", "the program must not be empty")
	case n.Package != "" && len(n.Outputs) > 0:
		return fault.Invalid("outputs", "a package says its own outputs")
	}
	return nil
}

func checkNumbers(n api.NewRun) error {
	for _, c := range []struct {
		field      string
		value, max int64
	}{
		{"timeoutSeconds", n.Timeout, maxTimeout}, {"expectedSeconds", n.Expected, maxTimeout}, {"graceSeconds", n.Grace, 600},
		{"resources.slots", n.Resources.Slots, maxSlots}, {"resources.milliCpu", n.Resources.MilliCPU, maxMilliCPU},
		{"resources.memoryBytes", n.Resources.MemoryBytes, maxMemory}, {"resources.diskBytes", n.Resources.DiskBytes, maxDisk},
	} {
		if c.value < 0 || c.value > c.max {
			return fault.Invalid(c.field, "must be from 0 to %d, not %d", c.max, c.value)
		}
	}
	if n.Priority < -10 || n.Priority > 10 {
		return fault.Invalid("priority", "must be from -10 to 10, not %d", n.Priority)
	}
	if r := n.Retry; r != nil && (r.Failures < 0 || r.Failures > 100 || r.Losses < 0 || r.Losses > 100 || r.BackoffSeconds < 0 || r.BackoffSeconds > 900) {
		return fault.Invalid("retry", "failures and losses must be from 0 to 100, backoffSeconds from 0 to 900")
	}
	switch n.Class {
	case "", "interactive", "background", "periodic", "build":
		return nil
	}
	return fault.Invalid("class", "must be interactive, background, periodic or build, not %q", n.Class)
}

func checkTexts(n api.NewRun) error {
	size := 0
	for _, arg := range n.Command {
		size += len(arg)
		if strings.ContainsRune(arg, 0) {
			return fault.Invalid("command", "must not have a zero byte")
		}
	}
	for _, name := range sortedKeys(n.Env) {
		size += len(name) + len(n.Env[name])
		switch {
		case !envName.MatchString(name):
			return fault.Invalid("env."+name, "the name must be letters, digits and _, and not begin with a digit")
		case strings.HasPrefix(name, "ROADSTEAD_"):
			return fault.Invalid("env."+name, "names that begin with ROADSTEAD_ are set by the runner")
		case strings.ContainsRune(n.Env[name], 0):
			return fault.Invalid("env."+name, "must not have a zero byte")
		}
	}
	if size > maxText {
		return fault.Invalid("command", "command and environment have %d bytes, at most %d are allowed: put large inputs into files", size, maxText)
	}
	for field, labels := range map[string]map[string]string{"labels": n.Labels, "placement": n.Placement} {
		if len(labels) > maxLabels {
			return fault.Invalid(field, "at most %d are allowed", maxLabels)
		}
		for _, name := range sortedKeys(labels) {
			if !labelName.MatchString(name) || len(labels[name]) > maxLabel {
				return fault.Invalid(field+"."+name, "the name must be lower case letters, digits and . _ / - (63 at most), the value at most %d bytes", maxLabel)
			}
		}
	}
	return nil
}

func checkInputs(n api.NewRun) error {
	for _, name := range sortedKeys(n.Inputs) {
		in, field := n.Inputs[name], "inputs."+name
		given := 0
		for _, is := range []bool{len(in.Value) > 0, in.File != "", in.Result != nil} {
			if is {
				given++
			}
		}
		switch {
		case !inputName.MatchString(name):
			return fault.Invalid(field, "the name must be letters, digits and . _ -")
		case given != 1:
			return fault.Invalid(field, "give exactly one of value, file and result")
		}
	}
	seen := map[string]bool{}
	for i, out := range n.Outputs {
		field := fmt.Sprintf("outputs[%d]", i)
		switch {
		case !inputName.MatchString(out.Name) || seen[out.Name]:
			return fault.Invalid(field+".name", "must be letters, digits and . _ -, and be there once")
		case strings.HasPrefix(out.Path, "/") || slices.Contains(strings.Split(out.Path, "/"), ".."):
			return fault.Invalid(field+".path", "must lie below the output folder")
		}
		seen[out.Name] = true
	}
	return nil
}

func checkOrder(n api.NewRun) error {
	if len(n.After) > maxAfter {
		return fault.Invalid("after", "at most %d are allowed", maxAfter)
	}
	seen := map[string]bool{}
	for i, a := range n.After {
		field := fmt.Sprintf("after[%d]", i)
		switch {
		case a.Run == "" || seen[a.Run]:
			return fault.Invalid(field+".run", "must name a Run or an array, once")
		case a.When != "" && a.When != "ok" && a.When != "any" && a.When != "fail":
			return fault.Invalid(field+".when", "must be ok, any or fail, not %q", a.When)
		}
		seen[a.Run] = true
	}
	if c := n.Concurrency; c != nil {
		switch {
		case c.Key == "" || len(c.Key) > 200:
			return fault.Invalid("concurrency.key", "must have 1 to 200 bytes")
		case c.Policy != "" && c.Policy != "queue" && c.Policy != "replace" && c.Policy != "skip":
			return fault.Invalid("concurrency.policy", "must be queue, replace or skip, not %q", c.Policy)
		case n.Array != nil && c.Policy != "" && c.Policy != "queue":
			return fault.Invalid("concurrency.policy", "the elements of an array can only queue behind each other")
		}
	}
	return nil
}

// text is a value as it stands in its file: a JSON string without its quotes, anything else as it is.
func text(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
