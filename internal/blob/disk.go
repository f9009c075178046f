// Package blob keeps the bytes of objects on disk, named by their digest.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/fault"
)

// Config says where objects live and how much of the disk is not theirs.
type Config struct {
	Dir     string // made if it isn't there
	Reserve int64  // bytes of the disk kept free for the database and for deleting; uploads stop before
}

// Validate refuses a configuration that makes no sense, naming the field.
func (c Config) Validate() error {
	switch {
	case c.Dir == "":
		return fault.Invalid("Dir", "must be set")
	case c.Reserve < 0:
		return fault.Invalid("Reserve", "must not be negative")
	}
	return nil
}

// Disk keeps objects in a folder of the local disk. A file is written under tmp or uploads, flushed, renamed to
// its digest's name and its folder flushed before anybody hears of it, so a name is only ever on whole content. No
// name comes from a client.
type Disk struct {
	objects, tmp, uploads string
	reserve               int64
	lock                  *os.File

	buffers sync.Pool // of *[]byte, bufferSize long

	mu     sync.Mutex
	active map[string]struct{} // uploads that are being appended to, sealed or discarded

	// The kernel's answers, replaced by tests that need a full or failing disk.
	sync func(*os.File) error
	free func(dir string) (int64, error)
}

var _ artifacts.Blobs = (*Disk)(nil)

const (
	bufferSize = 256 << 10
	dirMode    = 0o700
)

// New opens the folder for this process alone and removes what unfinished writes of earlier ones left there. Resumable
// uploads are kept: they go on.
func New(cfg Config) (*Disk, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	d := &Disk{
		objects: filepath.Join(cfg.Dir, "objects"),
		tmp:     filepath.Join(cfg.Dir, "tmp"),
		uploads: filepath.Join(cfg.Dir, "uploads"),
		reserve: cfg.Reserve,
		buffers: sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }},
		active:  map[string]struct{}{},
		sync:    (*os.File).Sync,
		free:    freeBytes,
	}
	for _, dir := range []string{d.objects, d.tmp, d.uploads} {
		if err := os.MkdirAll(dir, dirMode); err != nil {
			return nil, fmt.Errorf("making the object folder: %w", err)
		}
	}
	if err := d.syncDir(cfg.Dir); err != nil {
		return nil, fmt.Errorf("making the object folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(cfg.Dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the object folder: %w", err)
	}
	// The kernel lets go of the lock when the process ends, however it ends.
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("object folder %s is in use by another process: %w", cfg.Dir, err), lock.Close())
	}
	d.lock = lock
	if err := d.clean(); err != nil {
		return nil, errors.Join(fmt.Errorf("removing leftovers: %w", err), d.Close())
	}
	return d, nil
}

// Close gives the folder free for another process.
func (d *Disk) Close() error { return d.lock.Close() }

// clean removes unfinished writes; the lock says that nobody is at work on them.
func (d *Disk) clean() error {
	left, err := os.ReadDir(d.tmp)
	if err != nil {
		return err
	}
	for _, e := range left {
		if err := os.Remove(filepath.Join(d.tmp, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Open is artifacts.Blobs's.
func (d *Disk) Open(_ context.Context, digest string) (*os.File, error) {
	path, err := d.path(digest)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Missing("object")
	}
	return f, err
}

// path is where the object of a digest lies: two levels of folders keep each small.
func (d *Disk) path(digest string) (string, error) {
	hex, err := artifacts.ParseDigest("digest", digest)
	if err != nil {
		return "", err
	}
	return filepath.Join(d.objects, hex[:2], hex[2:4], hex), nil
}

// publish gives a written and flushed file its digest's name, durably. An object of that name is replaced by the same
// content: that is simpler than asking, and leaves no moment at which another writer's unflushed rename is relied on.
func (d *Disk) publish(file, digest string) error {
	path, err := d.path(digest)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return err
	}
	if err := os.Rename(file, path); err != nil {
		return err
	}
	for _, made := range []string{dir, filepath.Dir(dir), d.objects} {
		if err := d.syncDir(made); err != nil {
			return err
		}
	}
	return nil
}

func (d *Disk) syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.sync(f), f.Close())
}

// failed gives an error of the disk its code: a full disk is a refusal, everything else is ours.
func failed(what string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fault.Wrap(fault.CapacityExceeded, err, "the server's disk is full")
	}
	return fmt.Errorf("%s: %w", what, err)
}
