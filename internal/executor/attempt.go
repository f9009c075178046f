package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/executor/folder"
	"github.com/roadstead/roadstead/internal/fault"
)

// Attempt is one Attempt on this machine: preparing, running under its supervisor, or over with a Record.
type Attempt struct {
	executor *Executor
	folder   folder.Folder
	gone     <-chan struct{} // closed when the supervisor that this process started has ended; nil for one found again
}

// Attach finds the Attempt by its folder: NotFound without one. If its supervisor died without a Record, what is left of
// the payload is killed and the Record is made: runner_lost, with a StartedAt if the payload may have been started. That
// it was not says nothing about the job: it is a loss and no cannot_start.
func (e *Executor) Attach(id string) (*Attempt, error) {
	if err := folder.CheckID(id); err != nil {
		return nil, err
	}
	f := e.folder(id)
	if _, err := os.Stat(string(f)); errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Missing("Attempt " + id)
	}
	e.mu.Lock()
	a := &Attempt{executor: e, folder: f, gone: e.running[id]}
	e.mu.Unlock()
	return a, a.settle()
}

// ID is the Attempt's id.
func (a *Attempt) ID() string { return a.folder.ID() }

// Layout is where the Attempt's files are; outputs and checkpoint stay until Remove. What is in them was made by the job:
// any entry may be a link to anywhere, so open them only through os.Root and take only regular files.
func (a *Attempt) Layout() Layout { return a.executor.layout(a.folder) }

// Fence is the fence it was started with; 0 if it wasn't started.
func (a *Attempt) Fence() int64 {
	o, err := a.folder.Order()
	if err != nil {
		return 0
	}
	return o.Spec.Fence
}

// Record is how the Attempt ended; ok is false while it is being prepared or runs.
func (a *Attempt) Record() (r Record, ok bool, err error) {
	r, err = a.folder.Record()
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, false, nil
	}
	return r, err == nil, err
}

