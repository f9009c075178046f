// Package folder is what a runner and the supervisor of an Attempt say to each other: files in the Attempt's folder, so
// that each of the two can die and what was said is still there.
package folder

import (
	"regexp"
	"strings"
	"time"

	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/fault"
)

// Limits bound what one Attempt may use. Each must be above zero: nothing runs unlimited.
type Limits struct {
	Timeout  time.Duration // TERM comes then, KILL a grace later; counted from the launch, a suspended machine included
	Memory   int64         // bytes of all processes together, /dev/shm included
	CPUMilli int64         // thousandths of a processor
	Pids     int64         // processes and threads
	Disk     int64         // bytes of outputs, scratch, checkpoint and /tmp together; an entry counts for at least 4 KiB
	Log      int64         // bytes of log records; the Attempt ends with what goes beyond
}

// Spec says what one Attempt of a Run is.
type Spec struct {
	AttemptID string
	Fence     int64
	Argv      []string          // a name without a slash is looked for in PATH
	Env       map[string]string // beside the folders' own variables, which it can't replace
	Dir       string            // working folder in the sandbox; "" is the package's, or the scratch folder without one
	Package   string            // the unpacked package on the host, shown read-only; "" for none
	Image     string            // the unpacked image on the host, the root of the sandbox; "" for the host's programs
	Limits    Limits
	Grace     time.Duration // between TERM and KILL
	Network   bool          // the host's network, its loopback included: the pool operator's permission
	Lease     time.Duration // how long the Attempt may run without Renew; 0 for as long as its timeout

	// Secrets are files for the sandbox's memory, by name. They are on no disk, and are masked in the log.
	Secrets map[string][]byte `json:"-"`
}

var (
	attemptID  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)
	secretName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// CheckID refuses an id that can't name a folder.
func CheckID(id string) error {
	if !attemptID.MatchString(id) {
		return fault.Invalid("AttemptID", "must be 1 to 100 letters, digits, - and _")
	}
	return nil
}

// Validate refuses a Spec that can't be run within limits, naming the field.
func (s Spec) Validate() error {
	if err := CheckID(s.AttemptID); err != nil {
		return err
	}
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return fault.Invalid("Argv", "must name a program")
	}
	for name, positive := range map[string]bool{
		"Limits.Timeout": s.Limits.Timeout > 0, "Limits.Memory": s.Limits.Memory > 0, "Limits.CPUMilli": s.Limits.CPUMilli > 0,
		"Limits.Pids": s.Limits.Pids > 0, "Limits.Disk": s.Limits.Disk > 0, "Limits.Log": s.Limits.Log > 0, "Grace": s.Grace > 0,
	} {
		if !positive {
			return fault.Invalid(name, "must be above 0")
		}
	}
	if s.Lease < 0 {
		return fault.Invalid("Lease", "must not be negative")
	}
	return s.validateWords()
}

// validateWords looks for what the kernel would cut or refuse: NUL ends a word.
func (s Spec) validateWords() error {
	for _, a := range s.Argv {
		if strings.ContainsRune(a, 0) {
			return fault.Invalid("Argv", "must not hold NUL")
		}
	}
	for name, value := range s.Env {
		if !envName.MatchString(name) || strings.ContainsRune(value, 0) {
			return fault.Invalid("Env", "%q is no name of a variable, or its value holds NUL", name)
		}
	}
	size := 0
	for name, value := range s.Secrets {
		if !secretName.MatchString(name) {
			return fault.Invalid("Secrets", "%q can't be the name of a file", name)
		}
		size += len(value)
	}
	if size > MaxSecrets || len(s.Secrets) > 200 {
		return fault.Invalid("Secrets", "must be at most 200 with %d bytes together", MaxSecrets)
	}
	for field, path := range map[string]string{"Package": s.Package, "Image": s.Image, "Dir": s.Dir} {
		if path != "" && !strings.HasPrefix(path, "/") || strings.ContainsRune(path, 0) {
			return fault.Invalid(field, "must be an absolute path")
		}
	}
	return nil
}

// MaxSecrets is how many bytes the secrets of an Attempt may have together.
const MaxSecrets = 1 << 20

// Record is how an Attempt ended. Every number in it was measured by us, none by the job.
type Record struct {
	AttemptID string
	Fence     int64
	Reason    lifecycle.Reason // done, exit_code, killed, timeout, out_of_memory, out_of_disk, log_limit, cannot_start, runner_lost, or what Cancel was given
	Detail    string           // the reason in words, for a person
	ExitCode  int              // the payload's; -1 when it was killed, or nothing is known
	Signal    int              // the signal it died of, as a shell would guess it from 128+n; else 0
	StartedAt time.Time        // zero: the payload was never started. With runner_lost: may have been started
	EndedAt   time.Time
	Usage     Usage
}

// Usage is what an Attempt cost.
type Usage struct {
	Wall       time.Duration // from launch to end, a suspended machine included
	User       time.Duration // of processor time
	System     time.Duration
	MemoryPeak int64 // bytes, the most at one time
	Disk       int64 // bytes, the most seen at one time in what the job may write to
	Log        int64 // bytes of log records
}

// Launch is written before the payload may start: with it and without a Record, the payload may have run.
type Launch struct {
	BootID     string        // of the kernel it ran under: another one means that nothing of it is left
	At         time.Time     // for people
	Uptime     time.Duration // since boot: what deadlines count from
	Supervisor int           // pid
}
