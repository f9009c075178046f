package plan

import (
	"strings"
	"testing"

	"github.com/roadstead/roadstead/internal/fault"
)

func one(perMinute, seconds float64) Input {
	return Input{TargetLoad: 0.7, Classes: []Class{{Name: "x", PerMinute: perMinute, Seconds: seconds, Variation: 1}}}
}

// Slots by Little's law, the requirement's own figures among them; rounding of floats makes no slot of its own.
func TestSlots(t *testing.T) {
	for _, c := range []struct {
		perMinute, seconds, load float64
		want                     int
	}{
		{120, 180, 0.7, 515}, // 2/s x 180 s = 360; 360/0.7 = 514.3
		{60, 70, 0.7, 100},   // exactly
		{60, 7, 0.7, 10},
		{1, 1, 0.5, 1},
		{600, 0.3, 0.3, 10},
	} {
		in := one(c.perMinute, c.seconds)
		in.TargetLoad = c.load
		got, err := Make(in)
		if err != nil || got.Slots != c.want || got.Nodes != 0 {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}

// Slots are not servers: what fits on a node is the least of CPU, RAM, disk and API calls at once.
func TestNodes(t *testing.T) {
	const gib = 1 << 30
	need := Amounts{MilliCPU: 500, MemoryBytes: 2 * gib, DiskBytes: 5 * gib, CallsPerMinute: 6}
	for _, c := range []struct {
		node    Amounts
		perNode int
		binds   string
		nodes   int
	}{
		{Amounts{MilliCPU: 16000, MemoryBytes: 128 * gib, DiskBytes: 500 * gib, CallsPerMinute: 600}, 32, CPU, 17},
		{Amounts{MilliCPU: 16000, MemoryBytes: 32 * gib, DiskBytes: 500 * gib, CallsPerMinute: 600}, 16, Memory, 33},
		{Amounts{MilliCPU: 16000, MemoryBytes: 128 * gib, DiskBytes: 40 * gib, CallsPerMinute: 600}, 8, Disk, 65},
		{Amounts{MilliCPU: 16000, MemoryBytes: 128 * gib, DiskBytes: 500 * gib, CallsPerMinute: 60}, 10, Calls, 52},
		{Amounts{MilliCPU: 16000}, 32, CPU, 17},
	} {
		in := one(120, 180)
		in.Classes[0].Need, in.Node = need, c.node
		got, err := Make(in)
		if err != nil || got.Classes[0].PerNode != c.perNode || got.Binds != c.binds || got.Nodes != c.nodes {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
	in := one(120, 180)
	in.Classes[0].Need, in.Node = need, Amounts{MilliCPU: 400}
	if _, err := Make(in); !fault.Is(err, fault.InvalidInput) || !strings.Contains(err.Error(), "more cpu than a node has") {
		t.Error(err)
	}
	in.Classes[0].Need = Amounts{}
	if got, err := Make(in); err != nil || got.Nodes != 0 || len(got.Notes) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	in.Node, in.CallsPerMinute, in.Classes[0].Need = Amounts{}, 1080, Amounts{CallsPerMinute: 6}
	if got, err := Make(in); err != nil || got.Binds != Quota || !strings.Contains(got.Notes[0], "carries 180 Runs at once of the 360") {
		t.Errorf("%+v, %v", got, err)
	}
}

// Classes share nodes; the one that takes most of them names what binds.
func TestClassesTogether(t *testing.T) {
	in := Input{TargetLoad: 0.5, Node: Amounts{MilliCPU: 4000, MemoryBytes: 1 << 30}, Classes: []Class{
		{Name: "small", PerMinute: 60, Seconds: 5, Need: Amounts{MilliCPU: 400}},
		{Name: "large", PerMinute: 6, Seconds: 50, Need: Amounts{MilliCPU: 100, MemoryBytes: 1 << 28}},
	}}
	got, err := Make(in)
	if err != nil || got.Slots != 20 || got.Nodes != 4 || got.Binds != Memory || got.Classes[0].Binds != CPU {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestInputsThatAreRefused(t *testing.T) {
	for field, change := range map[string]func(in *Input){
		"targetLoad":                     func(in *Input) { in.TargetLoad = 1 },
		"classes":                        func(in *Input) { in.Classes = nil },
		"classes[0].perMinute":           func(in *Input) { in.Classes[0].PerMinute = -1 },
		"classes[0].seconds":             func(in *Input) { in.Classes[0].Seconds = 0 },
		"classes[0].variation":           func(in *Input) { in.Classes[0].Variation = 11 },
		"classes[0].need.milliCpu":       func(in *Input) { in.Classes[0].Need.MilliCPU = -1 },
		"node.memoryBytes":               func(in *Input) { in.Node.MemoryBytes = -1 },
		"node.diskBytes":                 func(in *Input) { in.Node.DiskBytes = -1 },
		"callsPerMinute":                 func(in *Input) { in.CallsPerMinute = -1 },
		"classes[0].need.callsPerMinute": func(in *Input) { in.Classes[0].Need.CallsPerMinute = -1 },
	} {
		in := one(120, 180)
		change(&in)
		_, err := Make(in)
		if f := fault.From(err); f.Code != fault.InvalidInput || f.Details[0].Field != field {
			t.Errorf("%s: %v", field, err)
		}
		if _, err := Play(in, 10, 1); err == nil {
			t.Errorf("%s: played", field)
		}
	}
}
