package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// stagePlan is what the stage inside the sandbox needs to become the payload.
type stagePlan struct {
	Argv, Env  []string
	User       uint32 // to become; 0 when it is that already
	Dir        string
	ReadDirs   []string
	ReadFiles  []string
	WriteDirs  []string
	WriteFiles []string
}

// entrance writes the stage's plan.
func entrance(p Plan, tree []rootEntry) []byte {
	s := stagePlan{Argv: p.Argv, Env: p.Env, Dir: p.Dir, ReadDirs: []string{"/proc", "/dev", Home}, WriteDirs: []string{"/dev/shm", "/dev/pts"}}
	if p.Privileged {
		s.User = p.User
	}
	for _, e := range tree {
		switch {
		case e.link != "": // leads to another entry, or out of what is allowed
		case e.dir:
			s.ReadDirs = append(s.ReadDirs, e.target)
		default:
			s.ReadFiles = append(s.ReadFiles, e.target)
		}
	}
	for _, m := range p.Mounts {
		switch {
		case m.Writable && m.File:
			s.WriteFiles = append(s.WriteFiles, m.Target)
		case m.Writable:
			s.WriteDirs = append(s.WriteDirs, m.Target)
		case m.File:
			s.ReadFiles = append(s.ReadFiles, m.Target)
		default:
			s.ReadDirs = append(s.ReadDirs, m.Target)
		}
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings only
	}
	return b
}

// running is what the stage says when only the payload's own start is left; silence after it means that it runs.
const running = "running\n"

// Enter is the stage inside the sandbox: it closes what it inherited, applies Landlock and becomes the payload. It
// returns only when that failed, having told the supervisor why.
func Enter() error {
	status := os.NewFile(statusFD, "status")
	err := enter(status)
	_, told := status.WriteString(err.Error())
	return errors.Join(err, told)
}

func enter(status *os.File) error {
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close what was inherited: %w", err)
	}
	plan := os.NewFile(planFD, "plan")
	b, err := io.ReadAll(io.NewSectionReader(plan, 0, 64<<20))
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	var p stagePlan
	if err := json.Unmarshal(b, &p); err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	if err := restrict(p); err != nil {
		return err
	}
	if err := become(p.User); err != nil {
		return err
	}
	if err := os.Chdir(p.Dir); err != nil {
		return fmt.Errorf("enter the working folder: %w", err)
	}
	program, err := find(p.Argv[0], p.Env)
	if err != nil {
		return err
	}
	if _, err := status.WriteString(running); err != nil {
		return fmt.Errorf("report the start: %w", err)
	}
	return fmt.Errorf("start %s: %w", p.Argv[0], unix.Exec(program, p.Argv, p.Env))
}

// restrict applies Landlock: what the mounts don't show can't be opened, and a mount that shows too much by mistake is no
// hole. Newer kernels also close abstract sockets and signals to the outside.
func restrict(p stagePlan) error {
	devices := []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}
	err := landlock.V6.BestEffort().RestrictPaths(
		landlock.RODirs(p.ReadDirs...), landlock.ROFiles(p.ReadFiles...),
		landlock.RWDirs(p.WriteDirs...).WithRefer(), landlock.RWFiles(p.WriteFiles...), landlock.RWFiles(devices...).WithIoctlDev())
	if err == nil {
		err = landlock.V6.BestEffort().RestrictScoped()
	}
	if err != nil {
		return fmt.Errorf("apply Landlock: %w", err)
	}
	return nil
}

// find looks for a program as a shell would: a name with a slash is a path, any other is looked up in the payload's PATH.
func find(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := "/usr/local/bin:/usr/bin:/bin"
	for _, e := range env {
		if v, is := strings.CutPrefix(e, "PATH="); is {
			path = v
		}
	}
	for _, dir := range filepath.SplitList(path) {
		full := filepath.Join(dir, name)
		if info, err := os.Stat(full); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return full, nil
		}
	}
	return "", fmt.Errorf("start %s: %w", name, &exec.Error{Name: name, Err: fs.ErrNotExist})
}

// Result waits until the payload runs, or says why it doesn't.
func (g *Gate) Result() error {
	b, err := io.ReadAll(io.LimitReader(g.status, 64<<10))
	said := string(b)
	switch {
	case said == running:
		return nil
	case said == "" || err != nil:
		return ErrNoSandbox
	}
	return errors.New(strings.TrimPrefix(said, running))
}

// ErrNoSandbox says that the sandbox itself could not be made; bubblewrap says why on the payload's stderr.
var ErrNoSandbox = errors.New("the sandbox could not be made")
