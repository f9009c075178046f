package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/executor/folder"
)

// look is how often the supervisor looks at the clock, the disk and what the runner has written. Everything it enforces
// itself is late by at most that and the time of one look.
const look = 100 * time.Millisecond

// leaseWarning is how long before the end of a lease TERM comes at most: at its end the payload is dead, not asked.
const leaseWarning = 5 * time.Second

// follow watches until the payload has ended, by itself or by us.
func (w *watch) follow(done <-chan error, terms <-chan os.Signal) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	disk := newMeter(w.folder, w.order.Group)
	for {
		select {
		case err := <-done:
			w.ended(err)
			return
		case <-terms:
			w.end(lifecycle.CancelRequested, "the supervisor was told to stop", w.order.Spec.Grace)
		case <-ticker.C:
			w.check(disk)
		}
	}
}

// check is one look.
func (w *watch) check(disk *meter) {
	now := folder.Uptime()
	if w.ending == "" {
		w.judge(now, disk)
	}
	if until, err := w.folder.Lease(); w.order.Spec.Lease > 0 && (err != nil || now >= until) {
		w.ending = orElse(w.ending, lifecycle.LeaseLost)
		w.killAt = now
	}
	if w.ending != "" && now >= w.killAt {
		w.kill()
	}
}

// judge looks whether there is a reason to end.
func (w *watch) judge(now time.Duration, disk *meter) {
	spec := w.order.Spec
	w.record.Usage.Disk = max(w.record.Usage.Disk, disk.due(spec.Limits.Disk))
	if reason, err := w.folder.Cancelled(); err != nil || reason != "" {
		w.end(orElse(reason, lifecycle.CancelRequested), "", spec.Grace)
	}
	if w.record.Usage.Disk > spec.Limits.Disk {
		w.end(lifecycle.OutOfDisk, fmt.Sprintf("more than %d bytes in what the job writes to", spec.Limits.Disk), 0)
	}
	if w.log.full() {
		w.end(lifecycle.LogLimit, fmt.Sprintf("more than %d bytes of log", spec.Limits.Log), spec.Grace)
	}
	if u, err := w.order.Group.Usage(); err == nil && u.OutOfMemory {
		w.end(lifecycle.OutOfMemory, fmt.Sprintf("more than %d bytes of memory", spec.Limits.Memory), 0)
	}
	if now-w.launched >= spec.Limits.Timeout {
		w.end(lifecycle.TimedOut, fmt.Sprintf("ran for %v", spec.Limits.Timeout), spec.Grace)
	}
	if until, err := w.folder.Lease(); spec.Lease > 0 && err == nil && now >= until-min(spec.Grace, leaseWarning) {
		w.end(lifecycle.LeaseLost, "the runner did not renew the lease", spec.Grace) // KILL at the lease's end at the latest
	}
}

// end begins the end: TERM now to all the job's processes, KILL after the grace. The first reason stays.
func (w *watch) end(reason lifecycle.Reason, detail string, grace time.Duration) {
	if w.ending != "" {
		return
	}
	w.ending, w.record.Detail, w.killAt = reason, detail, folder.Uptime()+grace
	if grace == 0 {
		w.kill()
		return
	}
	pids, err := w.order.Group.Pids()
	if err != nil {
		w.kill() // those who can't be asked are not waited for
		return
	}
	for _, pid := range pids {
		// Not the outer bubblewrap, with which the sandbox dies at once; the inner one is its init and doesn't hear TERM.
		if pid != w.cmd.Process.Pid {
			_ = unix.Kill(pid, unix.SIGTERM) // gone is as good
		}
	}
}

// kill ends the sandbox's init, and with it every process in its namespace.
func (w *watch) kill() {
	if !w.killed {
		_ = w.cmd.Process.Kill() // gone is as good
	}
	w.killed = true
	_ = w.order.Group.Kill(killPatience) // looked at again at the end
}

// ended sorts out what the sandbox's exit says.
func (w *watch) ended(err error) {
	w.record.ExitCode, w.record.Signal = exitOf(err)
	// The last look may have been too early for what ended it.
	u, usageErr := w.order.Group.Usage()
	switch {
	case w.ending != "":
		w.record.Reason = w.ending
	case usageErr == nil && u.OutOfMemory && w.record.ExitCode != 0:
		w.record.Reason, w.record.Detail = lifecycle.OutOfMemory, fmt.Sprintf("more than %d bytes of memory", w.order.Spec.Limits.Memory)
	case w.log.full():
		w.record.Reason, w.record.Detail = lifecycle.LogLimit, fmt.Sprintf("more than %d bytes of log", w.order.Spec.Limits.Log)
	case w.record.Signal == int(unix.SIGXFSZ):
		w.record.Reason, w.record.Detail = lifecycle.OutOfDisk, fmt.Sprintf("a file of more than %d bytes", w.order.Spec.Limits.Disk)
	case w.record.ExitCode == 0:
		w.record.Reason = lifecycle.Done
	case w.record.Signal != 0:
		w.record.Reason, w.record.Detail = lifecycle.Killed, unix.SignalName(syscall.Signal(w.record.Signal))
	default:
		w.record.Reason, w.record.Detail = lifecycle.ExitCode, fmt.Sprintf("exit code %d", w.record.ExitCode)
	}
}

// exitOf reads the payload's exit from bubblewrap's, which says 128+n for signal n as a shell does.
func exitOf(err error) (code, sig int) {
	exit, is := errors.AsType[*exec.ExitError](err)
	if err != nil && !is {
		return -1, 0
	}
	if is {
		code = exit.ExitCode()
	}
	switch {
	case code < 0:
		return -1, int(unix.SIGKILL) // bubblewrap itself was killed, and so was the payload
	case code > 128 && code <= 128+64:
		return -1, code - 128
	}
	return code, 0
}

func orElse(r, other lifecycle.Reason) lifecycle.Reason {
	if r == "" {
		return other
	}
	return r
}
