package blob

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/blob/blobtest"
	"github.com/roadstead/roadstead/internal/fault"
)

func open(t *testing.T, cfg Config) *Disk {
	t.Helper()
	d, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() }) // may have been closed by a restart
	return d
}

// count counts the files below dir.
func count(t *testing.T, dir string) (n int) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestDisk(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blobtest.Backend {
		cfg := Config{Dir: t.TempDir(), Reserve: 1}
		d := open(t, cfg)
		return blobtest.Backend{
			Blobs: d,
			Restart: func() artifacts.Blobs {
				if err := d.Close(); err != nil {
					t.Fatal(err)
				}
				d = open(t, cfg)
				return d
			},
			Stored: func() (objects, unfinished int) { return count(t, d.objects), count(t, d.tmp) },
		}
	})
}

func TestConfig(t *testing.T) {
	for field, cfg := range map[string]Config{"Dir": {}, "Reserve": {Dir: "x", Reserve: -1}} {
		if _, err := New(cfg); err == nil || fault.From(err).Details[0].Field != field {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

func TestOneProcessAtATime(t *testing.T) {
	cfg := Config{Dir: t.TempDir()}
	open(t, cfg)
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Fatalf("got %v", err)
	}
}

func TestLeftoversGoAtStart(t *testing.T) {
	cfg := Config{Dir: t.TempDir()}
	d := open(t, cfg)
	w, err := d.Create(t.Context(), -1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("never committed")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Append(t.Context(), "u1", 0, strings.NewReader("kept")); err != nil {
		t.Fatal(err)
	}
	// The process dies: the lock goes, nothing is cleaned up.
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = open(t, cfg)
	if n := count(t, d.tmp); n != 0 {
		t.Errorf("%d leftovers", n)
	}
	if at, err := d.Offset(t.Context(), "u1"); err != nil || at != 4 {
		t.Errorf("the resumable upload is at %d, %v", at, err)
	}
}

// TestUnacknowledgedTail: bytes that reached the file but not the state were never acknowledged; they are cut off, and
// what the client sends in their place counts.
func TestUnacknowledgedTail(t *testing.T) {
	cfg := Config{Dir: t.TempDir()}
	d := open(t, cfg)
	for _, step := range []string{"append", "seal"} {
		id := "u-" + step
		if _, err := d.Append(t.Context(), id, 0, strings.NewReader("hello ")); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(d.dataFile(id), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString("garbage after a crash")
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		want := "hello "
		if step == "append" {
			want = "hello world"
			if _, err := d.Append(t.Context(), id, 6, strings.NewReader("world")); err != nil {
				t.Fatal(err)
			}
		}
		digest, _, err := d.Seal(t.Context(), id, "")
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Open(t.Context(), digest)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(got)
		if err != nil || string(text) != want {
			t.Errorf("%s: got %q, %v", step, text, err)
		}
		_ = got.Close()
	}
}

// TestLostData: a state that says more than the data file has is never filled up with zeros.
func TestLostData(t *testing.T) {
	d := open(t, Config{Dir: t.TempDir()})
	if _, err := d.Append(t.Context(), "u1", 0, strings.NewReader("hello")); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(d.dataFile("u1"), 2); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Append(t.Context(), "u1", 5, strings.NewReader("!")); err == nil {
		t.Error("append went on over lost bytes")
	}
	if _, _, err := d.Seal(t.Context(), "u1", ""); err == nil {
		t.Error("seal took lost bytes for content")
	}
	if n := count(t, d.objects); n != 0 {
		t.Errorf("%d objects", n)
	}
}

func TestReserve(t *testing.T) {
	const reserve = 1 << 30
	d := open(t, Config{Dir: t.TempDir(), Reserve: reserve})
	free := int64(reserve + 10<<20)
	d.free = func(string) (int64, error) { return free - int64(count(t, d.tmp))<<20, nil }
	if _, _, err := d.Put(t.Context(), strings.NewReader("x"), 11<<20, ""); !fault.Is(err, fault.CapacityExceeded) {
		t.Errorf("a size that doesn't fit: got %v", err)
	}
	if _, _, err := d.Put(t.Context(), strings.NewReader("x"), 1, ""); err != nil {
		t.Errorf("a size that fits: got %v", err)
	}
	// The disk fills up while a body of unknown size comes in.
	body := &filler{free: &free, left: 40 << 20}
	if _, _, err := d.Put(t.Context(), body, -1, ""); !fault.Is(err, fault.CapacityExceeded) {
		t.Errorf("got %v", err)
	}
	if n := count(t, d.tmp); n != 0 {
		t.Errorf("%d leftovers of a refused upload", n)
	}
	free = reserve + 10<<20
	end, err := d.Append(t.Context(), "u1", 0, &filler{free: &free, left: 40 << 20})
	if !fault.Is(err, fault.CapacityExceeded) || end == 0 || end > 15<<20 {
		t.Errorf("stopped at %d: %v", end, err)
	}
	if at, err := d.Offset(t.Context(), "u1"); err != nil || at != end {
		t.Errorf("told %d, durable are %d, %v", end, at, err)
	}
	if _, err := d.Append(t.Context(), "u1", end, strings.NewReader("x")); !fault.Is(err, fault.CapacityExceeded) {
		t.Errorf("got %v", err)
	}
}

// filler is a body whose bytes use up the disk.
type filler struct {
	free *int64
	left int64
}

func (f *filler) Read(p []byte) (int, error) {
	if f.left <= 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), f.left)
	f.left -= n
	*f.free -= n
	return int(n), nil
}

// TestFailedFlush: nothing is acknowledged that wasn't flushed, wherever the flush fails.
func TestFailedFlush(t *testing.T) {
	for name, cause := range map[string]error{"io": syscall.EIO, "full": syscall.ENOSPC} {
		t.Run(name, func(t *testing.T) {
			d := open(t, Config{Dir: t.TempDir()})
			good := d.sync
			if _, err := d.Append(t.Context(), "u1", 0, strings.NewReader("first")); err != nil {
				t.Fatal(err)
			}
			for fails := 1; ; fails++ {
				calls := 0
				d.sync = func(f *os.File) error {
					if calls++; calls == fails {
						return cause
					}
					return good(f)
				}
				_, _, err := d.Put(t.Context(), bytes.NewReader([]byte(name)), -1, "")
				if calls < fails {
					if err != nil || fails < 4 {
						t.Fatalf("after %d flushes: %v", calls, err)
					}
					break
				}
				if !errors.Is(err, cause) || fault.Is(err, fault.CapacityExceeded) != (name == "full") {
					t.Errorf("flush %d failed, Put said %v", fails, err)
				}
				if n := count(t, d.tmp); n != 0 {
					t.Errorf("flush %d failed and left %d files", fails, n)
				}
			}
			d.sync = func(*os.File) error { return cause }
			end, err := d.Append(t.Context(), "u1", 5, strings.NewReader("second"))
			if !errors.Is(err, cause) || end != 5 {
				t.Errorf("told %d, %v", end, err)
			}
			d.sync = good
			if _, err := d.Append(t.Context(), "u1", 5, strings.NewReader("third")); err != nil {
				t.Fatal(err)
			}
			if _, _, err := d.Seal(t.Context(), "u1", digestOf(hashed("firstthird"))); err != nil {
				t.Errorf("after a failed flush: %v", err)
			}
		})
	}
}

// TestCheckpoints: a long append is flushed on the way, so that a crash costs a bounded piece of it.
func TestCheckpoints(t *testing.T) {
	d := open(t, Config{Dir: t.TempDir()})
	r, w := io.Pipe()
	done := make(chan error)
	go func() {
		_, err := d.Append(t.Context(), "u1", 0, r)
		done <- err
	}()
	piece := make([]byte, 1<<20)
	for range checkpointStep/len(piece) + 1 {
		if _, err := w.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if at, err := d.Offset(t.Context(), "u1"); err != nil || at < checkpointStep {
		t.Errorf("in the middle %d are durable, %v", at, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func hashed(s string) hash.Hash {
	h := sha256.New()
	h.Write([]byte(s))
	return h
}
