// Package archive opens archives of strangers: a tar is checked or unpacked entry by entry inside one folder and within
// limits, and an image becomes the folder tree that its layers add up to.
package archive

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/roadstead/roadstead/internal/fault"
)

// Limits bound what an archive may become once it is unpacked. Every field must be above zero.
type Limits struct {
	Entries int   // files, folders and links together
	Bytes   int64 // of all files together, unpacked; a file of holes counts as long as it looks
}

// Validate refuses limits that bound nothing, naming the field.
func (l Limits) Validate() error {
	switch {
	case l.Entries <= 0:
		return fault.Invalid("Entries", "must be above 0")
	case l.Bytes <= 0:
		return fault.Invalid("Bytes", "must be above 0")
	}
	return nil
}

const (
	maxName   = 4096
	maxPart   = 255
	maxDepth  = 64
	maxHeader = 4 << 10 // bytes of the stream that an entry may cost beside its content, on average
)

// Check reads a tar, gzipped or not, to its end and refuses the first entry that Unpack would refuse, by name. A package
// is files and folders only: links, devices, pipes, absolute names, "..", set-user-id bits, an entry named twice and
// anything beyond the limits are refused, because each is a way out of the folder or onto its neighbours.
func Check(r io.Reader, l Limits) error {
	return read(r, l, func(_ entry, content io.Reader) error {
		_, err := io.Copy(io.Discard, content)
		return err
	})
}

// Unpack writes a tar, gzipped or not, into dir, which must exist and be empty. It refuses what Check refuses. Files
// come out as 0644, or 0755 where the archive says executable, folders as 0755, all of them owned by the caller, and
// they are on the disk when it returns. What a failing Unpack leaves in dir is the caller's to remove.
func Unpack(r io.Reader, dir string, l Limits) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open the folder to unpack into: %w", err)
	}
	defer root.Close()
	err = read(r, l, func(e entry, content io.Reader) error {
		if e.dir {
			return makeDir(root, e.name)
		}
		return writeFile(root, e, content)
	})
	if err != nil {
		return err
	}
	return flush(root)
}

// flush puts everything under root on the disk with one call instead of one for each file.
func flush(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return fmt.Errorf("open the unpacked folder: %w", err)
	}
	defer d.Close()
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return fmt.Errorf("flush the unpacked folder: %w", err)
	}
	return nil
}

// read calls visit with each entry in turn, after its name, kind and size were found harmless.
func read(r io.Reader, l Limits, visit func(entry, io.Reader) error) error {
	if err := l.Validate(); err != nil {
		return err
	}
	stream, err := plain(r)
	if err != nil {
		return err
	}
	b := budget{Limits: l}
	seen := tree{}
	for t := tar.NewReader(b.bounded(stream)); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return unreadable(err)
		}
		e, err := packageEntry(h)
		if err != nil {
			return err
		}
		if e.name == "." {
			continue
		}
		if err := seen.add(e); err != nil {
			return err
		}
		if err := b.spend(e); err != nil {
			return err
		}
		if err := visit(e, t); err != nil {
			return unreadable(err)
		}
	}
}

// plain undoes gzip where the stream starts like one.
func plain(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(r)
	magic, err := buffered.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	if len(magic) < 2 {
		return nil, refused("", "is empty")
	}
	if magic[0] != 0x1f || magic[1] != 0x8b {
		return buffered, nil
	}
	unzipped, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, unreadable(err)
	}
	return unzipped, nil
}

// unreadable blames the archive for what its format is to blame for and passes on the rest: a full disk is no bad input.
func unreadable(err error) error {
	for _, format := range []error{tar.ErrHeader, tar.ErrFieldTooLong, gzip.ErrHeader, gzip.ErrChecksum, io.ErrUnexpectedEOF} {
		if errors.Is(err, format) {
			return refused("", "is not a readable tar or tar.gz: "+strings.TrimPrefix(err.Error(), "archive/tar: "))
		}
	}
	return err
}

// budget counts what was unpacked against the limits.
type budget struct {
	Limits
	entries int
	bytes   int64
}

// spend counts one more entry, before any of it is written.
func (b *budget) spend(e entry) error {
	b.entries++
	b.bytes += e.size
	switch {
	case b.entries > b.Entries:
		return tooLarge(e.name, "is entry %d; at most %d are allowed", b.entries, b.Entries)
	case b.bytes > b.Bytes:
		return tooLarge(e.name, "brings the archive to %d bytes unpacked; at most %d are allowed", b.bytes, b.Bytes)
	}
	return nil
}

// bounded ends a stream that says little at great length: headers and padding are no content, yet cost time to read.
func (b *budget) bounded(r io.Reader) io.Reader {
	return &bounded{r: r, left: b.Bytes + int64(b.Entries)*maxHeader + 1<<20}
}

type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, tooLarge("", "is longer than its limits allow any archive to be")
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// refused names the entry and what is wrong with it.
func refused(name, problem string) error {
	return fault.Invalid("archive", "%s %s", subject(name), problem)
}

func tooLarge(name, format string, args ...any) error {
	return fault.New(fault.TooLarge, "archive: %s %s", subject(name), fmt.Sprintf(format, args...))
}

func subject(name string) string {
	if name == "" {
		return "it"
	}
	return fmt.Sprintf("entry %.200q", name)
}
