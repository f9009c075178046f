package folder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/executor/cgroup"
)

// Folder is an Attempt's folder on the runner's disk.
type Folder string

// The parts of the folder that the job sees. Those under Work are its own to write.
func (f Folder) Inputs() string       { return f.at("inputs") }
func (f Folder) CheckpointIn() string { return f.at("checkpoint-in") }
func (f Folder) Work() string         { return f.at("work") }
func (f Folder) Outputs() string      { return f.at("work/outputs") }
func (f Folder) Scratch() string      { return f.at("work/scratch") }
func (f Folder) Temp() string         { return f.at("work/tmp") }
func (f Folder) Checkpoint() string   { return f.at("work/checkpoint") }
func (f Folder) Progress() string     { return f.at("work/progress") }

// The parts that it doesn't see.
func (f Folder) LogFile() string             { return f.at("log.jsonl") }
func (f Folder) SupervisorLog() string       { return f.at("supervisor.log") }
func (f Folder) at(name string) string       { return filepath.Join(string(f), name) }
func (f Folder) ID() string                  { return filepath.Base(string(f)) }
func (f Folder) lockFile() string            { return f.at("lock") }
func (f Folder) WriteOrder(o Order) error    { return f.write("order.json", o) }
func (f Folder) Order() (o Order, err error) { return o, f.read("order.json", &o) }

// Order is what a supervisor is started with, its secrets aside.
type Order struct {
	Spec       Spec
	User       uint32 // the host's uid and gid of the payload; 0 means the runner's own
	Bubblewrap string
	Privileged bool // sandbox.Plan's
	Group      cgroup.Group
}

// WriteLaunch puts the launch marker on the disk; only then may the payload start.
func (f Folder) WriteLaunch(l Launch) error { return f.write("launch.json", l) }

// Launch is the launch marker; fs.ErrNotExist says that nothing was started.
func (f Folder) Launch() (l Launch, err error) { return l, f.read("launch.json", &l) }

// WriteRecord puts the Attempt's end on the disk, for good.
func (f Folder) WriteRecord(r Record) error { return f.write("exit.json", r) }

// Record is the Attempt's end; fs.ErrNotExist says that there is none yet.
func (f Folder) Record() (r Record, err error) { return r, f.read("exit.json", &r) }

type cancel struct{ Reason lifecycle.Reason }

// WriteCancel asks the supervisor to end the Attempt. The first reason stays.
func (f Folder) WriteCancel(r lifecycle.Reason) error {
	if had, err := f.Cancelled(); err != nil || had != "" {
		return err
	}
	return f.write("cancel.json", cancel{r})
}

// Cancelled is why the Attempt is to end; "" says that it may go on.
func (f Folder) Cancelled() (lifecycle.Reason, error) {
	var c cancel
	err := f.read("cancel.json", &c)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return c.Reason, err
}

type lease struct{ Until time.Duration } // uptime

// WriteLease says until which uptime the Attempt may run.
func (f Folder) WriteLease(until time.Duration) error {
	// No flush: a lease doesn't outlive the kernel whose uptime it is.
	return f.replace("lease.json", lease{until}, false)
}

// Lease is until which uptime the Attempt may run; zero says that nobody limits it.
func (f Folder) Lease() (time.Duration, error) {
	var l lease
	err := f.read("lease.json", &l)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return l.Until, err
}

// ErrHeld says that a live supervisor has the folder.
var ErrHeld = errors.New("a supervisor has this Attempt")

// Lock takes the folder for this process until the file is closed. The kernel lets go when a process dies, however it
// dies, so a held lock is a live supervisor and no pid that something else has by now.
func (f Folder) Lock() (*os.File, error) {
	file, err := os.OpenFile(f.lockFile(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of an Attempt: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrHeld
		}
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (f Folder) write(name string, v any) error { return f.replace(name, v, true) }

// replace puts a whole file in place of what was there, flushed if it must outlive a crash of the machine.
func (f Folder) replace(name string, v any, flush bool) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	tmp, err := os.CreateTemp(string(f), "."+name+"-")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = tmp.Write(b)
	if err == nil && flush {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), f.at(name))
	}
	if err == nil && flush {
		err = SyncDir(string(f))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// SyncDir puts the names in a folder on the disk.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (f Folder) read(name string, v any) error {
	b, err := os.ReadFile(f.at(name))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// Uptime is the time since boot, suspended times included: a clock that nobody can set.
func Uptime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // every Linux since 2.6.39 has this clock
	}
	return time.Duration(ts.Nano())
}

// BootID names this run of the kernel.
func BootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot's id: %w", err)
	}
	return string(b[:max(len(b)-1, 0)]), nil
}
