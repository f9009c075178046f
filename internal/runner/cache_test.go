package runner

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
)

// pack is a package with one file, as the server would have it.
func pack(t *testing.T, s *server, content string) *api.JobObject {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: "f", Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b.Bytes())
	o := &api.JobObject{Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(b.Len())}
	s.objects[o.Digest] = b.Bytes()
	return o
}

// A package is fetched once and found by its digest from then on; what an Attempt uses is never removed, and of the rest
// what was used longest ago goes first.
func TestCache(t *testing.T) {
	s := newServer(t, "")
	r := &Runner{client: newClient(s.URL)}
	c, err := openCache(t.TempDir(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	h := &held{assignment: s.work}
	use := func(ctx context.Context, o *api.JobObject) string {
		t.Helper()
		path, err := c.folder(ctx, r, h, o, false)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	there := func(path string) bool {
		_, err := os.Stat(filepath.Join(path, "f"))
		return err == nil
	}
	a, b, d := pack(t, s, strings.Repeat("a", 600)), pack(t, s, strings.Repeat("b", 600)), pack(t, s, "d")
	pinned, unpin := contextOf(t)
	defer unpin()
	first := use(pinned, a)
	if use(t.Context(), a); s.count("object") != 1 || !there(first) {
		t.Errorf("fetched %d times", s.count("object"))
	}
	loose, over := contextOf(t)
	second := use(loose, b)
	over()
	until(t, "it is let go", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.pins) == 1 })
	use(t.Context(), d)
	if !there(first) || there(second) {
		t.Errorf("what is used is there: %t; what is not: %t", there(first), there(second))
	}
	if use(t.Context(), b); s.count("object") != 4 {
		t.Errorf("fetched %d times", s.count("object"))
	}
}

// Bytes that are not those of the digest never become a folder, half a folder of an earlier process neither, and a digest
// is no path.
func TestCacheTakesNothingForGranted(t *testing.T) {
	s := newServer(t, "")
	r := &Runner{client: newClient(s.URL)}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "new-123", "tree"), 0o755); err != nil {
		t.Fatal(err)
	}
	c, err := openCache(dir, 1000)
	if err != nil {
		t.Fatal(err)
	}
	h := &held{assignment: s.work}
	o := pack(t, s, "content")
	s.objects[o.Digest] = append([]byte("x"), s.objects[o.Digest][1:]...)
	if _, err := c.folder(t.Context(), r, h, o, false); !fault.Is(err, fault.IntegrityMismatch) {
		t.Errorf("other bytes: %v", err)
	}
	if _, err := c.folder(t.Context(), r, h, &api.JobObject{Digest: "sha256:../../" + strings.Repeat("a", 58)}, false); !fault.Is(err, fault.InvalidInput) {
		t.Errorf("a path: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v %v", left, err)
	}
}
