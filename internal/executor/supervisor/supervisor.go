// Package supervisor is the process that stands over one Attempt: it starts the payload in its sandbox, holds it to its
// limits and its deadline whether the runner lives or not, keeps its log and records its end.
package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/executor/folder"
	"github.com/roadstead/roadstead/internal/executor/sandbox"
)

// Message is what a supervisor is sent on its standard input: nothing of it is on a command line or in the environment.
type Message struct {
	Folder  folder.Folder
	Secrets map[string][]byte
	Stage   []string // the arguments under which this program calls sandbox.Enter
}

// Answer is what it says on its standard output, once, and then closes it.
type Answer struct {
	Running bool   // the payload runs
	Problem string // why not; the record says it too
}

// Main is the whole life of a supervisor: it waits for its order and outlives whoever gave it. What goes wrong is in its
// own log.
func Main(in io.Reader, out io.WriteCloser) error {
	var m Message
	err := json.NewDecoder(in).Decode(&m)
	if errors.Is(err, io.EOF) {
		return nil // it was not needed
	}
	if err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	own, err := os.OpenFile(m.Folder.SupervisorLog(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the supervisor's log: %w", err)
	}
	defer own.Close()
	if err := debug.SetCrashOutput(own, debug.CrashOptions{}); err != nil {
		return fmt.Errorf("open the supervisor's log: %w", err)
	}
	if err := stand(m, out); err != nil {
		_, told := fmt.Fprintln(own, err)
		return errors.Join(err, told)
	}
	return nil
}

// stand is the time over an Attempt.
func stand(m Message, out io.WriteCloser) error {
	lock, err := m.Folder.Lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unborn(m.Folder); err != nil {
		return err
	}
	order, err := m.Folder.Order()
	if err != nil {
		return err
	}
	order.Spec.Secrets = m.Secrets
	w := &watch{order: order, folder: m.Folder, answer: out}
	// A closed terminal or a runner that no longer listens is no reason to die. They are caught and not ignored: the payload
	// would inherit that. TERM is a polite request to end the Attempt.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE)
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	return w.run(m.Stage, terms)
}

// unborn refuses an Attempt that was launched before, or that a runner who found it without a supervisor has closed.
func unborn(f folder.Folder) error {
	_, launched := f.Launch()
	_, over := f.Record()
	for _, err := range []error{launched, over} {
		if err == nil {
			return errors.New("this Attempt was launched or closed before: it is never launched again")
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// watch is one Attempt in the care of this process.
type watch struct {
	order  folder.Order
	folder folder.Folder
	answer io.WriteCloser

	cmd      *exec.Cmd
	log      *log
	launched time.Duration // uptime
	record   folder.Record
	ending   lifecycle.Reason // why it was told to end; "" while it wasn't
	killAt   time.Duration    // uptime, once it was told
	killed   bool
}

// run brings the Attempt to its end and its end onto the disk.
func (w *watch) run(stage []string, terms <-chan os.Signal) error {
	w.record = folder.Record{AttemptID: w.order.Spec.AttemptID, Fence: w.order.Spec.Fence, ExitCode: -1}
	done, err := w.launch(stage)
	if err != nil {
		w.record.Reason, w.record.Detail = lifecycle.CannotStart, err.Error()
		w.tell(Answer{Problem: err.Error()})
		return w.finish()
	}
	w.tell(Answer{Running: true})
	w.follow(done, terms)
	return w.finish()
}

// tell answers the runner, who may be gone.
func (w *watch) tell(a Answer) {
	_ = json.NewEncoder(w.answer).Encode(a) // the folder says it as well
	_ = w.answer.Close()
}

// launch starts the payload: first the group with its limits, then the process behind its gate, then the launch marker, and
// only when that is on the disk the gate opens.
func (w *watch) launch(stage []string) (<-chan error, error) {
	var err error
	if w.log, err = newLog(w.folder.LogFile(), w.order.Spec.Limits.Log, w.order.Spec.Secrets); err != nil {
		return nil, err
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("open this program: %w", err)
	}
	defer self.Close()
	cmd, gate, err := sandbox.Command(plan(w.order, w.folder), self, stage...)
	if err != nil {
		return nil, err
	}
	defer gate.Close()
	done, err := w.start(cmd, gate)
	if err != nil {
		return nil, err
	}
	boot, err := folder.BootID()
	if err != nil {
		return nil, w.abandon(done, err)
	}
	if err := w.confine(); err != nil {
		return nil, w.abandon(done, err)
	}
	w.launched, w.record.StartedAt = folder.Uptime(), time.Now()
	if err := w.folder.WriteLaunch(folder.Launch{BootID: boot, At: w.record.StartedAt, Uptime: w.launched, Supervisor: os.Getpid()}); err != nil {
		return nil, w.abandon(done, err)
	}
	if err := gate.Open(); err != nil {
		return nil, w.abandon(done, err)
	}
	if err := w.opened(gate); err != nil {
		w.record.StartedAt = time.Time{}
		return nil, w.abandon(done, err)
	}
	return done, nil
}

// opened waits for the payload to run. A sandbox that takes longer than any does is given up.
func (w *watch) opened(gate *sandbox.Gate) error {
	timer := time.AfterFunc(startPatience, func() { _ = w.order.Group.Kill(time.Second) })
	defer timer.Stop()
	return gate.Result()
}

const startPatience = 30 * time.Second

// start forks the command. PDEATHSIG goes by the thread that forked, so that thread is kept for it until the end.
func (w *watch) start(cmd *exec.Cmd, gate *sandbox.Gate) (<-chan error, error) {
	out, err1 := cmd.StdoutPipe()
	errs, err2 := cmd.StderrPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("make the log's pipes: %w", err)
	}
	started, done := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		var readers sync.WaitGroup
		readers.Go(func() { w.log.copy("out", out) })
		readers.Go(func() { w.log.copy("err", errs) })
		readers.Wait()
		done <- cmd.Wait()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start the sandbox: %w", err)
	}
	w.cmd = cmd
	gate.Started()
	return done, nil
}

// confine puts the waiting process under its limits, which all that it starts inherit.
func (w *watch) confine() error {
	pid := w.cmd.Process.Pid
	if err := w.order.Group.Add(pid); err != nil {
		return err
	}
	// If the whole machine is short of memory, jobs go before what manages them.
	if err := os.WriteFile(filepath.Join("/proc", strconv.Itoa(pid), "oom_score_adj"), []byte("500"), 0); err != nil {
		return fmt.Errorf("offer the payload to the out-of-memory killer: %w", err)
	}
	return nil
}

// abandon ends what was started of a launch that failed, and hears it out: bubblewrap's own words are in the log.
func (w *watch) abandon(done <-chan error, cause error) error {
	_ = w.cmd.Process.Kill() // it may have ended by itself
	_ = w.order.Group.Kill(killPatience)
	if exit := <-done; exit != nil && errors.Is(cause, sandbox.ErrNoSandbox) {
		if said := w.log.lastError(); said != "" {
			return fmt.Errorf("%w: %s", cause, said)
		}
	}
	return cause
}

const killPatience = 5 * time.Second
