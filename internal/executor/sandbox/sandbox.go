// Package sandbox starts a program that can reach nothing but what it was given: bubblewrap makes it a root of its own
// with namespaces and no rights, a filter takes the system calls away that it has no business with, and Landlock says a
// second time which files are its own.
package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Home is the folder of the sandbox under which a job finds what was laid out for it. No image's file hides it.
const Home = "/roadstead"

// SecretsDir is where the sandbox has its secrets, in memory, gone with it.
const SecretsDir = Home + "/secrets"

// Mount shows a folder or file of the host at Target in the sandbox.
type Mount struct {
	Source, Target string
	Writable       bool
	File           bool // not a folder
}

// Plan says what the sandbox consists of.
type Plan struct {
	Bubblewrap string // path of bwrap
	User       uint32 // the host's uid and gid the program runs as; 0 means this process's own, which then is not root
	Privileged bool   // for where the kernel gives no user namespaces, as in a chroot: bubblewrap works as root and the stage becomes User
	Rootfs     string // an image's tree; "" shows the host's programs and libraries
	Mounts     []Mount
	Secrets    map[string][]byte // file name -> content, in SecretsDir, 0400
	ShmBytes   int64             // size of /dev/shm, which also counts as memory
	FileBytes  int64             // what one file may grow to (RLIMIT_FSIZE)
	Network    bool              // the host's network, its loopback included
	Argv       []string
	Env        []string // NAME=value; nothing else is inherited
	Dir        string   // working folder in the sandbox
}

// The descriptors that the programs of the sandbox inherit, in the order of exec.Cmd.ExtraFiles.
const (
	gateFD = 3 + iota
	argsFD
	filterFD
	stageFD
	planFD
	statusFD
	firstSecretFD
)

// Command builds the sandbox's command and the gate it waits behind. stage is this program's own file and the arguments
// under which it calls Enter: it applies Landlock inside and becomes the payload. Nothing of the plan is on a command
// line, where anybody on the host could read it.
func Command(p Plan, stage *os.File, stageArgs ...string) (*exec.Cmd, *Gate, error) {
	g := &Gate{}
	cmd, err := g.command(p, stage, stageArgs)
	if err != nil {
		g.Close()
		return nil, nil, err
	}
	return cmd, g, nil
}

func (g *Gate) command(p Plan, stage *os.File, stageArgs []string) (*exec.Cmd, error) {
	gateOut, gateIn, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the gate: %w", err)
	}
	g.in, g.inherited = gateIn, append(g.inherited, gateOut)
	filter, err := systemCallFilter()
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(p.Secrets))
	for name := range p.Secrets {
		names = append(names, name)
	}
	sort.Strings(names)
	tree, err := rootEntries(p.Rootfs)
	if err != nil {
		return nil, err
	}
	contents := [][]byte{joinNul(arguments(p, tree, names)), filter, nil, entrance(p, tree), nil}
	for _, name := range names {
		contents = append(contents, p.Secrets[name])
	}
	for fd, content := range contents {
		f, err := g.file(fd+argsFD, content, stage)
		if err != nil {
			return nil, err
		}
		g.inherited = append(g.inherited, f)
	}
	files, err := openFiles()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", behindGate, "sh", strconv.FormatInt(max(p.FileBytes/fileUnit, 1), 10), files,
		p.Bubblewrap, "--args", strconv.Itoa(argsFD), "--", "/proc/self/fd/" + strconv.Itoa(stageFD)}, stageArgs...)...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = "/", []string{"PATH=/usr/bin:/bin"}, g.inherited
	// The payload's end is the supervisor's: PDEATHSIG here, and bubblewrap's --die-with-parent one step down.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if p.User != 0 && !p.Privileged {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: p.User, Gid: p.User}
	}
	return cmd, nil
}

