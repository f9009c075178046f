package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"

	"github.com/roadstead/roadstead/internal/executor/cgroup"
	"github.com/roadstead/roadstead/internal/executor/folder"
	"github.com/roadstead/roadstead/internal/executor/supervisor"
	"github.com/roadstead/roadstead/internal/fault"
)

// stageFlag asks this program, started by a supervisor inside the sandbox, to become the payload.
const stageFlag = "--enter"

// Start launches a prepared Attempt and returns when its payload runs or can't. A payload that can't start is no error: the
// Attempt is over, and its Record says cannot_start (R10). An error means that nothing was launched, unless ctx ended
// while waiting: then Attach finds out. The supervisor and the payload don't end with ctx.
func (e *Executor) Start(ctx context.Context, s Spec) (*Attempt, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if err := e.ready(ctx); err != nil {
		return nil, err
	}
	f := e.folder(s.AttemptID)
	user, err := e.user(s.AttemptID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Invalid("AttemptID", "was not prepared")
	}
	if err != nil {
		return nil, err
	}
	if _, err := f.Order(); err == nil {
		return nil, fault.New(fault.Conflict, "Attempt %s was started before; attach to it", s.AttemptID)
	}
	if err := e.order(f, s, user); err != nil {
		return nil, err
	}
	return e.supervise(ctx, f, s.Secrets)
}

// order writes down all that the supervisor needs, and makes the group with its limits.
func (e *Executor) order(f folder.Folder, s Spec, user uint32) error {
	group, err := e.groups.Create(s.AttemptID, cgroup.Limits{
		Memory: s.Limits.Memory, CPUMilli: s.Limits.CPUMilli, Pids: s.Limits.Pids + sandboxPids,
	})
	if err != nil {
		return err
	}
	if s.Lease > 0 {
		if err := f.WriteLease(folder.Uptime() + s.Lease); err != nil {
			return errors.Join(err, group.Remove())
		}
	}
	r := e.report()
	order := folder.Order{Spec: s, User: user, Bubblewrap: r.Bubblewrap, Privileged: r.Privileged, Group: group}
	if err := f.WriteOrder(order); err != nil {
		return errors.Join(err, group.Remove())
	}
	return folder.SyncDir(e.attempts())
}

// sandboxPids are bubblewrap's own two processes.
const sandboxPids = 2

// supervise starts the supervisor and hears whether the payload runs.
func (e *Executor) supervise(ctx context.Context, f folder.Folder, secrets map[string][]byte) (*Attempt, error) {
	stage := append(append([]string{}, e.config.Command[1:]...), stageFlag)
	message, err := json.Marshal(supervisor.Message{Folder: f, Secrets: secrets, Stage: stage})
	if err != nil {
		return nil, fmt.Errorf("write the order of the supervisor: %w", err)
	}
	own, err := os.OpenFile(f.SupervisorLog(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the supervisor's log: %w", err)
	}
	defer own.Close()
	answer, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the supervisor's pipe: %w", err)
	}
	defer answer.Close()
	cmd := exec.Command(e.config.Command[0], e.config.Command[1:]...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(message), theirs, own
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what ends the runner's terminal or session doesn't reach it
	err = cmd.Start()
	_ = theirs.Close() // our copy
	if err != nil {
		return nil, fmt.Errorf("start the supervisor: %w", err)
	}
	gone := make(chan struct{})
	e.mu.Lock()
	e.running[f.ID()] = gone
	e.mu.Unlock()
	go func() {
		defer close(gone)
		_ = cmd.Wait() // the folder says how it went
	}()
	stop := context.AfterFunc(ctx, func() { _ = answer.Close() }) // a supervisor that says nothing is not waited for
	defer stop()
	said, err := io.ReadAll(answer)
	if err := errors.Join(ctx.Err(), err); err != nil {
		return nil, fmt.Errorf("hear from the supervisor of Attempt %s: %w", f.ID(), err)
	}
	var a supervisor.Answer
	if err := json.Unmarshal(said, &a); err != nil || !a.Running {
		<-gone // what it has to say is in the folder then
	}
	return e.Attach(f.ID())
}
