// Package executor runs one Attempt of a Run as a process tree in a sandbox, under a supervisor process of its own that
// outlives the runner. Whoever restarts finds his Attempts by their folders.
package executor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/roadstead/roadstead/internal/executor/cgroup"
	"github.com/roadstead/roadstead/internal/executor/folder"
	"github.com/roadstead/roadstead/internal/fault"
)

// What an Attempt is told and tells.
type (
	Spec   = folder.Spec
	Limits = folder.Limits
	Record = folder.Record
	Usage  = folder.Usage
	Line   = folder.Line
	Page   = folder.Page
)

// Config says where Attempts live and as whom they run.
type Config struct {
	Dir        string      // of the Attempts; made if it isn't there. Every folder above must let others pass (x)
	Command    []string    // how this program is started as a supervisor; empty: itself, with "supervise"
	Bubblewrap string      // "" looks for bwrap in PATH
	FirstUser  uint32      // as root: Attempts run as this uid and gid and those after it, which must be nobody else's
	Users      int         // how many: as many Attempts can have a folder at the same time
	Cgroups    cgroup.Host // where the kernel's control groups are; the zero value is this machine
}

// Validate refuses a configuration that makes no sense, naming the field.
func (c Config) Validate() error {
	switch {
	case !filepath.IsAbs(c.Dir):
		return fault.Invalid("Dir", "must be an absolute path")
	case c.FirstUser < minUser || uint64(c.FirstUser)+uint64(max(c.Users, 0)) > maxUser:
		return fault.Invalid("FirstUser", "must leave the users of people and services alone: between %d and %d", minUser, maxUser)
	case c.Users < 1:
		return fault.Invalid("Users", "must be above 0")
	}
	return nil
}

const (
	minUser = 100_000
	maxUser = 1 << 31
)

// DefaultFirstUser lies outside of what systems give to people, services, containers and user namespaces.
const DefaultFirstUser = 1_900_000_000

// Executor starts Attempts and finds them again.
type Executor struct {
	config Config
	groups cgroup.Tree
	// overdue is how long past deadline and grace a supervisor may take before it counts as hung and is killed.
	overdue time.Duration
	// privileged is for tests of what else only a machine without user namespaces shows.
	privileged bool

	mu      sync.Mutex
	probed  *Report
	next    *recruit
	running map[string]<-chan struct{} // supervisors this process started and will reap, by Attempt; closed when gone
}

// New looks at the configuration and changes nothing. What the machine lacks, Probe says.
func New(c Config) (*Executor, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if len(c.Command) == 0 {
		c.Command = []string{"/proc/self/exe", "supervise"}
	}
	groups, err := cgroup.Find(c.Cgroups)
	if err != nil {
		return nil, err
	}
	return &Executor{config: c, groups: groups, overdue: 15 * time.Second, running: map[string]<-chan struct{}{}}, nil
}

func (e *Executor) attempts() string { return filepath.Join(e.config.Dir, "attempts") }

func (e *Executor) folder(id string) folder.Folder {
	return folder.Folder(filepath.Join(e.attempts(), id))
}

// Layout is where the runner puts what the job is given, and later finds what it made. Inputs and CheckpointIn are shown
// to the job read-only; what is put there must be readable by everyone (0644, 0755).
type Layout struct {
	Inputs, CheckpointIn string
	Outputs, Checkpoint  string
}

// Prepare makes the Attempt's folder: before Start, so that inputs can be put into it. An Attempt has one folder and one
// life: a known id is a Conflict, to be attached to. It refuses when Probe finds anything missing.
func (e *Executor) Prepare(ctx context.Context, id string) (Layout, error) {
	if err := folder.CheckID(id); err != nil {
		return Layout{}, err
	}
	if err := e.ready(ctx); err != nil {
		return Layout{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	user, err := e.freeUser()
	if err != nil {
		return Layout{}, err
	}
	f := e.folder(id)
	if err := os.Mkdir(string(f), 0o700); errors.Is(err, fs.ErrExist) {
		return Layout{}, fault.New(fault.Conflict, "Attempt %s has a folder already; attach to it", id)
	} else if err != nil {
		return Layout{}, fmt.Errorf("make the folder of Attempt %s: %w", id, err)
	}
	if err := furnish(f, user); err != nil {
		return Layout{}, errors.Join(err, f.Drop())
	}
	return e.layout(f), nil
}

func (e *Executor) layout(f folder.Folder) Layout {
	return Layout{Inputs: f.Inputs(), CheckpointIn: f.CheckpointIn(), Outputs: f.Outputs(), Checkpoint: f.Checkpoint()}
}

// furnish makes what is in the folder. The user is written first: who has a folder has a user.
func furnish(f folder.Folder, user uint32) error {
	if err := os.WriteFile(filepath.Join(string(f), "user"), []byte(strconv.FormatUint(uint64(user), 10)), 0o600); err != nil {
		return fmt.Errorf("note the Attempt's user: %w", err)
	}
	for _, dir := range []string{f.Inputs(), f.CheckpointIn(), f.Work(), f.Outputs(), f.Checkpoint(), f.Scratch(), f.Temp()} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return fmt.Errorf("make a folder of the Attempt: %w", err)
		}
	}
	if err := os.WriteFile(f.Progress(), nil, 0o600); err != nil {
		return fmt.Errorf("make the progress file: %w", err)
	}
	if user != 0 {
		for _, own := range []string{f.Work(), f.Outputs(), f.Checkpoint(), f.Scratch(), f.Temp(), f.Progress()} {
			if err := os.Chown(own, int(user), int(user)); err != nil {
				return fmt.Errorf("give a folder to the Attempt: %w", err)
			}
		}
	}
	// Others may pass and not list: the payload's user must reach what is shown to it; each folder of its own is closed.
	for dir, mode := range map[string]fs.FileMode{string(f): 0o711, f.Work(): 0o700, f.Inputs(): 0o755, f.CheckpointIn(): 0o755} {
		if err := os.Chmod(dir, mode); err != nil {
			return fmt.Errorf("set the modes of the Attempt's folders: %w", err)
		}
	}
	return nil
}

// freeUser is the lowest user that no folder has: two Attempts whose files are on the disk never share one. Without root
// there is one user, our own, which is 0 here.
func (e *Executor) freeUser() (uint32, error) {
	if os.Geteuid() != 0 {
		return 0, nil
	}
	ids, err := e.list()
	if err != nil {
		return 0, err
	}
	taken := map[uint32]bool{}
	for _, id := range ids {
		if user, err := e.user(id); err == nil {
			taken[user] = true
		}
	}
	for i := range uint32(e.config.Users) {
		if user := e.config.FirstUser + i; !taken[user] {
			return user, nil
		}
	}
	return 0, fault.New(fault.CapacityExceeded, "all %d users of the executor belong to Attempts whose folders are still there", e.config.Users)
}

func (e *Executor) user(id string) (uint32, error) {
	b, err := os.ReadFile(filepath.Join(string(e.folder(id)), "user"))
	if err != nil {
		return 0, fmt.Errorf("read the user of Attempt %s: %w", id, err)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("read the user of Attempt %s: %w", id, err)
	}
	return uint32(n), nil
}

// list names the Attempts that have folders.
func (e *Executor) list() ([]string, error) {
	entries, err := os.ReadDir(e.attempts())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the Attempts: %w", err)
	}
	var ids []string
	for _, d := range entries {
		if d.IsDir() && folder.CheckID(d.Name()) == nil {
			ids = append(ids, d.Name())
		}
	}
	return ids, nil
}
