package supervisor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roadstead/roadstead/internal/executor/cgroup"
	"github.com/roadstead/roadstead/internal/executor/folder"
)

// meter measures what a job has on the disk: blocks of all it can write to, and of files that it deleted and still holds
// open. It is a look and no wall: a job can be over its limit by what the disk takes between two looks, a tenth of a second
// in a small tree and up to maxPause in one that takes long to walk. One single file can't grow past the limit at all
// (RLIMIT_FSIZE).
type meter struct {
	work  string
	group cgroup.Group
	next  time.Time // not before
}

const (
	pause    = 4 // times as long as a look took: a fifth of a processor at most goes into looking
	maxPause = 2 * time.Second
)

// due measures when it is time to; between looks it says 0.
func (m *meter) due(limit int64) int64 {
	from := time.Now()
	if from.Before(m.next) {
		return 0
	}
	total := m.measure(limit)
	m.next = time.Now().Add(min(pause*time.Since(from), maxPause))
	return total
}

func newMeter(f folder.Folder, g cgroup.Group) *meter { return &meter{work: f.Work(), group: g} }

// perEntry is what a name costs at least, so that a flood of empty files is over the limit too.
const perEntry = 4 << 10

// blockSize is the unit of st_blocks.
const blockSize = 512

type file struct{ dev, ino uint64 }

// measure adds up; it stops once the limit is passed. What can't be measured counts as just too much: a tree deeper than a path
// can name, or a folder locked away from us.
func (m *meter) measure(limit int64) (total int64) {
	seen := map[file]struct{}{}
	add := func(st *unix.Stat_t) {
		total += perEntry
		id := file{st.Dev, st.Ino}
		if _, again := seen[id]; again {
			return
		}
		if st.Nlink > 1 || st.Nlink == 0 {
			seen[id] = struct{}{}
		}
		total += max(st.Blocks*blockSize-perEntry, 0)
	}
	err := filepath.WalkDir(m.work, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &st)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // gone between listing and looking
			return nil
		case err != nil:
			return err
		}
		if add(&st); total > limit {
			return fs.SkipAll
		}
		return nil
	})
	if err != nil {
		return limit + 1
	}
	if total <= limit {
		m.deleted(add)
	}
	return total
}

// deleted calls add for each deleted file that a process of the group holds open or has mapped.
func (m *meter) deleted(add func(*unix.Stat_t)) {
	var home unix.Stat_t
	if unix.Stat(m.work, &home) != nil {
		return
	}
	pids, err := m.group.Pids()
	if err != nil {
		return
	}
	for _, pid := range pids {
		for _, kind := range []string{"fd", "map_files"} {
			dir := filepath.Join("/proc", strconv.Itoa(pid), kind)
			held, err := os.ReadDir(dir)
			if err != nil {
				continue // the process is gone
			}
			for _, h := range held {
				var st unix.Stat_t
				if unix.Stat(filepath.Join(dir, h.Name()), &st) == nil && st.Nlink == 0 && st.Dev == home.Dev && st.Mode&unix.S_IFMT == unix.S_IFREG {
					add(&st)
				}
			}
		}
	}
}
