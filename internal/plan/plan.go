// Package plan says how much capacity a stream of Runs needs: slots by Little's law, nodes by what binds them, and a
// forecast of the queue by the machine that will run it.
package plan

import (
	"fmt"
	"math"

	"github.com/roadstead/roadstead/internal/fault"
)

// Amounts is what one Run takes while it runs, or what one node has of it. What is 0 in a node does not bind.
type Amounts struct {
	MilliCPU       int64   `json:"milliCpu,omitempty"`
	MemoryBytes    int64   `json:"memoryBytes,omitempty"`
	DiskBytes      int64   `json:"diskBytes,omitempty"`
	CallsPerMinute float64 `json:"callsPerMinute,omitempty"` // of an external API
}

// Class is one kind of Run.
type Class struct {
	Name      string  `json:"name"`
	PerMinute float64 `json:"perMinute"` // Runs that come
	Seconds   float64 `json:"seconds"`   // that one takes, on average
	Variation float64 `json:"variation"` // standard deviation of that time, in parts of its average; 0: all take the same
	Need      Amounts `json:"need"`
}

// Input is what a plan is made of: given by hand, or measured from the Runs of each class.
type Input struct {
	Classes    []Class `json:"classes"`
	TargetLoad float64 `json:"targetLoad"` // part of the slots that is busy on average
	Node       Amounts `json:"node"`       // all 0: no nodes are reckoned
	// CallsPerMinute is the quota of the external API over all nodes; 0: none is known.
	CallsPerMinute float64 `json:"callsPerMinute,omitempty"`
}

// The bounds of an input.
const (
	maxClasses = 100
	maxRate    = 1e7         // Runs a minute
	maxSeconds = 90 * 86_400 // of one Run
)

// ClassPlan is what one class needs.
type ClassPlan struct {
	Name    string  `json:"name"`
	Busy    float64 `json:"busy"`              // L = rate x duration: slots busy on average
	Slots   int     `json:"slots"`             // at least L / target load
	PerNode int     `json:"perNode,omitempty"` // slots that fit on a node; 0: no nodes are reckoned
	Binds   string  `json:"binds,omitempty"`   // the resource that allows no more of them
}

// Result is a plan. It holds averages only: nothing in it says how long a Run waits, p95 least of all.
type Result struct {
	Classes []ClassPlan `json:"classes"`
	Busy    float64     `json:"busy"`
	Slots   int         `json:"slots"`
	Nodes   int         `json:"nodes,omitempty"`
	Binds   string      `json:"binds,omitempty"` // what to have more of, to need fewer nodes; or the API's quota, when nodes can't help
	Notes   []string    `json:"notes,omitempty"`
}

// Names of what binds.
const (
	CPU    = "cpu"
	Memory = "memory"
	Disk   = "disk"
	Calls  = "api_calls"
	Quota  = "api_quota"
)

// Validate names the first field that cannot be.
func (in Input) Validate() error {
	if in.TargetLoad <= 0 || in.TargetLoad >= 1 || math.IsNaN(in.TargetLoad) {
		return fault.Invalid("targetLoad", "must be between 0 and 1, both excluded: at 1 the queue never ends")
	}
	if len(in.Classes) == 0 || len(in.Classes) > maxClasses {
		return fault.Invalid("classes", "must be 1 to %d", maxClasses)
	}
	if !(in.CallsPerMinute >= 0) || math.IsInf(in.CallsPerMinute, 0) {
		return fault.Invalid("callsPerMinute", "must not be negative")
	}
	if err := in.Node.validate("node"); err != nil {
		return err
	}
	for i, c := range in.Classes {
		field := fmt.Sprintf("classes[%d]", i)
		switch {
		case !(c.PerMinute > 0 && c.PerMinute <= maxRate):
			return fault.Invalid(field+".perMinute", "must be above 0, up to %g", float64(maxRate))
		case !(c.Seconds > 0 && c.Seconds <= maxSeconds):
			return fault.Invalid(field+".seconds", "must be above 0, up to %d", maxSeconds)
		case !(c.Variation >= 0 && c.Variation <= 10):
			return fault.Invalid(field+".variation", "must be between 0 and 10")
		}
		if err := c.Need.validate(field + ".need"); err != nil {
			return err
		}
	}
	return nil
}

