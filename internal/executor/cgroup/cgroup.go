// Package cgroup holds a process tree to memory, processor and process counts, and says what it used. It writes the
// kernel's files itself, for both of its interfaces: the libraries for it bring a bus client and an eBPF loader along.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Limits are what a group may use. Each must be above zero.
type Limits struct {
	Memory   int64 // bytes, swap included
	CPUMilli int64 // thousandths of a processor
	Pids     int64 // processes and threads
}

// Usage is what a group has used so far, by the kernel's count.
type Usage struct {
	User, System time.Duration // of processor time
	MemoryPeak   int64         // bytes, the most at one time
	OutOfMemory  bool          // a process was killed for want of memory
}

// Group is one process tree's limits: one folder under version 2, one for each controller under version 1.
type Group struct {
	Unified bool              // version 2
	Dirs    map[string]string // controller -> folder; under version 2 all the same
}

// controllers are those that the limits and the accounts need.
func controllers(unified bool) []string {
	if unified {
		return []string{"memory", "cpu", "pids"}
	}
	return []string{"memory", "cpu", "cpuacct", "pids"}
}

// Create makes the group and sets its limits. A group of that name that a crash left behind is taken over.
func (t Tree) Create(name string, l Limits) (Group, error) {
	g := t.Group(name)
	for _, dir := range g.folders() {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return Group{}, fmt.Errorf("make the control group: %w", err)
		}
	}
	if err := g.limit(l); err != nil {
		return Group{}, errors.Join(err, g.Remove())
	}
	return g, nil
}

// limit writes every limit and reads it back: a kernel that rounds a limit away has not set it.
func (g Group) limit(l Limits) error {
	if l.Memory <= 0 || l.CPUMilli <= 0 || l.Pids <= 0 {
		return fmt.Errorf("limit a control group: %+v leaves something unlimited", l)
	}
	memory, pids := strconv.FormatInt(l.Memory, 10), strconv.FormatInt(l.Pids, 10)
	quota := strconv.FormatInt(max(l.CPUMilli*periodMicros/1000, 1000), 10) // the kernel takes no quota below 1 ms
	if err := g.write("pids", "pids.max", pids); err != nil {
		return err
	}
	if g.Unified {
		return errors.Join(
			g.write("memory", "memory.max", memory),
			g.writeIfThere("memory", "memory.swap.max", "0"),
			g.writeIfThere("memory", "memory.oom.group", "1"),
			g.write("cpu", "cpu.max", quota+" "+strconv.Itoa(periodMicros)),
			g.atMost("memory", "memory.max", l.Memory))
	}
	return errors.Join(
		g.write("memory", "memory.limit_in_bytes", memory),
		g.writeIfThere("memory", "memory.memsw.limit_in_bytes", memory),
		g.writeIfThere("memory", "memory.swappiness", "0"),
		g.write("cpu", "cpu.cfs_period_us", strconv.Itoa(periodMicros)),
		g.write("cpu", "cpu.cfs_quota_us", quota),
		g.atMost("memory", "memory.limit_in_bytes", l.Memory))
}

const periodMicros = 100_000

// Add moves a process into the group; what it starts from then on is born there.
func (g Group) Add(pid int) error {
	for _, dir := range g.folders() {
		if err := put(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("move a process into its control group: %w", err)
		}
	}
	return nil
}

// Pids lists the processes in the group, in no order. A group that is gone has none.
func (g Group) Pids() ([]int, error) {
	var all []int
	for _, dir := range g.folders() {
		b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list the processes of a control group: %w", err)
		}
		for line := range strings.Lines(string(b)) {
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err == nil && pid > 0 && !slices.Contains(all, pid) {
				all = append(all, pid)
			}
		}
	}
	return all, nil
}

// Kill ends every process of the group, again and again until none is left or patience runs out: a process that forks
// while the list is read is in the next list.
func (g Group) Kill(patience time.Duration) error {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		pids, err := g.Pids()
		if err != nil || len(pids) == 0 {
			return err
		}
		if g.Unified {
			_ = g.writeIfThere("memory", "cgroup.kill", "1") // all at once where the kernel can; the loop is for where it can't
		}
		for _, pid := range pids {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("kill process %d: %w", pid, err)
			}
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d processes are still there %v after they were killed", len(pids), patience)
		}
	}
}

// Remove takes the empty group away. The kernel lets go of the last process a moment after it is gone.
func (g Group) Remove() error {
	for _, dir := range g.folders() {
		for try := 0; ; try++ {
			err := os.Remove(dir)
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				break
			}
			if !errors.Is(err, unix.EBUSY) || try == 100 {
				return fmt.Errorf("remove the control group: %w", err)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return nil
}

// folders are the group's folders, each once, in a fixed order.
func (g Group) folders() []string {
	dirs := []string{}
	for _, c := range controllers(g.Unified) {
		if dir := g.Dirs[c]; dir != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func (g Group) write(controller, file, value string) error {
	if err := put(filepath.Join(g.Dirs[controller], file), value); err != nil {
		return fmt.Errorf("set %s: %w", file, err)
	}
	return nil
}

// writeIfThere is for what makes a limit stricter on some kernels and doesn't exist on others.
func (g Group) writeIfThere(controller, file, value string) error {
	err := g.write(controller, file, value)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// atMost checks that the kernel's limit is the one that was asked for, or below by rounding.
func (g Group) atMost(controller, file string, limit int64) error {
	got, err := g.number(controller, file)
	if err != nil {
		return err
	}
	if got > limit || got <= 0 {
		return fmt.Errorf("set %s: the kernel made %d of %d", file, got, limit)
	}
	return nil
}

func (g Group) number(controller, file string) (int64, error) {
	b, err := os.ReadFile(filepath.Join(g.Dirs[controller], file))
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", file, err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", file, err)
	}
	return n, nil
}

// put writes to a file of the kernel's, which must be there already.
func put(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) }
