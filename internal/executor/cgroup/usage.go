package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage reads the group's accounts. They are the kernel's, so nothing a job says about itself is in them.
func (g Group) Usage() (Usage, error) {
	if g.Unified {
		return g.usageUnified()
	}
	user, err1 := g.number("cpuacct", "cpuacct.usage_user")
	system, err2 := g.number("cpuacct", "cpuacct.usage_sys")
	peak, err3 := g.number("memory", "memory.max_usage_in_bytes")
	oom, err4 := g.keyed("memory", "memory.oom_control")
	return Usage{
		User: time.Duration(user), System: time.Duration(system), MemoryPeak: peak, OutOfMemory: oom["oom_kill"] > 0,
	}, errors.Join(err1, err2, err3, err4)
}

func (g Group) usageUnified() (Usage, error) {
	cpu, err1 := g.keyed("cpu", "cpu.stat")
	events, err2 := g.keyed("memory", "memory.events")
	peak, err3 := g.number("memory", "memory.peak")
	return Usage{
		User:        time.Duration(cpu["user_usec"]) * time.Microsecond,
		System:      time.Duration(cpu["system_usec"]) * time.Microsecond,
		MemoryPeak:  peak,
		OutOfMemory: events["oom_kill"] > 0,
	}, errors.Join(err1, err2, err3)
}

// keyed reads a file of "name number" lines.
func (g Group) keyed(controller, file string) (map[string]int64, error) {
	b, err := os.ReadFile(filepath.Join(g.Dirs[controller], file))
	if err != nil {
		return nil, err
	}
	values := map[string]int64{}
	for line := range strings.Lines(string(b)) {
		if name, number, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			if n, err := strconv.ParseInt(number, 10, 64); err == nil {
				values[name] = n
			}
		}
	}
	return values, nil
}
