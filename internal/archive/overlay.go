package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// overlay applies one layer of an image to the tree below root. Every path is resolved inside root by the kernel's own
// means (os.Root), so a link that an earlier entry planted leads nowhere outside.
type overlay struct {
	root  *os.Root
	fresh map[string]struct{} // names this layer wrote: its own "opaque" mark doesn't remove them
}

const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

func (o overlay) apply(name string, h *tar.Header, content io.Reader) error {
	base := path.Base(name)
	switch {
	case name == ".", strings.HasPrefix(name, "dev/"):
		return nil
	case base == opaque:
		return o.empty(path.Dir(name))
	case strings.HasPrefix(base, whiteout):
		return o.remove(path.Join(path.Dir(name), strings.TrimPrefix(base, whiteout)))
	}
	o.mark(name)
	if parent := path.Dir(name); parent != "." {
		if err := o.folder(parent); err != nil {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return o.folder(name)
	case tar.TypeReg, tar.TypeGNUSparse:
		return o.file(name, h, content)
	case tar.TypeSymlink:
		return o.replace(name, func() error { return o.root.Symlink(h.Linkname, name) })
	case tar.TypeLink:
		target, err := cleanName(h.Linkname)
		if err != nil {
			return err
		}
		if target == name {
			return nil
		}
		return o.replace(name, func() error { return o.root.Link(target, name) })
	default:
		return refused(name, "is a device, pipe or something unknown")
	}
}

// mark remembers a name and the folders above it.
func (o overlay) mark(name string) {
	for ; name != "."; name = path.Dir(name) {
		o.fresh[name] = struct{}{}
	}
}

// folder makes sure that name is a folder: what is one stays, a link that leads to one inside the tree stays too.
func (o overlay) folder(name string) error {
	if info, err := o.root.Stat(name); err == nil && info.IsDir() {
		return nil
	}
	if info, err := o.root.Lstat(name); err == nil && !info.IsDir() {
		if err := o.remove(name); err != nil {
			return err
		}
	}
	if err := makeDir(o.root, name); err != nil {
		return blame(name, err)
	}
	return nil
}

func (o overlay) file(name string, h *tar.Header, content io.Reader) error {
	mode := fs.FileMode(h.Mode&0o777) | 0o444
	if mode&0o111 != 0 {
		mode |= 0o111
	}
	return o.replace(name, func() error {
		f, err := o.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(err, f.Chmod(mode), f.Close())
	})
}

// replace removes what has the name, unless nothing has, and makes the new thing.
func (o overlay) replace(name string, create func() error) error {
	if err := o.remove(name); err != nil {
		return err
	}
	return blame(name, create())
}

// remove takes name away with all below it.
func (o overlay) remove(name string) error {
	if base := path.Base(name); base == "." || base == ".." || base == "" {
		return refused(name, "removes a folder that has no name")
	}
	return blame(name, o.root.RemoveAll(name))
}

// empty removes what lower layers put into the folder and leaves what this layer did.
func (o overlay) empty(name string) error {
	d, err := o.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return blame(name, err)
	}
	names, err := d.Readdirnames(-1)
	if err := errors.Join(err, d.Close()); err != nil {
		return blame(name, err)
	}
	for _, n := range names {
		child := path.Join(name, n)
		if _, own := o.fresh[child]; own {
			continue
		}
		if err := o.remove(child); err != nil {
			return err
		}
	}
	return nil
}

// blame says which entry could not be applied. That a path leads outside the tree is the image's doing.
func blame(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "escapes from parent"): // os.Root has no exported error for it
		return refused(name, "leads out of the image")
	}
	return fmt.Errorf("apply %q: %w", name, err)
}