// settle gives an Attempt without a supervisor its end. An Attempt that is still being prepared has none to be given.
func (a *Attempt) settle() error {
	if _, over, err := a.Record(); over || err != nil {
		return err
	}
	order, err := a.folder.Order()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if a.gone != nil {
		select {
		case <-a.gone:
		default:
			return nil // started by us and alive; it may not have its lock yet
		}
	}
	lock, err := a.folder.Lock()
	if errors.Is(err, folder.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, over, err := a.Record(); over || err != nil {
		return err // it wrote it between our two looks
	}
	return a.bury(order)
}

// bury makes the Record of an Attempt whose supervisor is dead, after the payload is dead too.
func (a *Attempt) bury(order folder.Order) error {
	if err := order.Group.Kill(buryPatience); err != nil {
		return fmt.Errorf("end what is left of Attempt %s: %w", a.ID(), err)
	}
	r := Record{AttemptID: a.ID(), Fence: order.Spec.Fence, ExitCode: -1, EndedAt: time.Now(),
		Reason: lifecycle.RunnerLost, Detail: "its supervisor died before it started anything"}
	launch, err := a.folder.Launch()
	switch {
	case err == nil:
		r.Detail, r.StartedAt = "its supervisor died; the payload may have been started", launch.At
		if boot, err := folder.BootID(); err == nil && boot == launch.BootID {
			r.Usage.Wall = folder.Uptime() - launch.Uptime
		}
		if u, err := order.Group.Usage(); err == nil { // gone with a reboot
			r.Usage.User, r.Usage.System, r.Usage.MemoryPeak = u.User, u.System, u.MemoryPeak
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if info, err := os.Stat(a.folder.LogFile()); err == nil {
		r.Usage.Log = info.Size()
	}
	return errors.Join(a.folder.DropScratch(), a.folder.WriteRecord(r), order.Group.Remove())
}

const buryPatience = 5 * time.Second

// Cancel asks for the end and returns at once: TERM to every process within a tenth of a second, KILL a grace later. The
// Record will have the first reason it was given; an Attempt that is over keeps its own.
func (a *Attempt) Cancel(reason lifecycle.Reason) error {
	return a.folder.WriteCancel(reason)
}

// Renew lets the Attempt run until the given instant, by the machine's monotonic clock; at that instant it is dead if nobody
// renews again, whether the runner lives or not.
func (a *Attempt) Renew(until time.Time) error {
	return a.folder.WriteLease(folder.Uptime() + time.Until(until))
}

// look is how often Wait looks for the end of a supervisor that another process started.
const look = 100 * time.Millisecond

// Wait returns the Record when there is one: at most a tenth of a second after the process tree is gone, also if the
// supervisor dies. A supervisor that hangs past the deadline is killed, and with it the payload.
func (a *Attempt) Wait(ctx context.Context) (Record, error) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		if err := a.settle(); err != nil {
			return Record{}, err
		}
		if r, over, err := a.Record(); over || err != nil {
			return r, err
		}
		if err := a.reap(); err != nil {
			return Record{}, err
		}
		gone := a.gone
		select {
		case <-ctx.Done():
			return Record{}, ctx.Err()
		case <-gone:
		case <-ticker.C:
		}
	}
}

// reap kills a supervisor that should have ended long ago: stopped by somebody, or hung.
func (a *Attempt) reap() error {
	launch, err := a.folder.Launch()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	order, err := a.folder.Order()
	if err != nil {
		return err
	}
	boot, err := folder.BootID()
	if err != nil {
		return err
	}
	end := launch.Uptime + order.Spec.Limits.Timeout + order.Spec.Grace + a.executor.overdue
	if boot != launch.BootID || folder.Uptime() < end {
		return nil
	}
	lock, err := a.folder.Lock()
	if err == nil {
		return lock.Close() // it is dead already
	}
	if !errors.Is(err, folder.ErrHeld) {
		return err
	}
	// Only the live supervisor holds the lock, so the pid it wrote is its own.
	if err := unix.Kill(launch.Supervisor, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill the supervisor of Attempt %s: %w", a.ID(), err)
	}
	return nil
}

// Logs reads at most limit records from an offset that an earlier page gave, or 0; a page without lines is the end so far.
func (a *Attempt) Logs(offset int64, limit int) (Page, error) { return a.folder.ReadLog(offset, limit) }

// maxProgress bounds a progress line.
const maxProgress = 4 << 10

// Progress is the last whole line that the job wrote to its progress file; "" before the first. It is the job's word.
func (a *Attempt) Progress() (string, error) {
	f, err := os.OpenFile(a.folder.Progress(), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("open the progress of Attempt %s: %w", a.ID(), err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("read the progress of Attempt %s: no file (%w)", a.ID(), err)
	}
	from := max(info.Size()-2*maxProgress, 0)
	b, err := io.ReadAll(io.NewSectionReader(f, from, 2*maxProgress))
	if err != nil {
		return "", fmt.Errorf("read the progress of Attempt %s: %w", a.ID(), err)
	}
	whole := string(b[:strings.LastIndexByte(string(b), '\n')+1])
	lines := strings.Split(strings.TrimSuffix(whole, "\n"), "\n")
	last := strings.ToValidUTF8(lines[len(lines)-1], "\uFFFD")
	return last[:min(len(last), maxProgress)], nil
}

// Remove wipes the Attempt's folder. It is a Conflict while the Attempt may still run.
func (a *Attempt) Remove() error {
	lock, err := a.lockOver()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, folder.ErrHeld):
		return fault.New(fault.Conflict, "Attempt %s is running", a.ID())
	case err != nil:
		return err
	}
	defer lock.Close()
	if order, err := a.folder.Order(); err == nil {
		if err := errors.Join(order.Group.Kill(buryPatience), order.Group.Remove()); err != nil {
			return err
		}
	}
	if err := a.folder.Drop(); err != nil {
		return err
	}
	a.executor.mu.Lock()
	defer a.executor.mu.Unlock()
	delete(a.executor.running, a.ID())
	return nil
}

// lockOver takes the folder, and gives a supervisor that has written its Record the moment it needs to go.
func (a *Attempt) lockOver() (*os.File, error) {
	for end := time.Now().Add(buryPatience); ; time.Sleep(5 * time.Millisecond) {
		lock, err := a.folder.Lock()
		if !errors.Is(err, folder.ErrHeld) || time.Now().After(end) {
			return lock, err
		}
		if _, over, _ := a.Record(); !over {
			return nil, err
		}
	}
}

// Sweep is for the start of a runner: it returns every Attempt that has a folder, those whose supervisors died settled, and
// wipes those that keep doesn't want if they are over or were never started.
func (e *Executor) Sweep(keep func(id string) bool) ([]*Attempt, error) {
	ids, err := e.list()
	if err != nil {
		return nil, err
	}
	var kept []*Attempt
	var errs []error
	for _, id := range ids {
		a, err := e.Attach(id)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if !keep(id) {
			err := a.Remove()
			if err == nil {
				continue
			}
			if !fault.Is(err, fault.Conflict) {
				errs = append(errs, err)
			}
		}
		kept = append(kept, a)
	}
	return kept, errors.Join(errs...)
}
