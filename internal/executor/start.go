package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

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

// supervise gives the Attempt to a supervisor and hears whether the payload runs.
func (e *Executor) supervise(ctx context.Context, f folder.Folder, secrets map[string][]byte) (*Attempt, error) {
	stage := append(append([]string{}, e.config.Command[1:]...), stageFlag)
	message, err := json.Marshal(supervisor.Message{Folder: f, Secrets: secrets, Stage: stage})
	if err != nil {
		return nil, fmt.Errorf("write the order of the supervisor: %w", err)
	}
	p, err := e.commission(ctx, f, message)
	if err != nil {
		return nil, err
	}
	defer func() { go e.prepareNext() }()
	defer p.answer.Close()
	stop := context.AfterFunc(ctx, func() { _ = p.answer.Close() }) // a supervisor that says nothing is not waited for
	defer stop()
	said, err := io.ReadAll(p.answer)
	if err := errors.Join(ctx.Err(), err); err != nil {
		return nil, fmt.Errorf("hear from the supervisor of Attempt %s: %w", f.ID(), err)
	}
	var a supervisor.Answer
	if err := json.Unmarshal(said, &a); err != nil || !a.Running {
		<-p.gone // what it has to say is in the folder then
	}
	return e.Attach(f.ID())
}
