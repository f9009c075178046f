package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// DropScratch removes what the job wrote for itself only.
func (f Folder) DropScratch() error {
	return errors.Join(wipe(f.Scratch()), wipe(f.Temp()))
}

// Drop removes the whole folder.
func (f Folder) Drop() error { return wipe(string(f)) }

// wipe removes a tree that a stranger made. Removal never follows a link (unlinkat, a folder at a time). Only where we are
// not root can the stranger's modes stand in the way: then they are opened first.
func wipe(dir string) error {
	err := os.RemoveAll(dir)
	if errors.Is(err, fs.ErrPermission) {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error { // RemoveAll says what is still closed
			if d != nil && d.IsDir() {
				return os.Chmod(path, 0o700)
			}
			return nil
		})
		err = os.RemoveAll(dir)
	}
	if err != nil {
		return fmt.Errorf("wipe a folder of an Attempt: %w", err)
	}
	return nil
}