// behindGate limits itself, waits for a line and becomes the rest of its arguments. The limits are set by the process that
// they are for, which as any user may lower them.
const behindGate = `ulimit -c 0 && ulimit -f "$1" && ulimit -n "$2" && ulimit -l 8192 && shift 2 && read -r _ <&3 && exec 3<&- && exec "$@"`

const (
	fileUnit = 512 // bytes, of ulimit -f
	maxFiles = 16384
)

// openFiles is how many files a job may have open; nobody can give more than he has.
func openFiles() (string, error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return "", fmt.Errorf("read the limit of open files: %w", err)
	}
	return strconv.FormatUint(min(l.Max, maxFiles), 10), nil
}

// file is what is inherited as descriptor fd: the stage's program, the status pipe, or content in memory.
func (g *Gate) file(fd int, content []byte, stage *os.File) (*os.File, error) {
	switch fd {
	case stageFD:
		return reopened(stage)
	case statusFD:
		r, w, err := os.Pipe()
		g.status = r
		return w, err
	}
	return inMemory(content)
}

// arguments are bubblewrap's. Order is meaning: what is mounted later lies above.
func arguments(p Plan, tree []rootEntry, secrets []string) []string {
	a := []string{
		"--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup", "--hostname", "sandbox",
		"--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv", "--seccomp", strconv.Itoa(filterFD),
	}
	secretMode, secretsMode := "0400", "0500"
	if p.Privileged {
		for _, c := range dropping {
			a = append(a, "--cap-add", c)
		}
		secretMode, secretsMode = "0444", "0555" // of root's here, and in a world with one user
	} else {
		a = append(a, "--unshare-user", "--disable-userns", "--uid", strconv.Itoa(InsideID), "--gid", strconv.Itoa(InsideID))
	}
	if !p.Network {
		a = append(a, "--unshare-net")
	}
	for _, e := range tree {
		if e.link != "" {
			a = append(a, "--symlink", e.link, e.target)
		} else {
			a = append(a, "--ro-bind", e.source, e.target)
		}
	}
	a = append(a, "--proc", "/proc", "--dev", "/dev", "--size", strconv.FormatInt(max(p.ShmBytes, 1<<16), 10), "--perms", "1777", "--tmpfs", "/dev/shm",
		"--remount-ro", "/dev", "--perms", "0755", "--dir", Home)
	for _, m := range p.Mounts {
		if m.Writable {
			a = append(a, "--bind", m.Source, m.Target)
		} else {
			a = append(a, "--ro-bind", m.Source, m.Target)
		}
	}
	a = append(a, "--size", strconv.Itoa(maxSecrets), "--perms", secretsMode, "--tmpfs", SecretsDir)
	for i, name := range secrets {
		a = append(a, "--perms", secretMode, "--file", strconv.Itoa(firstSecretFD+i), filepath.Join(SecretsDir, name))
	}
	return append(a, "--remount-ro", SecretsDir, "--remount-ro", "/")
}

// InsideID is the uid and gid the program sees as its own in a user namespace; without one it sees the host's.
const InsideID = 1000

const maxSecrets = 4 << 20 // bytes of all secrets of an Attempt

// Gate holds a started sandbox back until Open, and then tells how its start went.
type Gate struct {
	in, status *os.File
	inherited  []*os.File
}

// Started lets go of what the sandbox has inherited. Call it after the command's Start.
func (g *Gate) Started() {
	for _, f := range g.inherited {
		_ = f.Close() // a copy, or memory
	}
	g.inherited = nil
}

// Open lets the sandbox go ahead.
func (g *Gate) Open() error {
	if _, err := g.in.WriteString("\n"); err != nil {
		return fmt.Errorf("open the gate: %w", err)
	}
	return g.in.Close()
}

// Close frees what is left of the gate; a sandbox behind a gate that was never opened ends.
func (g *Gate) Close() {
	g.Started()
	for _, f := range []*os.File{g.in, g.status} {
		if f != nil {
			_ = f.Close() // closed twice when it was opened
		}
	}
}
