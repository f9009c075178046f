package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/roadstead/roadstead/internal/fault"
)

// dataDir is the data directory, held by this process alone: two servers on one directory would each sweep away what
// the other is writing.
type dataDir struct {
	path string
	lock *os.File
}

// openDataDir makes the directory if there is none and locks it. The lock goes with the process, however it ends.
func openDataDir(path string) (*dataDir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("finding the data directory: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the data directory: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fault.New(fault.Conflict, "another server uses the data directory %s", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &dataDir{path: path, lock: f}, nil
}

func (d *dataDir) file(name string) string { return filepath.Join(d.path, name) }

// Close lets the next server have the directory.
func (d *dataDir) Close() error { return d.lock.Close() }

// writeSecret writes a file that only its owner can read, whole or not at all, and durably.
func writeSecret(name, text string) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".secret-*") // made with mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
