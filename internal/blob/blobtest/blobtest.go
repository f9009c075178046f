// Package blobtest says what keeping bytes by digest means: one suite that every backend passes.
package blobtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/fault"
)

// Backend is one backend under test.
type Backend struct {
	Blobs artifacts.Blobs
	// Restart gives the same backend as a new process after a crash finds it.
	Restart func() artifacts.Blobs
	// Stored says how many objects and how many unfinished writes (resumable uploads aside) there are.
	Stored func() (objects, unfinished int)
}

// Run proves a backend; open makes an empty one.
func Run(t *testing.T, open func(t *testing.T) Backend) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Backend)
	}{
		{"Put", put},
		{"PutRefusals", putRefusals},
		{"PutTogether", putTogether},
		{"OwnDescriptors", ownDescriptors},
		{"Append", appendParts},
		{"AppendOffsets", appendOffsets},
		{"AppendCutOff", appendCutOff},
		{"AppendAlone", appendAlone},
		{"Seal", seal},
		{"SealEmpty", sealEmpty},
		{"Discard", discard},
		{"Sweep", sweep},
		{"ForeignIDs", foreignIDs},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func content(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed)})
	if _, err := r.Read(b); err != nil {
		panic(err) // it never fails
	}
	return b
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if !fault.Is(err, code) {
		t.Fatalf("got %v, want the fault %s", err, code)
	}
}

func holds(t *testing.T, b artifacts.Blobs, digest string, want []byte) {
	t.Helper()
	f, err := b.Open(t.Context(), digest)
	ok(t, err)
	got, err := io.ReadAll(f)
	ok(t, errors.Join(err, f.Close()))
	if !bytes.Equal(got, want) {
		t.Fatalf("object %s has %d other bytes, want %d", digest, len(got), len(want))
	}
}

func stored(t *testing.T, b Backend, objects int) {
	t.Helper()
	if o, u := b.Stored(); o != objects || u != 0 {
		t.Fatalf("%d objects and %d unfinished, want %d and 0", o, u, objects)
	}
}

func put(t *testing.T, b Backend) {
	for i, n := range []int{0, 1, 1000, 5 << 20} {
		c := content(uint64(i), n)
		for _, size := range []int64{int64(n), -1} {
			digest, got, err := b.Blobs.Put(t.Context(), bytes.NewReader(c), size, "")
			ok(t, err)
			if digest != digestOf(c) || got != int64(n) {
				t.Fatalf("got %s, %d", digest, got)
			}
		}
		_, _, err := b.Blobs.Put(t.Context(), iotest.OneByteReader(bytes.NewReader(c[:min(n, 10)])), -1, digestOf(c[:min(n, 10)]))
		ok(t, err)
		holds(t, b.Blobs, digestOf(c), c)
	}
	after := b.Restart()
	holds(t, after, digestOf(content(2, 1000)), content(2, 1000))
	_, err := after.Open(t.Context(), digestOf([]byte("never stored")))
	refused(t, err, fault.NotFound)
}

func putRefusals(t *testing.T, b Backend) {
	c := content(1, 3000)
	_, _, err := b.Blobs.Put(t.Context(), bytes.NewReader(c), -1, digestOf(nil))
	refused(t, err, fault.IntegrityMismatch)
	_, _, err = b.Blobs.Put(t.Context(), bytes.NewReader(c), 3001, "")
	refused(t, err, fault.InvalidInput)
	broken := errors.New("connection lost")
	_, _, err = b.Blobs.Put(t.Context(), io.MultiReader(bytes.NewReader(c), iotest.ErrReader(broken)), -1, "")
	refused(t, err, fault.InvalidInput)
	if !errors.Is(err, broken) {
		t.Errorf("the cause is lost: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err = b.Blobs.Put(ctx, bytes.NewReader(c), -1, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	stored(t, b, 0)
}

func putTogether(t *testing.T, b Backend) {
	c := content(1, 300<<10)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, _, err := b.Blobs.Put(t.Context(), bytes.NewReader(c), -1, ""); err != nil {
				t.Error(err)
				return
			}
			holds(t, b.Blobs, digestOf(c), c)
		})
	}
	all.Wait()
	stored(t, b, 1)
}

