package cgroup_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/executor/cgroup"
)

var limits = cgroup.Limits{Memory: 32 << 20, CPUMilli: 500, Pids: 20}

// kernelGroup is a group of this machine's kernel; without the right to make one the test can prove nothing.
func kernelGroup(t *testing.T) cgroup.Group {
	t.Helper()
	tree, err := cgroup.Find(cgroup.Host{})
	if err == nil {
		err = tree.Prepare()
	}
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("needs control groups, as root: ", err)
	}
	g, err := tree.Create(fmt.Sprintf("test-%d-%s", os.Getpid(), strings.ToLower(t.Name())), limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Kill(5 * time.Second); err != nil {
			t.Error(err)
		}
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// in starts a shell that waits until it is in the group, and then does what the script says.
func in(t *testing.T, g cgroup.Group, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "read -r _ && "+script)
	gate, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := g.Add(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if _, err := gate.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// Memory beyond the limit is refused by the kernel, which says so; processor time and memory are counted by it.
func TestMemoryLimit(t *testing.T) {
	g := kernelGroup(t)
	if err := in(t, g, "exec head -c 100000000 /dev/zero | tail -c 90000000 >/dev/null; test $? -eq 0").Wait(); err == nil {
		u, err := g.Usage()
		t.Errorf("90 MB in a group of 32: used %+v (%v)", u, err)
	}
	u, err := g.Usage()
	if err != nil || !u.OutOfMemory || u.MemoryPeak < 16<<20 || u.MemoryPeak > 33<<20 || u.User+u.System <= 0 {
		t.Errorf("%+v, %v", u, err)
	}
}

// More processes than allowed can't be started.
func TestPidsLimit(t *testing.T) {
	g := kernelGroup(t)
	cmd := in(t, g, "i=0; while [ $i -lt 40 ]; do sleep 60 & i=$((i+1)); done; wait")
	if err := cmd.Wait(); err == nil {
		t.Error("40 processes in a group of 20")
	}
	pids, err := g.Pids()
	if err != nil || len(pids) > 20 {
		t.Errorf("%d processes, %v", len(pids), err)
	}
}

// A process gets as much processor time as allowed: the kernel's own count of both is compared, not the clock of the test.
func TestProcessorLimit(t *testing.T) {
	g := kernelGroup(t)
	cmd := in(t, g, "read -r up _ </proc/uptime; end=$((${up%.*}+3)); while :; do read -r up _ </proc/uptime; [ ${up%.*} -lt $end ] || exit 0; done")
	from := time.Now()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	u, err := g.Usage()
	if share := float64(u.User+u.System) / float64(time.Since(from)); err != nil || share > 0.6 {
		t.Errorf("used %.2f of a processor; 0.5 was allowed (%v)", share, err)
	}
}

// Kill leaves nobody, whoever daemonised.
func TestKill(t *testing.T) {
	g := kernelGroup(t)
	cmd := in(t, g, "for i in 1 2 3; do setsid sleep 60 & done; echo; setsid sh -c 'sleep 60 & sleep 60 & wait' & wait")
	for {
		pids, err := g.Pids()
		if err != nil {
			t.Fatal(err)
		}
		if len(pids) >= 6 {
			break
		}
	}
	if err := g.Kill(5 * time.Second); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("survived")
	}
	if pids, err := g.Pids(); err != nil || len(pids) != 0 {
		t.Errorf("left: %v, %v", pids, err)
	}
}

// files makes kernel files in a folder as a stand-in for version 2, which this machine may not have.
func files(t *testing.T, dir string, content map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range content {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func unified(t *testing.T, offered string) (cgroup.Tree, string) {
	t.Helper()
	mount := t.TempDir()
	own := filepath.Join(mount, "system.slice/runner.service")
	files(t, mount, map[string]string{"cgroup.controllers": "cpu memory pids io"})
	files(t, own, map[string]string{"cgroup.controllers": offered, "cgroup.subtree_control": "", "cgroup.procs": ""})
	self := filepath.Join(t.TempDir(), "self")
	files(t, filepath.Dir(self), map[string]string{"self": "0::/system.slice/runner.service\n"})
	tree, err := cgroup.Find(cgroup.Host{Mount: mount, Self: self})
	if err != nil {
		t.Fatal(err)
	}
	return tree, own
}

// Under version 2 the limits go into one folder, swap is off and the group dies as one.
func TestUnified(t *testing.T) {
	tree, own := unified(t, "cpuset cpu io memory pids")
	group := filepath.Join(own, "roadstead-att_1")
	kernel := map[string]string{
		"cgroup.procs": "", "memory.max": "max", "memory.swap.max": "max", "memory.oom.group": "0", "cpu.max": "max 100000", "pids.max": "max",
		"cpu.stat": "usage_usec 30\nuser_usec 20\nsystem_usec 10\n", "memory.events": "low 0\noom 2\noom_kill 1\n", "memory.peak": "4096\n",
	}
	files(t, group, kernel)
	g, err := tree.Create("att_1", limits)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Add(4711); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"memory.max": "33554432", "memory.swap.max": "0", "memory.oom.group": "1", "cpu.max": "50000 100000", "pids.max": "20", "cgroup.procs": "4711",
	} {
		if got, err := os.ReadFile(filepath.Join(group, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	u, err := g.Usage()
	if want := (cgroup.Usage{User: 20 * time.Microsecond, System: 10 * time.Microsecond, MemoryPeak: 4096, OutOfMemory: true}); err != nil || u != want {
		t.Errorf("%+v, %v", u, err)
	}
}

// What is not there is named, and nothing runs unlimited because of it.
func TestNothingIsLimitedWhereItCannotBe(t *testing.T) {
	tree, _ := unified(t, "cpuset io memory")
	if err := tree.Prepare(); err == nil || !strings.Contains(err.Error(), "cpu, pids") {
		t.Errorf("without two controllers: %v", err)
	}
	whole, own := unified(t, "cpu memory pids")
	files(t, filepath.Join(own, "roadstead-att_1"), map[string]string{"pids.max": "max", "memory.max": "max"})
	if _, err := whole.Create("att_1", limits); err == nil || !strings.Contains(err.Error(), "cpu.max") {
		t.Errorf("without cpu.max: %v", err)
	}
	for _, l := range []cgroup.Limits{{}, {Memory: 1, CPUMilli: 1}, {Memory: -1, CPUMilli: 1, Pids: 1}} {
		if _, err := whole.Create("att_2", l); err == nil {
			t.Errorf("%+v was accepted", l)
		}
	}
}

// An older kernel's version 1 may show a controller that this process is in no group of.
func TestVersionOneWithoutAController(t *testing.T) {
	mount, self := t.TempDir(), filepath.Join(t.TempDir(), "self")
	for _, c := range []string{"memory", "cpu", "cpuacct"} {
		files(t, filepath.Join(mount, c, "box"), nil)
	}
	files(t, filepath.Dir(self), map[string]string{"self": "3:memory:/box\n2:cpu,cpuacct:/box\n1:pids:/box\n0::/\n"})
	tree, err := cgroup.Find(cgroup.Host{Mount: mount, Self: self})
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Prepare(); err == nil || !strings.Contains(err.Error(), "controllers pids") {
		t.Errorf("without pids: %v", err)
	}
	if dirs := tree.Group("x").Dirs; dirs["memory"] != filepath.Join(mount, "memory/box/roadstead-x") || dirs["cpu"] != filepath.Join(mount, "cpu/box/roadstead-x") {
		t.Errorf("%v", dirs)
	}
}
