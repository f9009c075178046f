package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/archive"
	"github.com/roadstead/roadstead/internal/fault"
)

// cache keeps unpacked packages and images by digest. Only what the server has just named for an Attempt is
// looked up in it, so nothing reaches a tenant that the server would not give him.
type cache struct {
	dir string
	max int64

	mu     sync.Mutex
	filled map[string]*sync.Mutex // one fills a folder at a time
	pins   map[string]int         // Attempts that use a folder
}

const packageEntries = 100_000

func openCache(dir string, most int64) (*cache, error) {
	c := &cache{dir: dir, max: most, filled: map[string]*sync.Mutex{}, pins: map[string]int{}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the runner's cache: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "new-") { // half a folder of an earlier process
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return nil, fmt.Errorf("clearing the runner's cache: %w", err)
			}
		}
	}
	return c, nil
}

// folder gives the unpacked object, fetched if it isn't there, and pins it for the Attempt's life.
func (c *cache) folder(ctx context.Context, r *Runner, h *held, o *api.JobObject, image bool) (string, error) {
	if o == nil {
		return "", nil
	}
	name := strings.TrimPrefix(o.Digest, "sha256:")
	if len(name) != 64 || strings.ContainsAny(name, "/.") {
		return "", fault.Invalid("digest", "%q is no sha256 digest", o.Digest)
	}
	c.mu.Lock()
	lock := c.filled[name]
	if lock == nil {
		lock = &sync.Mutex{}
		c.filled[name] = lock
	}
	c.pins[name]++
	c.mu.Unlock()
	context.AfterFunc(ctx, func() { c.unpin(name) }) // the Attempt's context ends with it
	lock.Lock()
	defer lock.Unlock()
	path := filepath.Join(c.dir, name)
	now := time.Now()
	if err := os.Chtimes(path, now, now); err == nil {
		return path, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	c.makeRoom()
	return path, c.fill(ctx, r, h, *o, image, path)
}

// fill fetches and unpacks; the folder appears whole or not at all.
func (c *cache) fill(ctx context.Context, r *Runner, h *held, o api.JobObject, image bool, path string) (err error) {
	tmp, err := os.MkdirTemp(c.dir, "new-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(tmp, "archive"))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // removed in a moment
	if err := r.client.fetch(ctx, h, o, f); err != nil {
		return err
	}
	if err := checkDigest(f, o); err != nil {
		return err
	}
	tree := filepath.Join(tmp, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		return err
	}
	limits := archive.Limits{Entries: packageEntries, Bytes: max(c.max, 1<<30)}
	if image {
		_, err = archive.UnpackImage(ctx, f.Name(), tree, tmp, limits)
	} else if _, err = f.Seek(0, 0); err == nil {
		err = archive.Unpack(f, tree, limits)
	}
	if err != nil {
		return err
	}
	if err := os.Rename(tree, path); err != nil {
		return err
	}
	return syncFolder(c.dir)
}

func (c *cache) unpin(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pins[name]--; c.pins[name] <= 0 {
		delete(c.pins, name)
	}
}

// makeRoom removes what was used longest ago until the cache is under its size; what an Attempt uses stays.
func (c *cache) makeRoom() {
	type kept struct {
		name string
		used time.Time
		size int64
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return // the next one tries again
	}
	var all []kept
	var total int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || strings.HasPrefix(e.Name(), "new-") {
			continue
		}
		k := kept{e.Name(), info.ModTime(), sizeOf(filepath.Join(c.dir, e.Name()))}
		all, total = append(all, k), total+k.size
	}
	slices.SortFunc(all, func(a, b kept) int { return cmp.Compare(a.used.UnixNano(), b.used.UnixNano()) })
	for _, k := range all {
		if total <= c.max {
			return
		}
		c.mu.Lock()
		if c.pins[k.name] == 0 && c.drop(k.name) == nil {
			total -= k.size
		}
		c.mu.Unlock()
	}
}

// drop removes a folder. It loses its name first: half a folder must not be taken for a whole one.
func (c *cache) drop(name string) error {
	old := filepath.Join(c.dir, "new-"+name)
	if err := os.Rename(filepath.Join(c.dir, name), old); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

func sizeOf(dir string) (total int64) {
	// What can't be looked at counts as nothing.
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil
	})
	return total
}
