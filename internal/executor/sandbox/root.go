package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// rootEntry is one name in the root of the sandbox: a read-only copy of something, or a link.
type rootEntry struct {
	target string // absolute, in the sandbox
	source string // absolute, on the host
	link   string // where the link leads; source is "" then
	dir    bool
}

// own are the names in the root that the sandbox fills itself, whatever an image has there.
var own = []string{"proc", "dev", "tmp", "sys", strings.TrimPrefix(Home, "/")}

// hostPrograms are the host's folders a job without an image sees. Of /etc only what programs need to resolve names and
// libraries: the rest is about the host.
var (
	hostPrograms = []string{"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"}
	hostSettings = []string{
		"alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types", "nsswitch.conf", "os-release", "protocols",
		"services", "ssl/certs", "ca-certificates", "hosts", "resolv.conf",
	}
)

// rootEntries lists what the root consists of: the entries of an image one by one, so that the root itself is an empty
// folder of the sandbox's own into which the rest can be mounted, or the host's programs.
func rootEntries(rootfs string) ([]rootEntry, error) {
	if rootfs == "" {
		return hostEntries()
	}
	listed, err := os.ReadDir(rootfs)
	if err != nil {
		return nil, fmt.Errorf("list the image: %w", err)
	}
	var all []rootEntry
	for _, d := range listed {
		if slices.Contains(own, d.Name()) {
			continue
		}
		e, err := oneEntry(filepath.Join(rootfs, d.Name()), "/"+d.Name())
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

func hostEntries() ([]rootEntry, error) {
	var all []rootEntry
	for _, name := range hostPrograms {
		e, err := oneEntry("/"+name, "/"+name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	for _, name := range hostSettings {
		// A link in /etc leads to what it means on the host; the sandbox gets that, under the name of the link.
		source, err := filepath.EvalSymlinks(filepath.Join("/etc", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find /etc/%s: %w", name, err)
		}
		e, err := oneEntry(source, "/etc/"+name)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

func oneEntry(source, target string) (rootEntry, error) {
	info, err := os.Lstat(source)
	if err != nil {
		return rootEntry{}, fmt.Errorf("look at %s: %w", target, err)
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return rootEntry{target: target, source: source, dir: info.IsDir()}, nil
	}
	link, err := os.Readlink(source)
	if err != nil {
		return rootEntry{}, fmt.Errorf("look at %s: %w", target, err)
	}
	return rootEntry{target: target, link: link}, nil
}

// joinNul is the form in which bubblewrap reads arguments from a file.
func joinNul(args []string) []byte {
	var b bytes.Buffer
	for _, a := range args {
		b.WriteString(a)
		b.WriteByte(0)
	}
	return b.Bytes()
}

// inMemory is a file of the content that is on no disk, open at its beginning.
func inMemory(content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("roadstead", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "memory")
	if _, err := f.WriteAt(content, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("fill a file in memory: %w", err), f.Close())
	}
	return f, nil
}

// reopened is the same file again, with a life of its own.
func reopened(f *os.File) (*os.File, error) {
	again, err := os.Open("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	if err != nil {
		return nil, fmt.Errorf("open the program again: %w", err)
	}
	return again, nil
}
