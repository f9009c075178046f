// Command payload is what the executor's tests run: a supervisor, a runner that can be killed, an honest job, and attacks.
// An attack that works says "SUCCESS" and ends with 0; one that is stopped says "denied" and ends with 1.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roadstead/roadstead/internal/executor"
	"github.com/roadstead/roadstead/internal/executor/sandbox"
	"github.com/roadstead/roadstead/internal/executor/supervisor"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		if err := supervise(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	args := os.Args[2:]
	attacks := map[string]func([]string) error{
		"mount": mount, "namespace": namespace, "read": read, "write": write, "connect": connect, "abstract": abstract, "fork": fork,
		"memory": memory, "disk": disk, "bigfile": bigFile, "held": held, "mapped": mapped, "deep": deep, "flood": flood, "ptrace": ptrace, "see": see, "device": device,
	}
	jobs := map[string]func([]string) error{"tour": tour, "daemon": daemon, "sleep": sleep, "exit": exit, "runner": runner, "print": printSecret, "leave": leave, "probe": probe}
	if job, is := jobs[os.Args[1]]; is {
		if err := job(args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := attacks[os.Args[1]](args); err != nil {
		fmt.Println("denied:", err)
		os.Exit(1)
	}
	fmt.Println("SUCCESS")
}

func supervise(args []string) error {
	if len(args) == 1 && args[0] == "--enter" {
		return sandbox.Enter()
	}
	return supervisor.Main(os.Stdin, os.Stdout)
}

// any is nil if one of the ways worked.
func any(ways ...error) error {
	for _, err := range ways {
		if err == nil {
			return nil
		}
	}
	return errors.Join(ways...)
}

// mount makes what is read-only writable, or mounts something of its own.
func mount([]string) error {
	return any(unix.Mount("", "/proc", "", unix.MS_REMOUNT|unix.MS_BIND, ""), unix.Mount("", "/usr", "", unix.MS_REMOUNT|unix.MS_BIND, ""),
		unix.Mount("none", "/tmp", "tmpfs", 0, ""))
}

// namespace asks for a user namespace, in which one would be root again, or for any other.
func namespace([]string) error {
	return any(exec.Command("/usr/bin/unshare", "--user", "--map-root-user", "true").Run(), unix.Unshare(unix.CLONE_NEWUSER), unix.Unshare(unix.CLONE_NEWUTS))
}

// read reads a file of the host by its path, or through other processes' roots.
func read(args []string) error {
	var all error
	for _, prefix := range []string{"", "/proc/1/root", "/proc/self/root/../..", "/proc/2/cwd/../../../../.."} {
		b, err := os.ReadFile(prefix + args[0])
		if err == nil {
			fmt.Printf("%s\n", b)
			return nil
		}
		all = errors.Join(all, err)
	}
	return all
}

func write(args []string) error { return os.WriteFile(args[0], []byte("owned"), 0o600) }

func connect(args []string) error {
	c, err := net.DialTimeout("tcp", args[0], 2*time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

func abstract(args []string) error {
	c, err := net.Dial("unix", "@"+args[0])
	if err != nil {
		return err
	}
	return c.Close()
}

// fork starts as many processes as it is told, and keeps them.
func fork(args []string) error {
	want, _ := strconv.Atoi(args[0])
	for made := range want {
		if err := exec.Command("/bin/sleep", "600").Start(); err != nil {
			fmt.Println("made", made)
			return err
		}
	}
	return nil
}

func memory(args []string) error {
	want, _ := strconv.Atoi(args[0])
	b := make([]byte, want)
	for i := 0; i < want; i += 4096 {
		b[i] = 1
	}
	fmt.Println("have", len(b))
	return nil
}

// disk writes many files into every folder given.
func disk(args []string) error {
	chunk := make([]byte, 1<<20)
	want, _ := strconv.Atoi(args[0])
	for i := range want >> 20 {
		if err := os.WriteFile(filepath.Join(args[1+i%(len(args)-1)], fmt.Sprintf("fill-%d", i)), chunk, 0o600); err != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

func bigFile(args []string) error {
	signal.Ignore(syscall.SIGXFSZ)
	want, _ := strconv.Atoi(args[0])
	f, err := os.Create(filepath.Join(args[1], "big"))
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, zeros{}, int64(want))
	return errors.Join(err, f.Close())
}

// held fills files that have no name any more.
func held(args []string) error {
	want, _ := strconv.Atoi(args[0])
	for i := range want >> 20 {
		f, err := os.Create(filepath.Join(args[1], strconv.Itoa(i)))
		if err != nil {
			return err
		}
		if err := os.Remove(f.Name()); err != nil {
			return err
		}
		if _, err := io.CopyN(f, zeros{}, 1<<20); err != nil {
			return err
		}
		defer f.Close()
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// mapped fills files that have neither a name nor a descriptor.
func mapped(args []string) error {
	want, _ := strconv.Atoi(args[0])
	for i := range want >> 20 {
		f, err := os.Create(filepath.Join(args[1], strconv.Itoa(i)))
		if err != nil {
			return err
		}
		if err := os.Remove(f.Name()); err != nil {
			return err
		}
		if _, err := io.CopyN(f, zeros{}, 1<<20); err != nil {
			return err
		}
		if _, err := unix.Mmap(int(f.Fd()), 0, 1<<20, unix.PROT_READ, unix.MAP_SHARED); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// deep makes a tree deeper than a path can name, where a look from outside doesn't reach.
func deep(args []string) error {
	if err := os.Chdir(args[1]); err != nil {
		return err
	}
	want, _ := strconv.Atoi(args[0])
	name := strings.Repeat("d", 200)
	for range want {
		if err := os.Mkdir(name, 0o700); err != nil {
			return err
		}
		if err := os.Chdir(name); err != nil {
			return err
		}
	}
	time.Sleep(time.Second)
	return nil
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func flood(args []string) error {
	want, _ := strconv.Atoi(args[0])
	line := strings.Repeat("x", 1023) + "\n"
	for range want >> 10 {
		if _, err := os.Stdout.WriteString(line); err != nil {
			return err
		}
	}
	return nil
}

// ptrace takes hold of a process of the host and reads its environment.
func ptrace(args []string) error {
	pid, _ := strconv.Atoi(args[0])
	_, err := os.ReadFile(filepath.Join("/proc", args[0], "environ"))
	return any(unix.PtraceAttach(pid), err)
}

// see looks for processes that are none of its own.
func see([]string) error {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	if len(all) < 5 {
		return fmt.Errorf("sees %d processes", len(all))
	}
	return nil
}

func device([]string) error {
	if f, err := os.OpenFile("/dev/kmsg", os.O_RDONLY, 0); err == nil {
		return f.Close()
	}
	return unix.Mknod("/tmp/null", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3)))
}

// tour is an honest job: it uses everything it is given, and reports what it sees.
func tour([]string) error {
	env := func(n string) string { return os.Getenv("ROADSTEAD_" + n) }
	input, err1 := os.ReadFile(filepath.Join(env("INPUTS"), "in.txt"))
	secret, err2 := os.ReadFile(filepath.Join(env("SECRETS"), "token"))
	resume, err3 := os.ReadFile(filepath.Join(env("CHECKPOINT_IN"), "state"))
	err4 := os.WriteFile(env("PROGRESS"), []byte("0.25 a quarter\n0.5 half\n0.75 unfini"), 0o600)
	err5 := os.WriteFile(filepath.Join(env("OUTPUTS"), "out.txt"), []byte(fmt.Sprintf("%s+%d+%s", input, len(secret), resume)), 0o600)
	err6 := os.WriteFile(filepath.Join(env("CHECKPOINT"), "state"), []byte("next"), 0o600)
	err7 := os.WriteFile(filepath.Join(env("SCRATCH"), "tmp"), make([]byte, 100<<10), 0o600)
	err8 := os.WriteFile(filepath.Join(os.Getenv("TMPDIR"), "tmp"), nil, 0o600)
	err9 := os.WriteFile("/dev/shm/x", make([]byte, 4096), 0o600)
	readonly := os.WriteFile(filepath.Join(env("INPUTS"), "evil"), nil, 0o600) != nil && os.WriteFile(filepath.Join(env("SECRETS"), "evil"), nil, 0o600) != nil &&
		os.WriteFile("/evil", nil, 0o600) != nil && os.WriteFile("/usr/evil", nil, 0o600) != nil
	dir, _ := os.Getwd()
	status, _ := os.ReadFile("/proc/self/status")
	var rights []string
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "Cap") && !strings.Contains(line, "0000000000000000") || strings.HasPrefix(line, "NoNewPrivs") || strings.HasPrefix(line, "Seccomp:") {
			rights = append(rights, strings.Join(strings.Fields(line), ""))
		}
	}
	inherited, _ := os.ReadDir("/proc/self/fd")
	fds := []string{}
	for _, fd := range inherited {
		to, err := os.Readlink("/proc/self/fd/" + fd.Name())
		if err == nil && fd.Name() > "2" && !strings.HasPrefix(to, "anon_inode:") && !strings.HasPrefix(to, "/proc/") { // those of Go's own
			fds = append(fds, to)
		}
	}
	pipeIgnored := signal.Ignored(syscall.SIGPIPE) || signal.Ignored(syscall.SIGINT) || signal.Ignored(syscall.SIGHUP)
	fmt.Printf("uid=%d dir=%s readonly=%v rights=%v fds=%v ignored=%v custom=%s path=%v\n", os.Getuid(), dir, readonly, rights, fds, pipeIgnored, os.Getenv("CUSTOM"), os.Getenv("ROADSTEAD_INPUTS") == "/roadstead/inputs")
	fmt.Fprintln(os.Stderr, "and an error line")
	return errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9)
}

// daemon leaves children of children behind that ignore TERM and have sessions of their own.
func daemon(args []string) error {
	if len(args) > 1 && args[1] == "child" {
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
		time.Sleep(10 * time.Minute)
		return nil
	}
	signal.Ignore(syscall.SIGTERM)
	for range 3 {
		cmd := exec.Command("/bin/sh", "-c", `setsid "$0" daemon "$1" child & exec true`, os.Args[0], args[0])
		if err := cmd.Run(); err != nil {
			return err
		}
	}
	fmt.Println("daemons left")
	if len(args) > 1 && args[1] == "stay" {
		time.Sleep(10 * time.Minute)
	}
	return nil
}

// sleep waits; on TERM it says so and ends.
func sleep([]string) error {
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	fmt.Println("sleeping")
	select {
	case <-terms:
		fmt.Println("got TERM")
	case <-time.After(10 * time.Minute):
	}
	return nil
}

func exit(args []string) error {
	if sig, is := strings.CutPrefix(args[0], "-"); is {
		n, _ := strconv.Atoi(sig)
		_ = syscall.Kill(os.Getpid(), syscall.Signal(n))
		time.Sleep(time.Minute)
	}
	code, _ := strconv.Atoi(args[0])
	os.Exit(code)
	return nil
}

func printSecret([]string) error {
	b, err := os.ReadFile(filepath.Join(os.Getenv("ROADSTEAD_SECRETS"), "token"))
	fmt.Printf("the token is %s!\n", b)
	return err
}

// leave makes outputs that are traps for who reads or removes them.
func leave([]string) error {
	out := os.Getenv("ROADSTEAD_OUTPUTS")
	return errors.Join(os.Symlink("/etc/shadow", filepath.Join(out, "link")), os.Symlink("/etc", filepath.Join(out, "dir")),
		os.MkdirAll(filepath.Join(out, "shut/in"), 0o700), os.Chmod(filepath.Join(out, "shut"), 0))
}

// runner is a runner that starts one Attempt and then does nothing: args are its configuration and its Spec.
func runner(args []string) error {
	var c executor.Config
	var s executor.Spec
	if err := errors.Join(json.Unmarshal([]byte(args[0]), &c), json.Unmarshal([]byte(args[1]), &s)); err != nil {
		return err
	}
	e, err := executor.New(c)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if _, err := e.Prepare(ctx, s.AttemptID); err != nil {
		return err
	}
	if _, err := e.Start(ctx, s); err != nil {
		return err
	}
	fmt.Println("started")
	time.Sleep(10 * time.Minute)
	return nil
}

// probe says what is missing on this machine for this user.
func probe(args []string) error {
	var c executor.Config
	if err := json.Unmarshal([]byte(args[0]), &c); err != nil {
		return err
	}
	e, err := executor.New(c)
	if err != nil {
		return err
	}
	for _, m := range e.Probe(context.Background()).Missing {
		fmt.Println(m)
	}
	_, err = e.Prepare(context.Background(), "att_1")
	fmt.Println("prepare:", err)
	return nil
}