func (a Amounts) validate(field string) error {
	switch {
	case a.MilliCPU < 0:
		return fault.Invalid(field+".milliCpu", "must not be negative")
	case a.MemoryBytes < 0:
		return fault.Invalid(field+".memoryBytes", "must not be negative")
	case a.DiskBytes < 0:
		return fault.Invalid(field+".diskBytes", "must not be negative")
	case !(a.CallsPerMinute >= 0) || math.IsInf(a.CallsPerMinute, 0):
		return fault.Invalid(field+".callsPerMinute", "must not be negative")
	}
	return nil
}

// Make plans: slots >= rate x duration / target load for each class, and the nodes they fit on. Slots of several classes
// share nodes in proportion, as if they were a liquid; the parts that don't fit at the end of a node are not seen.
func Make(in Input) (Result, error) {
	if err := in.Validate(); err != nil {
		return Result{}, err
	}
	var out Result
	nodes, calls := 0.0, 0.0
	largest := 0.0
	for i, c := range in.Classes {
		p := ClassPlan{Name: c.Name, Busy: c.PerMinute / 60 * c.Seconds}
		p.Slots = ceil(p.Busy / in.TargetLoad)
		calls += p.Busy * c.Need.CallsPerMinute
		if in.Node != (Amounts{}) {
			if p.PerNode, p.Binds = fit(in.Node, c.Need); p.PerNode == 0 && p.Binds != "" {
				return Result{}, fault.Invalid(fmt.Sprintf("classes[%d].need", i), "one Run needs more %s than a node has", p.Binds)
			}
		}
		if p.PerNode > 0 {
			part := float64(p.Slots) / float64(p.PerNode)
			if nodes += part; part > largest {
				largest, out.Binds = part, p.Binds
			}
		}
		out.Busy += p.Busy
		out.Slots += p.Slots
		out.Classes = append(out.Classes, p)
	}
	out.Nodes = ceil(nodes)
	if in.Node != (Amounts{}) && out.Binds == "" {
		out.Notes = append(out.Notes, "no need of a Run is given that a node has: how many fit on one is not known")
	}
	if q := in.CallsPerMinute; q > 0 && calls > q {
		out.Binds = Quota
		out.Notes = append(out.Notes, fmt.Sprintf("the API's quota of %.4g calls a minute carries %.4g Runs at once of the %.4g that come: more nodes do not help",
			q, out.Busy*q/calls, out.Busy))
	}
	return out, nil
}

// fit is how many Runs of a need fit on a node, and what allows no more. Without a need that the node has, that is not known.
func fit(node, need Amounts) (n int, binds string) {
	best := math.Inf(1)
	for _, r := range []struct {
		name      string
		has, take float64
	}{
		{CPU, float64(node.MilliCPU), float64(need.MilliCPU)}, {Memory, float64(node.MemoryBytes), float64(need.MemoryBytes)},
		{Disk, float64(node.DiskBytes), float64(need.DiskBytes)}, {Calls, node.CallsPerMinute, need.CallsPerMinute},
	} {
		if r.has > 0 && r.take > 0 && math.Floor(r.has/r.take*(1+slack)) < best {
			best, binds = math.Floor(r.has/r.take*(1+slack)), r.name
		}
	}
	if binds == "" {
		return 0, ""
	}
	return int(min(best, 1e6)), binds
}

// slack is how far a quotient may be off by the rounding of floats.
const slack = 1e-12

func ceil(x float64) int { return int(math.Ceil(x * (1 - slack))) }
