package archive_test

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/roadstead/roadstead/internal/archive"
	"github.com/roadstead/roadstead/internal/fault"
)

// layoutOf writes an image of the layers as a layout folder, beside an image for another platform.
func layoutOf(t *testing.T, layers ...[]byte) string {
	t.Helper()
	image := mutate.Append
	of := func(arch string, layers [][]byte) v1.Image {
		made := empty.Image
		for _, l := range layers {
			layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(l)), nil })
			if err != nil {
				t.Fatal(err)
			}
			if made, err = image(made, mutate.Addendum{Layer: layer}); err != nil {
				t.Fatal(err)
			}
		}
		made, err := mutate.ConfigFile(made, &v1.ConfigFile{OS: "linux", Architecture: arch, RootFS: must(t, made).RootFS,
			Config: v1.Config{Entrypoint: []string{"/bin/run"}, Cmd: []string{"hello"}, Env: []string{"A=b"}, WorkingDir: "/srv"}})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	var index v1.ImageIndex = empty.Index
	for arch, content := range map[string][][]byte{"s390x": {made(t, tar.Header{Name: "wrong", Size: 1})}, runtime.GOARCH: layers} {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: of(arch, content), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	dir := t.TempDir()
	if _, err := layout.Write(dir, index); err != nil {
		t.Fatal(err)
	}
	return dir
}

func must(t *testing.T, i v1.Image) *v1.ConfigFile {
	t.Helper()
	c, err := i.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// names lists what a folder holds, links with where they lead.
func names(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(strings.TrimPrefix(path, dir), "/")
		if err != nil || name == "" {
			return err
		}
		if d.Type() == fs.ModeSymlink {
			to, err := os.Readlink(path)
			name += "->" + to
			if err != nil {
				return err
			}
		}
		all = append(all, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// An image runs from our own store: its layers are laid over each other with what they take away, links included
//
func TestUnpackImage(t *testing.T) {
	source := layoutOf(t,
		made(t,
			tar.Header{Name: "usr/bin/", Typeflag: tar.TypeDir, Mode: 0o755},
			tar.Header{Name: "bin", Typeflag: tar.TypeSymlink, Linkname: "usr/bin"},
			tar.Header{Name: "usr/bin/su", Mode: 0o4700, Size: 3},
			tar.Header{Name: "etc/old/a", Size: 1}, tar.Header{Name: "etc/old/b", Size: 1},
			tar.Header{Name: "etc/gone", Size: 1}, tar.Header{Name: "etc/kept", Size: 1},
			tar.Header{Name: "dev/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3},
		),
		made(t,
			tar.Header{Name: "bin/tool", Mode: 0o700, Size: 2},
			tar.Header{Name: "usr/bin/alias", Typeflag: tar.TypeLink, Linkname: "usr/bin/su"},
			tar.Header{Name: "etc/.wh.gone"},
			tar.Header{Name: "etc/old/new", Size: 1},
			tar.Header{Name: "etc/old/.wh..wh..opq"},
			tar.Header{Name: "var/run", Typeflag: tar.TypeSymlink, Linkname: "/run"},
		),
	)
	const want = "bin->usr/bin etc etc/kept etc/old etc/old/new usr usr/bin usr/bin/alias usr/bin/su usr/bin/tool var var/run->/run"
	packed := filepath.Join(t.TempDir(), "layout.tar")
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.AddFS(os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(packed, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{source, packed} {
		dir, scratch := t.TempDir(), t.TempDir()
		image, err := archive.UnpackImage(t.Context(), from, dir, scratch, room)
		if err != nil {
			t.Fatal(err)
		}
		if got := names(t, dir); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if info, err := os.Stat(filepath.Join(dir, "usr/bin/su")); err != nil || info.Mode() != 0o755 {
			t.Errorf("su: %v, %v", info.Mode(), err)
		}
		if image.Entrypoint[0] != "/bin/run" || image.Cmd[0] != "hello" || image.Env[0] != "A=b" || image.WorkDir != "/srv" {
			t.Errorf("%+v", image)
		}
		if left := names(t, scratch); left != "" {
			t.Errorf("left between: %s", left)
		}
	}
}

// A layer that plants a link and writes through it stays inside, or is refused.
func TestHostileImages(t *testing.T) {
	outside := t.TempDir()
	up := strings.Repeat("../", 12)
	for name, layers := range map[string][][]byte{
		"through a link up":        {made(t, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: up + outside}, tar.Header{Name: "l/evil", Size: 1})},
		"through an absolute link": {made(t, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: outside}), made(t, tar.Header{Name: "l/evil", Size: 1})},
		"hard link out":            {made(t, tar.Header{Name: "l", Typeflag: tar.TypeLink, Linkname: up + "etc/passwd"})},
		"hard link through a link": {made(t, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, tar.Header{Name: "p", Typeflag: tar.TypeLink, Linkname: "l/passwd"})},
		"whiteout out":             {made(t, tar.Header{Name: "a/.wh..."}), made(t, tar.Header{Name: ".wh...", Size: 0})},
		"opaque through a link":    {made(t, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: outside}, tar.Header{Name: "l/.wh..wh..opq"})},
		"device":                   {made(t, tar.Header{Name: "disk", Typeflag: tar.TypeBlock, Devmajor: 8})},
		"too large":                {made(t, tar.Header{Name: "a", Size: 700 << 10}), made(t, tar.Header{Name: "a", Size: 700 << 10})},
	} {
		t.Run(name, func(t *testing.T) {
			canary := filepath.Join(outside, "canary")
			if err := os.WriteFile(canary, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := archive.UnpackImage(t.Context(), layoutOf(t, layers...), t.TempDir(), t.TempDir(), room)
			if err != nil && !fault.Is(err, fault.InvalidInput) && !fault.Is(err, fault.TooLarge) {
				t.Errorf("blames the wrong one: %v", err)
			}
			if left := names(t, outside); left != "canary" {
				t.Errorf("outside: %q (%v)", left, err)
			}
		})
	}
}

// A layout whose blob isn't what its name says is refused before any of it is unpacked.
func TestForgedBlob(t *testing.T) {
	source := layoutOf(t, made(t, tar.Header{Name: "a", Size: 100 << 10}))
	blobs, err := filepath.Glob(filepath.Join(source, "blobs/sha256/*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blobs {
		content, err := os.ReadFile(b)
		if err != nil {
			t.Fatal(err)
		}
		if len(content) > 0 && content[0] == 0x1f {
			content[len(content)-1] ^= 1
			if err := os.WriteFile(b, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := t.TempDir()
	if _, err := archive.UnpackImage(t.Context(), source, dir, t.TempDir(), room); !fault.Is(err, fault.IntegrityMismatch) {
		t.Errorf("forged: %v", err)
	}
	if left := names(t, dir); left != "" {
		t.Errorf("unpacked nevertheless: %s", left)
	}
	for _, nothing := range []string{t.TempDir(), filepath.Join(t.TempDir(), "absent")} {
		if _, err := archive.UnpackImage(t.Context(), nothing, dir, t.TempDir(), room); err == nil {
			t.Error("an image from nothing")
		}
	}
}
