package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Host says where the kernel shows its control groups. The zero value is this machine.
type Host struct {
	Mount string // "" means /sys/fs/cgroup
	Self  string // the file that says which groups this process is in; "" means /proc/self/cgroup
}

// Tree is the place where groups are made: in the group of this process, so that whatever limits this process limits
// its jobs too.
type Tree struct {
	unified bool
	bases   map[string]string // controller -> folder
	own     string            // version 2: this process's own group
	missing []string
}

const prefix = "roadstead-"

// Find looks which of the kernel's two interfaces is there and where this process may make groups. It changes nothing.
func Find(h Host) (Tree, error) {
	if h.Mount == "" {
		h.Mount = "/sys/fs/cgroup"
	}
	if h.Self == "" {
		h.Self = "/proc/self/cgroup"
	}
	b, err := os.ReadFile(h.Self)
	if err != nil {
		return Tree{}, fmt.Errorf("find this process's control group: %w", err)
	}
	paths := map[string]string{} // "" is version 2
	for line := range strings.Lines(string(b)) {
		if parts := strings.SplitN(strings.TrimSpace(line), ":", 3); len(parts) == 3 {
			for name := range strings.SplitSeq(parts[1], ",") {
				paths[name] = parts[2]
			}
		}
	}
	t := Tree{unified: exists(filepath.Join(h.Mount, "cgroup.controllers")), bases: map[string]string{}}
	if t.unified {
		t.own = within(h.Mount, paths[""])
		offered, err := os.ReadFile(filepath.Join(t.own, "cgroup.controllers"))
		if err != nil {
			return Tree{}, fmt.Errorf("find the controllers of this process's control group: %w", err)
		}
		for _, c := range controllers(true) {
			if !contains(offered, c) {
				t.missing = append(t.missing, c)
			}
			t.bases[c] = t.own
		}
		return t, nil
	}
	for _, c := range controllers(false) {
		mount := filepath.Join(h.Mount, c)
		if path, in := paths[c]; in && exists(mount) {
			t.bases[c] = within(mount, path)
		} else {
			t.missing = append(t.missing, c)
		}
	}
	return t, nil
}

// within is the group's folder, or the root of what is mounted where a container sees only its own part.
func within(mount, path string) string {
	if dir := filepath.Join(mount, path); exists(dir) {
		return dir
	}
	return mount
}

// Group is the group of that name, whether it exists or not.
func (t Tree) Group(name string) Group {
	g := Group{Unified: t.unified, Dirs: map[string]string{}}
	for c, base := range t.bases {
		g.Dirs[c] = filepath.Join(base, prefix+name)
	}
	return g
}

// Prepare makes way for groups and tries one out. What it returns is why limits can't be enforced here.
func (t Tree) Prepare() error {
	if len(t.missing) > 0 {
		return fmt.Errorf("the kernel does not offer the controllers %s to this process", strings.Join(t.missing, ", "))
	}
	if t.unified {
		if err := t.delegate(); err != nil {
			return err
		}
	}
	g, err := t.Create(fmt.Sprintf("probe-%d", os.Getpid()), Limits{Memory: 64 << 20, CPUMilli: 1000, Pids: 16})
	if err != nil {
		return err
	}
	_, err = g.Usage()
	return errors.Join(err, g.Remove())
}

// delegate lets groups below this process's own have limits. Version 2 allows that only to a group that holds no
// processes itself, so this process and those beside it move one down first.
func (t Tree) delegate() error {
	err := enable(t.own)
	if !errors.Is(err, unix.EBUSY) {
		return err
	}
	if err := t.stepDown(); err != nil {
		return err
	}
	return enable(t.own)
}

func (t Tree) stepDown() error {
	leaf := filepath.Join(t.own, prefix+"runner")
	if err := os.MkdirAll(leaf, 0o755); err != nil {
		return fmt.Errorf("make the runner's own control group: %w", err)
	}
	pids, err := Group{Unified: true, Dirs: map[string]string{"memory": t.own}}.Pids()
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if err := put(filepath.Join(leaf, "cgroup.procs"), strconv.Itoa(pid)); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("move the runner into its own control group: %w", err)
		}
	}
	return nil
}

func enable(dir string) error {
	if err := put(filepath.Join(dir, "cgroup.subtree_control"), "+memory +cpu +pids"); err != nil {
		return fmt.Errorf("enable the controllers of %s: %w", filepath.Base(dir), err)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func contains(words []byte, word string) bool {
	for w := range strings.FieldsSeq(string(words)) {
		if w == word {
			return true
		}
	}
	return false
}
