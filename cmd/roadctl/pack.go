package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// pack writes a folder as a tar.gz whose bytes depend on names, contents and what may be executed only: the same folder
// gives the same digest wherever and whenever it is packed. The folder .git is left out. Links and devices are refused,
// as the server would.
func pack(root string, out io.Writer) error {
	zipped := gzip.NewWriter(out)
	archive := tar.NewWriter(zipped)
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error { // in the order of names
		if err != nil || file == root {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		if !d.IsDir() && !d.Type().IsRegular() {
			return usagef("%s is neither a file nor a folder; a package has no links or devices", printable(file))
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		return packOne(archive, file, filepath.ToSlash(name), d)
	})
	if err != nil {
		return fmt.Errorf("pack %s: %w", root, err)
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		return fmt.Errorf("pack %s: %w", root, err)
	}
	return nil
}

func packOne(archive *tar.Writer, file, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: info.Size(), ModTime: time.Unix(0, 0)}
	switch {
	case d.IsDir():
		h.Typeflag, h.Name, h.Mode, h.Size = tar.TypeDir, name+"/", 0o755, 0
	case info.Mode()&0o111 != 0:
		h.Mode = 0o755
	}
	if err := archive.WriteHeader(h); err != nil || d.IsDir() {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	n, err := io.Copy(archive, io.LimitReader(f, info.Size()))
	if err == nil && n < info.Size() {
		err = fmt.Errorf("%s became shorter while it was packed", file)
	}
	return err
}
