package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/roadstead/roadstead/internal/executor/sandbox"
	"github.com/roadstead/roadstead/internal/fault"
)

// Report says what this machine can hold an Attempt to.
type Report struct {
	Enforced   []string // in words
	Missing    []string // in words, with what to do about it; with any, no Attempt is started
	Bubblewrap string   // the path of bwrap
	Privileged bool     // there are no user namespaces here: root makes the sandbox, and inside it becomes the Attempt's user
}

// Probe tries everything that a sandbox needs, the start of one included, and says what works and what is missing. A limit
// is enforced or nothing runs: there is no half of a sandbox.
func (e *Executor) Probe(ctx context.Context) Report {
	var r Report
	var path string
	path, r.Missing = sandbox.Find(e.config.Bubblewrap)
	r.Bubblewrap = path
	if len(r.Missing) == 0 {
		r.Enforced = append(r.Enforced, "files, processes and system calls (bubblewrap, Landlock, seccomp)")
	}
	if err := e.groups.Prepare(); err != nil {
		r.Missing = append(r.Missing, fmt.Sprintf("memory, processor and process limits: %v (run as root, or in a delegated control group of version 2)", err))
	} else {
		r.Enforced = append(r.Enforced, "memory, processor time and number of processes (control groups)")
	}
	if err := e.makeDir(); err != nil {
		r.Missing = append(r.Missing, err.Error())
	}
	if len(r.Missing) == 0 {
		err := e.try(ctx, path, e.privileged)
		if r.Privileged = e.privileged; err != nil && os.Geteuid() == 0 && !e.privileged {
			if e.try(ctx, path, true) == nil {
				r.Privileged, err = true, nil
			}
		}
		if err != nil {
			r.Missing = append(r.Missing, fmt.Sprintf("a sandbox could not be started: %v (are user namespaces allowed? The kernel gives none in a chroot)", err))
		} else {
			r.Enforced = append(r.Enforced, e.identity(), "time, disk and log (supervisor)")
		}
	}
	return r
}

func (e *Executor) identity() string {
	if os.Geteuid() == 0 {
		return fmt.Sprintf("a user of its own for each Attempt (%d to %d)", e.config.FirstUser, int(e.config.FirstUser)+e.config.Users-1)
	}
	return "a user namespace of the runner's own user"
}

// makeDir makes the folder of the Attempts and looks whether their users can get there.
func (e *Executor) makeDir() error {
	if err := os.MkdirAll(e.attempts(), 0o711); err != nil {
		return fmt.Errorf("make the folder of the Attempts: %w", err)
	}
	if os.Geteuid() != 0 {
		return nil
	}
	// Whatever the umask made of it.
	if err := os.Chmod(e.attempts(), 0o711); err != nil {
		return fmt.Errorf("open the folder of the Attempts: %w", err)
	}
	for dir := e.config.Dir; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("look at the folder of the Attempts: %w", err)
		}
		if info.Mode()&0o001 == 0 {
			return fmt.Errorf("the folder %s lets no other user pass (chmod o+x), so an Attempt could not reach its own below it", dir)
		}
		if dir == "/" {
			return nil
		}
	}
}

// try starts a sandbox with nothing in it, as the last of the users.
func (e *Executor) try(ctx context.Context, bubblewrap string, privileged bool) error {
	self, err := os.Open(e.config.Command[0])
	if err != nil {
		return err
	}
	defer self.Close()
	p := sandbox.Plan{Bubblewrap: bubblewrap, Argv: []string{"/bin/true"}, Dir: "/", FileBytes: 1 << 20, Privileged: privileged}
	if os.Geteuid() == 0 {
		p.User = e.config.FirstUser + uint32(e.config.Users) - 1
	}
	cmd, gate, err := sandbox.Command(p, self, append(append([]string{}, e.config.Command[1:]...), stageFlag)...)
	if err != nil {
		return err
	}
	defer gate.Close()
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return err
	}
	gate.Started()
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	err = gate.Open()
	if err == nil {
		err = gate.Result()
	}
	if err := errors.Join(err, cmd.Wait(), ctx.Err()); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	return nil
}

// ready refuses unless a Probe found everything. One that did is not repeated.
func (e *Executor) ready(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.probed != nil {
		return nil
	}
	r := e.Probe(ctx)
	if len(r.Missing) > 0 {
		return fault.New(fault.CapacityExceeded, "this machine can't hold an Attempt to its limits: %s", strings.Join(r.Missing, "; "))
	}
	e.probed = &r
	return nil
}

// report is that of the Probe that found everything.
func (e *Executor) report() Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	return *e.probed
}
