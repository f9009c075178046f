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
	"unicode/utf8"
)

// entry is one entry of a package that was found harmless.
type entry struct {
	name string // clean, relative, with forward slashes
	dir  bool
	exec bool
	size int64
}

// packageEntry refuses everything that is not a plain file or folder inside the archive's own tree.
func packageEntry(h *tar.Header) (entry, error) {
	name, err := cleanName(h.Name)
	if err != nil {
		return entry{}, err
	}
	if h.Mode&0o7000 != 0 {
		return entry{}, refused(h.Name, "has a set-user-id, set-group-id or sticky bit")
	}
	e := entry{name: name, exec: h.Mode&0o111 != 0}
	switch h.Typeflag {
	case tar.TypeDir:
		e.dir = true
	case tar.TypeReg, tar.TypeGNUSparse:
		if name == "." || strings.HasSuffix(h.Name, "/") {
			return entry{}, refused(h.Name, "is a file with the name of a folder")
		}
		e.size = h.Size
	case tar.TypeSymlink, tar.TypeLink:
		return entry{}, refused(h.Name, "is a link")
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return entry{}, refused(h.Name, "is a device or pipe")
	default:
		return entry{}, refused(h.Name, fmt.Sprintf("has the unknown type %q", h.Typeflag))
	}
	return e, nil
}

// cleanName is the name without a leading "./" and a trailing "/"; a name that leaves the tree or that two systems would
// read differently is refused.
func cleanName(name string) (string, error) {
	switch {
	case name == "":
		return "", refused("", "holds an entry without a name")
	case len(name) > maxName:
		return "", refused(name, fmt.Sprintf("is longer than %d bytes", maxName))
	case strings.HasPrefix(name, "/"):
		return "", refused(name, "is absolute")
	case !utf8.ValidString(name) || strings.ContainsAny(name, "\x00\\"):
		return "", refused(name, "has a name that is not UTF-8 or holds a backslash or NUL")
	}
	parts := strings.Split(name, "/")
	if len(parts) > maxDepth {
		return "", refused(name, fmt.Sprintf("lies deeper than %d folders", maxDepth))
	}
	for _, part := range parts {
		if part == ".." {
			return "", refused(name, `contains ".."`)
		}
		if len(part) > maxPart {
			return "", refused(name, fmt.Sprintf("has a part longer than %d bytes", maxPart))
		}
	}
	return path.Clean(name), nil
}

// tree remembers the names so far: true for a folder, false for a file. Two entries of one name would let what was
// checked be replaced by what comes later; a file used as a folder is such a pair in disguise.
type tree map[string]bool

func (t tree) add(e entry) error {
	for parent := path.Dir(e.name); parent != "."; parent = path.Dir(parent) {
		isDir, known := t[parent]
		if known && !isDir {
			return refused(e.name, fmt.Sprintf("lies under %q, which is a file", parent))
		}
		if known {
			break
		}
		t[parent] = true
	}
	isDir, known := t[e.name]
	if known && (!isDir || !e.dir) {
		return refused(e.name, "is there twice")
	}
	t[e.name] = e.dir
	return nil
}

// makeDir makes a folder and those above it that are missing, each with its mode whatever the umask is.
func makeDir(root *os.Root, name string) error {
	err := root.Mkdir(name, 0o755)
	if errors.Is(err, fs.ErrNotExist) && name != "." {
		if err := makeDir(root, path.Dir(name)); err != nil {
			return err
		}
		err = root.Mkdir(name, 0o755)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return fmt.Errorf("make the folder %q: %w", name, err)
	}
	if err := root.Chmod(name, 0o755); err != nil {
		return fmt.Errorf("open the folder %q to its readers: %w", name, err)
	}
	return nil
}

func writeFile(root *os.Root, e entry, content io.Reader) error {
	if parent := path.Dir(e.name); parent != "." {
		if err := makeDir(root, parent); err != nil {
			return err
		}
	}
	mode := fs.FileMode(0o644)
	if e.exec {
		mode = 0o755
	}
	f, err := root.OpenFile(e.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("create %q: %w", e.name, err)
	}
	_, err = io.Copy(f, content)
	// The mode a program was packed with must not hang on the umask of whoever unpacks it.
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return fmt.Errorf("write %q: %w", e.name, err)
	}
	return nil
}
