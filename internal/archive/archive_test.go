package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/roadstead/roadstead/internal/archive"
	"github.com/roadstead/roadstead/internal/fault"
)

var room = archive.Limits{Entries: 100, Bytes: 1 << 20}

// made is a tar of the headers, each with its content; a header without a type is a file, one without a mode 0644.
func made(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range entries {
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(bytes.Repeat([]byte("x"), int(h.Size))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func gzipped(t *testing.T, plain []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A package that would reach out of its folder, or that is larger than allowed, is refused with the name of the entry,
// by Check as by Unpack, and nothing appears beside the folder.
func TestHostileArchivesAreRefused(t *testing.T) {
	const sticky, setuid = 0o1755, 0o4755
	long := strings.Repeat("a", 300)
	for name, c := range map[string]struct {
		entries []tar.Header
		says    string
		code    fault.Code
	}{
		"dots":            {[]tar.Header{{Name: "a/../../evil", Size: 1}}, `"a/../../evil" contains ".."`, fault.InvalidInput},
		"dots at the end": {[]tar.Header{{Name: "a/..", Typeflag: tar.TypeDir}}, `contains ".."`, fault.InvalidInput},
		"absolute":        {[]tar.Header{{Name: "/etc/evil", Size: 1}}, "is absolute", fault.InvalidInput},
		"symbolic link":   {[]tar.Header{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc"}}, `"l" is a link`, fault.InvalidInput},
		"link then file":  {[]tar.Header{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "l/evil", Size: 1}}, "is a link", fault.InvalidInput},
		"hard link":       {[]tar.Header{{Name: "l", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}}, "is a link", fault.InvalidInput},
		"device":          {[]tar.Header{{Name: "disk", Typeflag: tar.TypeBlock, Devmajor: 8}}, "is a device or pipe", fault.InvalidInput},
		"terminal":        {[]tar.Header{{Name: "tty", Typeflag: tar.TypeChar}}, "is a device or pipe", fault.InvalidInput},
		"pipe":            {[]tar.Header{{Name: "pipe", Typeflag: tar.TypeFifo}}, "is a device or pipe", fault.InvalidInput},
		"unknown type":    {[]tar.Header{{Name: "z", Typeflag: 'Z'}}, "unknown type", fault.InvalidInput},
		"setuid":          {[]tar.Header{{Name: "su", Mode: setuid}}, "set-user-id", fault.InvalidInput},
		"sticky folder":   {[]tar.Header{{Name: "d", Typeflag: tar.TypeDir, Mode: sticky}}, "sticky", fault.InvalidInput},
		"twice":           {[]tar.Header{{Name: "a", Size: 1}, {Name: "./a", Size: 1}}, "is there twice", fault.InvalidInput},
		"file as folder":  {[]tar.Header{{Name: "a", Size: 1}, {Name: "a/b", Size: 1}}, `under "a", which is a file`, fault.InvalidInput},
		"folder as file":  {[]tar.Header{{Name: "a/b", Size: 1}, {Name: "a", Size: 1}}, "is there twice", fault.InvalidInput},
		"long part":       {[]tar.Header{{Name: long, Size: 1}}, "longer than 255", fault.InvalidInput},
		"deep":            {[]tar.Header{{Name: strings.Repeat("a/", 80) + "b", Size: 1}}, "deeper than", fault.InvalidInput},
		"backslash":       {[]tar.Header{{Name: `a\..\b`, Size: 1}}, "backslash", fault.InvalidInput},
		"no UTF-8":        {[]tar.Header{{Name: "a\xff", Size: 1, Format: tar.FormatGNU}}, "not UTF-8", fault.InvalidInput},
		"too many":        {make([]tar.Header, 0, 101), "is entry 101", fault.TooLarge},
		"too large":       {[]tar.Header{{Name: "a", Size: 600 << 10}, {Name: "b", Size: 600 << 10}}, `"b" brings the archive to`, fault.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range cap(c.entries) * btoi(len(c.entries) == 0) {
				c.entries = append(c.entries, tar.Header{Name: "f" + strings.Repeat("x", i), Size: 0})
			}
			file := made(t, c.entries...)
			above := t.TempDir()
			dir := filepath.Join(above, "package")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, packed := range [][]byte{file, gzipped(t, file)} {
				for verb, err := range map[string]error{
					"Check":  archive.Check(bytes.NewReader(packed), room),
					"Unpack": archive.Unpack(bytes.NewReader(packed), dir, room),
				} {
					if f := fault.From(err); err == nil || f.Code != c.code || !strings.Contains(err.Error()+describe(f), c.says) {
						t.Errorf("%s: %v; want %s saying %q", verb, err, c.code, c.says)
					}
				}
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if left, err := os.ReadDir(above); err != nil || len(left) != 1 {
				t.Errorf("beside the folder: %v, %v", left, err)
			}
		})
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func describe(f *fault.Error) (all string) {
	for _, d := range f.Details {
		all += " " + d.Field + " " + d.Problem
	}
	return all + f.Message
}

// A small stream that unpacks to a large one is stopped by what it becomes: content, or headers without content.
func TestBombs(t *testing.T) {
	zeros := gzipped(t, append(made(t, tar.Header{Name: "a", Size: 10}), make([]byte, 64<<20)...))
	if err := archive.Check(bytes.NewReader(zeros), room); err != nil {
		t.Errorf("what follows the end of a tar is not read: %v", err)
	}
	sparse := made(t, tar.Header{Name: "holes", Size: 900 << 10}, tar.Header{Name: "more", Size: 900 << 10})
	if err := archive.Check(bytes.NewReader(sparse), room); !fault.Is(err, fault.TooLarge) {
		t.Errorf("two files over the limit together: %v", err)
	}
	var folders []tar.Header
	for range 3000 { // one name over and over is one folder, yet every header costs
		folders = append(folders, tar.Header{Name: "a/", Typeflag: tar.TypeDir, Mode: 0o755})
	}
	if err := archive.Check(bytes.NewReader(gzipped(t, made(t, folders...))), room); !fault.Is(err, fault.TooLarge) {
		t.Errorf("3000 headers: %v", err)
	}
}

func TestDamagedArchives(t *testing.T) {
	whole := made(t, tar.Header{Name: "a", Size: 4000})
	zipped := gzipped(t, whole)
	for name, packed := range map[string][]byte{
		"empty":            {},
		"no archive":       []byte(strings.Repeat("This is a letter. ", 100)),
		"cut":              whole[:1000],
		"gzip cut":         zipped[:len(zipped)/2],
		"gzip of a letter": gzipped(t, []byte(strings.Repeat("This is a letter. ", 100))),
	} {
		if err := archive.Check(bytes.NewReader(packed), room); !fault.Is(err, fault.InvalidInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := archive.Check(io.MultiReader(bytes.NewReader(whole[:600]), broken{}), room); fault.Is(err, fault.InvalidInput) || err == nil {
		t.Errorf("a failing disk is no bad input: %v", err)
	}
	for _, l := range []archive.Limits{{}, {Entries: 1}, {Bytes: 1}, {Entries: -1, Bytes: 1}} {
		if err := archive.Check(bytes.NewReader(whole), l); !fault.Is(err, fault.InvalidInput) {
			t.Errorf("limits %+v: %v", l, err)
		}
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, syscall.EIO }

// An honest package comes out with its contents, and with modes that depend neither on the archive nor on the umask.
func TestUnpack(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	packed := gzipped(t, made(t,
		tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o700},
		tar.Header{Name: "./bin/run", Mode: 0o700, Size: 3},
		tar.Header{Name: "./data/deep/er/table.csv", Mode: 0o600, Size: 5},
		tar.Header{Name: "./data/", Typeflag: tar.TypeDir, Mode: 0o700},
		tar.Header{Name: "./empty/", Typeflag: tar.TypeDir, Mode: 0o700},
	))
	dir := t.TempDir()
	if err := archive.Check(bytes.NewReader(packed), room); err != nil {
		t.Fatal(err)
	}
	if err := archive.Unpack(bytes.NewReader(packed), dir, room); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{
		"bin": 0o755 | os.ModeDir, "bin/run": 0o755, "data": 0o755 | os.ModeDir, "data/deep": 0o755 | os.ModeDir,
		"data/deep/er": 0o755 | os.ModeDir, "data/deep/er/table.csv": 0o644, "empty": 0o755 | os.ModeDir,
	} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, mode)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "data/deep/er/table.csv")); err != nil || string(b) != "xxxxx" {
		t.Errorf("%q, %v", b, err)
	}
}

// Whatever the bytes, reading them ends without a panic and writes nothing outside.
func FuzzCheck(f *testing.F) {
	var t testing.T
	f.Add(made(&t, tar.Header{Name: "a", Size: 10}, tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o755}))
	f.Add([]byte{0x1f, 0x8b, 8})
	f.Fuzz(func(t *testing.T, b []byte) {
		checked := archive.Check(bytes.NewReader(b), room)
		above := t.TempDir()
		dir := filepath.Join(above, "in")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := archive.Unpack(bytes.NewReader(b), dir, room); (err == nil) != (checked == nil) {
			t.Errorf("Check says %v, Unpack says %v", checked, err)
		}
		if left, err := os.ReadDir(above); err != nil || len(left) != 1 {
			t.Errorf("beside the folder: %v, %v", left, err)
		}
	})
}