func ownDescriptors(t *testing.T, b Backend) {
	c := content(1, 100)
	digest, _, err := b.Blobs.Put(t.Context(), bytes.NewReader(c), -1, "")
	ok(t, err)
	one, err := b.Blobs.Open(t.Context(), digest)
	ok(t, err)
	defer func() { _ = one.Close() }()
	_, err = io.CopyN(io.Discard, one, 50)
	ok(t, err)
	holds(t, b.Blobs, digest, c)
}

func appendParts(t *testing.T, b Backend) {
	ctx := t.Context()
	c := content(1, 2<<20)
	blobs := b.Blobs
	at := int64(0)
	for i, n := range []int{1, 1000, 0, 500_000} {
		end, err := blobs.Append(ctx, "u1", at, bytes.NewReader(c[at:at+int64(n)]))
		ok(t, err)
		if end != at+int64(n) {
			t.Fatalf("at %d, want %d", end, at+int64(n))
		}
		at = end
		if i%2 == 1 {
			blobs = b.Restart()
		}
		offset, err := blobs.Offset(ctx, "u1")
		ok(t, err)
		if offset != at {
			t.Fatalf("%d bytes are known after a restart, want %d", offset, at)
		}
	}
	_, err := blobs.Append(ctx, "u1", at, bytes.NewReader(c[at:]))
	ok(t, err)
	digest, size, err := blobs.Seal(ctx, "u1", digestOf(c))
	ok(t, err)
	if size != int64(len(c)) {
		t.Fatalf("%d bytes", size)
	}
	holds(t, blobs, digest, c)
}

func appendOffsets(t *testing.T, b Backend) {
	ctx := t.Context()
	offset, err := b.Blobs.Offset(ctx, "u1")
	ok(t, err)
	if offset != 0 {
		t.Fatalf("a new upload is at %d", offset)
	}
	_, err = b.Blobs.Append(ctx, "u1", 5, bytes.NewReader([]byte("x")))
	refused(t, err, fault.Conflict)
	end, err := b.Blobs.Append(ctx, "u1", 0, bytes.NewReader([]byte("hello")))
	ok(t, err)
	for _, wrong := range []int64{0, 4, 6} {
		got, err := b.Blobs.Append(ctx, "u1", wrong, bytes.NewReader([]byte("x")))
		refused(t, err, fault.Conflict)
		if got != end {
			t.Fatalf("told %d, is at %d", got, end)
		}
	}
}

