package executor_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/roadstead/roadstead/internal/executor"
	"github.com/roadstead/roadstead/internal/fault"
)

// A limit that can't be enforced makes the executor refuse, with words that say which and what to do (design: Sandbox).
func TestProbeRefuses(t *testing.T) {
	fixture(t)
	for name, c := range map[string]struct {
		change func(*executor.Config)
		says   string
	}{
		"no bubblewrap": {func(c *executor.Config) { c.Bubblewrap = "/no/such/bwrap" }, "bubblewrap is not installed"},
		"old bubblewrap": {func(c *executor.Config) {
			c.Bubblewrap = filepath.Join(t.TempDir(), "bwrap")
			if err := os.WriteFile(c.Bubblewrap, []byte("#!/bin/sh\necho '--unshare-all'\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, "too old"},
		"no controllers": {func(c *executor.Config) {
			c.Cgroups.Mount = t.TempDir()
		}, "does not offer the controllers"},
		"a closed folder above": {func(c *executor.Config) {
			closed := filepath.Join(filepath.Dir(c.Dir), "closed")
			if err := os.Mkdir(closed, 0o700); err != nil {
				t.Fatal(err)
			}
			c.Dir = filepath.Join(closed, "runner")
		}, "lets no other user pass"},
	} {
		t.Run(name, func(t *testing.T) {
			conf := config(t)
			c.change(&conf)
			e, err := executor.New(conf)
			if err != nil {
				t.Fatal(err)
			}
			if r := e.Probe(t.Context()); !strings.Contains(strings.Join(r.Missing, "\n"), c.says) {
				t.Errorf("missing %q", r.Missing)
			}
			if _, err := e.Prepare(t.Context(), "att_1"); !fault.Is(err, fault.CapacityExceeded) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("prepared: %v", err)
			}
		})
	}
}

// Without root and without a delegated control group nothing can be limited, so nothing runs.
func TestProbeWithoutRoot(t *testing.T) {
	fixture(t)
	c := config(t)
	c.Dir = filepath.Join(c.Dir, "nobody")
	if err := os.MkdirAll(c.Dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(c.Dir, 0o777); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(payload, "probe", string(b))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "memory, processor and process limits: ") || !strings.Contains(string(out), "prepare: capacity_exceeded") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Whole, the machine says what it enforces.
func TestProbe(t *testing.T) {
	if r := fixture(t).Probe(t.Context()); len(r.Missing) > 0 || len(r.Enforced) != 4 || r.Bubblewrap == "" {
		t.Errorf("%+v", r)
	}
}
