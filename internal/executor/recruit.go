package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/roadstead/roadstead/internal/executor/folder"
)

// recruit is a supervisor that was started and has no Attempt yet. It ends with whoever holds the other end of its pipe.
type recruit struct {
	pid        int
	in, answer *os.File
	gone       chan struct{} // closed when the process has ended
}

// newRecruit starts this program as a supervisor.
func (e *Executor) newRecruit() (*recruit, error) {
	order, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the supervisor's pipe: %w", err)
	}
	answer, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the supervisor's pipe: %w", err), order.Close(), in.Close())
	}
	cmd := exec.Command(e.config.Command[0], e.config.Command[1:]...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Stdin, cmd.Stdout = order, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what ends the runner's terminal or session doesn't reach it
	err = cmd.Start()
	_, _ = order.Close(), out.Close() // our copies
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the supervisor: %w", err), in.Close(), answer.Close())
	}
	r := &recruit{pid: cmd.Process.Pid, in: in, answer: answer, gone: make(chan struct{})}
	go func() {
		defer close(r.gone)
		_ = cmd.Wait() // the folder says how it went
	}()
	return r, nil
}

// prepareNext sees to it that a supervisor is ready for the next Attempt: much of what a short one waits for is the start
// of a process.
func (e *Executor) prepareNext() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.next != nil && !e.next.isGone() {
		return
	}
	e.dismissLocked()
	if r, err := e.newRecruit(); err == nil {
		e.next = r
	} // otherwise the next Attempt starts its own, and says why it can't
}

// Dismiss ends the supervisor that waits for the next Attempt. Those that have one are not touched.
func (e *Executor) Dismiss() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dismissLocked()
}

func (e *Executor) dismissLocked() {
	if e.next != nil {
		e.next.close()
		e.next = nil
	}
}

// commission gives an Attempt's order to the supervisor that is ready, or to a new one. One that died while it waited
// has launched nothing.
func (e *Executor) commission(ctx context.Context, f folder.Folder, order []byte) (*recruit, error) {
	e.mu.Lock()
	r := e.next
	e.next = nil
	e.mu.Unlock()
	if r != nil && e.instruct(ctx, r, f, order) == nil {
		return r, nil
	}
	r, err := e.newRecruit()
	if err != nil {
		return nil, err
	}
	return r, e.instruct(ctx, r, f, order)
}

// instruct makes a supervisor the Attempt's. With an error it has not heard the whole of its order, and ends.
func (e *Executor) instruct(ctx context.Context, r *recruit, f folder.Folder, order []byte) error {
	e.mu.Lock()
	e.running[f.ID()] = r.gone
	e.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { _ = r.in.Close() }) // one that doesn't listen is not waited for
	_, err := r.in.Write(order)
	if stop() {
		err = errors.Join(err, r.in.Close())
	}
	if err != nil {
		r.close()
		<-r.gone
		return fmt.Errorf("give the supervisor of Attempt %s its order: %w", f.ID(), err)
	}
	return nil
}

func (r *recruit) close() { _, _ = r.in.Close(), r.answer.Close() }

func (r *recruit) isGone() bool {
	select {
	case <-r.gone:
		return true
	default:
		return false
	}
}