// appendCutOff: what came before the sender left is kept and told.
func appendCutOff(t *testing.T, b Backend) {
	ctx := t.Context()
	c := content(1, 100_000)
	broken := errors.New("connection lost")
	end, err := b.Blobs.Append(ctx, "u1", 0, io.MultiReader(bytes.NewReader(c[:70_000]), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || end != 70_000 {
		t.Fatalf("at %d, %v", end, err)
	}
	blobs := b.Restart()
	_, err = blobs.Append(ctx, "u1", end, bytes.NewReader(c[end:]))
	ok(t, err)
	digest, _, err := blobs.Seal(ctx, "u1", "")
	ok(t, err)
	holds(t, blobs, digest, c)
}

// appendAlone: a second writer of the same upload is turned away.
func appendAlone(t *testing.T, b Backend) {
	ctx := t.Context()
	r, w := io.Pipe()
	done := make(chan error)
	go func() {
		_, err := b.Blobs.Append(ctx, "u1", 0, r)
		done <- err
	}()
	_, err := w.Write([]byte("first")) // returns when the writer reads, so it is at work
	ok(t, err)
	_, err = b.Blobs.Append(ctx, "u1", 0, bytes.NewReader([]byte("second")))
	refused(t, err, fault.Conflict)
	ok(t, w.Close())
	ok(t, <-done)
	digest, _, err := b.Blobs.Seal(ctx, "u1", "")
	ok(t, err)
	holds(t, b.Blobs, digest, []byte("first"))
}

// seal: a wrong digest changes nothing; repeating it after a crash gives the same.
func seal(t *testing.T, b Backend) {
	ctx := t.Context()
	c := content(1, 1000)
	_, err := b.Blobs.Append(ctx, "u1", 0, bytes.NewReader(c))
	ok(t, err)
	_, _, err = b.Blobs.Seal(ctx, "u1", digestOf(nil))
	refused(t, err, fault.IntegrityMismatch)
	stored(t, b, 0)
	blobs := b.Blobs
	for range 3 {
		digest, size, err := blobs.Seal(ctx, "u1", digestOf(c))
		ok(t, err)
		if digest != digestOf(c) || size != 1000 {
			t.Fatalf("got %s, %d", digest, size)
		}
		holds(t, blobs, digest, c)
		blobs = b.Restart()
	}
	ok(t, blobs.Discard(ctx, "u1"))
	holds(t, blobs, digestOf(c), c)
	stored(t, b, 1)
}

func sealEmpty(t *testing.T, b Backend) {
	for range 2 {
		digest, size, err := b.Blobs.Seal(t.Context(), "u1", "")
		ok(t, err)
		if digest != digestOf(nil) || size != 0 {
			t.Fatalf("got %s, %d", digest, size)
		}
	}
	holds(t, b.Blobs, digestOf(nil), nil)
}

func discard(t *testing.T, b Backend) {
	ctx := t.Context()
	_, err := b.Blobs.Append(ctx, "u1", 0, bytes.NewReader([]byte("bytes that are dropped")))
	ok(t, err)
	ok(t, b.Blobs.Discard(ctx, "u1"))
	ok(t, b.Blobs.Discard(ctx, "u1"))
	offset, err := b.Blobs.Offset(ctx, "u1")
	ok(t, err)
	if offset != 0 {
		t.Fatalf("at %d after a discard", offset)
	}
	_, err = b.Blobs.Append(ctx, "u1", 0, bytes.NewReader([]byte("new")))
	ok(t, err)
	digest, _, err := b.Blobs.Seal(ctx, "u1", "")
	ok(t, err)
	holds(t, b.Blobs, digest, []byte("new"))
}

func sweep(t *testing.T, b Backend) {
	ctx := t.Context()
	for i := range 3 {
		_, err := b.Blobs.Append(ctx, fmt.Sprintf("u%d", i), 0, bytes.NewReader([]byte("x")))
		ok(t, err)
	}
	n, err := b.Blobs.Sweep(ctx, time.Now().Add(-time.Hour))
	ok(t, err)
	if n != 0 {
		t.Fatalf("%d fresh uploads swept", n)
	}
	n, err = b.Blobs.Sweep(ctx, time.Now().Add(time.Hour))
	ok(t, err)
	if n != 3 {
		t.Fatalf("%d of 3 swept", n)
	}
	offset, err := b.Blobs.Offset(ctx, "u0")
	ok(t, err)
	if offset != 0 {
		t.Fatalf("at %d after the sweep", offset)
	}
}

// foreignIDs: nothing a client could say becomes a name.
func foreignIDs(t *testing.T, b Backend) {
	ctx := t.Context()
	for _, id := range []string{"", "..", "a/b", "../../etc/x", "a.state", "a\x00", "ä", string(make([]byte, 65))} {
		_, err := b.Blobs.Append(ctx, id, 0, bytes.NewReader(nil))
		refused(t, err, fault.NotFound)
		_, err = b.Blobs.Offset(ctx, id)
		refused(t, err, fault.NotFound)
		_, _, err = b.Blobs.Seal(ctx, id, "")
		refused(t, err, fault.NotFound)
		refused(t, b.Blobs.Discard(ctx, id), fault.NotFound)
	}
	for _, digest := range []string{"", "sha256:", "sha256:../../../etc/passwd", "md5:00", digestOf(nil) + "/.."} {
		_, err := b.Blobs.Open(ctx, digest)
		refused(t, err, fault.InvalidInput)
	}
}
