package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/roadstead/roadstead/internal/fault"
)

// Writer writes one object. It ends with Commit or Abort, one of which must be called.
type Writer struct {
	disk   *Disk
	file   *os.File
	hash   hash.Hash
	size   int64
	looked int64 // size at which the free space was last looked at
	ended  bool
}

// Create begins an object of which size bytes are expected; -1 for unknown. It is capacity_exceeded when that many
// would touch the reserve.
func (d *Disk) Create(_ context.Context, size int64) (*Writer, error) {
	if err := d.room(max(size, 0)); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(d.tmp, "put-")
	if err != nil {
		return nil, failed("making a temporary file", err)
	}
	return &Writer{disk: d, file: f, hash: sha256.New()}, nil
}

// Write adds to the object.
func (w *Writer) Write(p []byte) (int, error) {
	if w.size-w.looked >= roomStep {
		if err := w.disk.room(int64(len(p))); err != nil {
			return 0, err
		}
		w.looked = w.size
	}
	n, err := w.file.Write(p)
	w.hash.Write(p[:n])
	w.size += int64(n)
	if err != nil {
		return n, failed("writing an object", err)
	}
	return n, nil
}

// Commit makes the object durable and visible under its digest, and returns it. If the digest isn't the expected one
// (empty: any) or a flush fails, nothing is kept.
func (w *Writer) Commit(expected string) (digest string, size int64, err error) {
	digest = digestOf(w.hash)
	if err := mismatch(expected, digest); err != nil {
		return "", 0, errors.Join(err, w.Abort())
	}
	if err := w.disk.sync(w.file); err != nil {
		// After a failed flush nobody knows what is on the disk; flushing again would lie.
		return "", 0, errors.Join(failed("flushing an object", err), w.Abort())
	}
	if err := w.disk.publish(w.file.Name(), digest); err != nil {
		return "", 0, errors.Join(failed("naming an object", err), w.Abort())
	}
	w.ended = true
	return digest, w.size, w.file.Close()
}

// Abort removes what was written. After Commit it does nothing.
func (w *Writer) Abort() error {
	if w.ended {
		return nil
	}
	w.ended = true
	err := os.Remove(w.file.Name())
	if errors.Is(err, os.ErrNotExist) {
		err = nil // renamed, but the folder's flush failed: the name is on whole content, so it may stay
	}
	return errors.Join(err, w.file.Close())
}

// Put is artifacts.Blobs's.
func (d *Disk) Put(ctx context.Context, r io.Reader, size int64, expected string) (digest string, stored int64, err error) {
	w, err := d.Create(ctx, size)
	if err != nil {
		return "", 0, err
	}
	n, err := d.copy(ctx, w, r)
	if err == nil && size >= 0 && n != size {
		err = fault.New(fault.InvalidInput, "the upload ended after %d of %d bytes", n, size)
	}
	if err != nil {
		return "", 0, errors.Join(err, w.Abort())
	}
	return w.Commit(expected)
}

// copy moves all of r to w. An error of r is the sender's, one of w ours.
func (d *Disk) copy(ctx context.Context, w io.Writer, r io.Reader) (n int64, err error) {
	buf := d.buffers.Get().(*[]byte)
	defer d.buffers.Put(buf)
	for {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		got, rerr := r.Read(*buf)
		if got > 0 {
			put, err := w.Write((*buf)[:got])
			n += int64(put)
			if err != nil {
				return n, err
			}
		}
		if rerr == io.EOF {
			return n, nil
		}
		if rerr != nil {
			return n, fault.Wrap(fault.InvalidInput, rerr, "the upload was cut off after %d bytes", n)
		}
	}
}

func digestOf(h hash.Hash) string { return "sha256:" + hex.EncodeToString(h.Sum(nil)) }

// mismatch refuses content whose digest isn't the expected one.
func mismatch(expected, digest string) error {
	if expected == "" || expected == digest {
		return nil
	}
	return fault.New(fault.IntegrityMismatch, "the content has digest %s, not %s", digest, fmt.Sprintf("%.80q", expected))
}
