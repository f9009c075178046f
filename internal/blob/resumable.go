package blob

import (
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/roadstead/roadstead/internal/fault"
)

// A resumable upload is two files: <id>.data holds the bytes, <id>.state how many of them are durable and the running
// hash over those. The state is replaced only after the data was flushed, so whatever the data file has beyond it was
// never acknowledged and is cut off when the upload goes on.

// checkpointStep is how much is written between two flushes: so much a client sends again after a crash.
const checkpointStep = 32 << 20

// progress is the durable state of an upload.
type progress struct {
	Offset int64  `json:"offset"`
	Hash   []byte `json:"hash"` // SHA-256 state over the first Offset bytes
}

var uploadID = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

func (d *Disk) dataFile(id string) string  { return filepath.Join(d.uploads, id+".data") }
func (d *Disk) stateFile(id string) string { return filepath.Join(d.uploads, id+".state") }

// hold takes an upload for one caller; two at once would mix their bytes.
func (d *Disk) hold(id string) (release func(), err error) {
	if !uploadID.MatchString(id) {
		return nil, fault.Missing("upload")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, taken := d.active[id]; taken {
		return nil, fault.New(fault.Conflict, "another request is writing this upload")
	}
	d.active[id] = struct{}{}
	return func() {
		d.mu.Lock()
		delete(d.active, id)
		d.mu.Unlock()
	}, nil
}

// load reads how far an upload is; one without a state is at 0.
func (d *Disk) load(id string) (offset int64, h hash.Hash, err error) {
	h = sha256.New()
	text, err := os.ReadFile(d.stateFile(id))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, h, nil
	}
	if err != nil {
		return 0, nil, err
	}
	var p progress
	if err := json.Unmarshal(text, &p); err != nil {
		return 0, nil, fmt.Errorf("state of upload %s: %w", id, err)
	}
	if err := h.(encoding.BinaryUnmarshaler).UnmarshalBinary(p.Hash); err != nil {
		return 0, nil, fmt.Errorf("state of upload %s: %w", id, err)
	}
	return p.Offset, h, nil
}

// save makes the state durable; data must be flushed already.
func (d *Disk) save(id string, offset int64, h hash.Hash) error {
	sum, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return err
	}
	text, err := json.Marshal(progress{Offset: offset, Hash: sum})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(d.tmp, "state-")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = d.sync(f)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), d.stateFile(id))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return d.syncDir(d.uploads)
}

// Offset is artifacts.Blobs's.
func (d *Disk) Offset(_ context.Context, id string) (int64, error) {
	if !uploadID.MatchString(id) {
		return 0, fault.Missing("upload")
	}
	offset, _, err := d.load(id)
	return offset, err
}

// Append is artifacts.Blobs's.
func (d *Disk) Append(ctx context.Context, id string, offset int64, r io.Reader) (end int64, err error) {
	release, err := d.hold(id)
	if err != nil {
		return 0, err
	}
	defer release()
	at, h, err := d.load(id)
	if err != nil {
		return 0, err
	}
	if at != offset {
		return at, fault.New(fault.Conflict, "the upload is at byte %d, not at %d", at, offset)
	}
	if err := d.room(0); err != nil {
		return at, err
	}
	f, err := os.OpenFile(d.dataFile(id), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return at, failed("opening an upload", err)
	}
	a := &appender{disk: d, id: id, file: f, hash: h, offset: at, durable: at}
	if err := continueAt(f, at); err != nil {
		return at, errors.Join(failed("going on with an upload", err), f.Close())
	}
	_, err = d.copy(ctx, a, r)
	// What came before the sender left is kept, whatever ended the copy.
	return a.durable, errors.Join(err, a.checkpoint(), f.Close())
}

// continueAt cuts f at its durable end and goes there.
func continueAt(f *os.File, end int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < end {
		return fmt.Errorf("%s has %d bytes of %d that were flushed", filepath.Base(f.Name()), info.Size(), end)
	}
	if err := f.Truncate(end); err != nil {
		return err
	}
	_, err = f.Seek(end, io.SeekStart)
	return err
}

// appender writes to the end of an upload and flushes now and then.
type appender struct {
	disk    *Disk
	id      string
	file    *os.File
	hash    hash.Hash
	offset  int64 // written
	durable int64 // flushed, and the state says so
	looked  int64 // offset at which the free space was last looked at
	failed  bool
}

func (a *appender) Write(p []byte) (int, error) {
	if a.offset-a.looked >= roomStep {
		if err := a.disk.room(int64(len(p))); err != nil {
			return 0, err
		}
		a.looked = a.offset
	}
	n, err := a.file.Write(p)
	a.hash.Write(p[:n])
	a.offset += int64(n)
	if err != nil {
		return n, failed("writing an upload", err)
	}
	if a.offset-a.durable >= checkpointStep {
		return n, a.checkpoint()
	}
	return n, nil
}

// checkpoint makes what was written durable. After a failure it does nothing more: what is on the disk is unknown, and
// the upload goes on from the last state that was saved.
func (a *appender) checkpoint() error {
	if a.failed || a.durable == a.offset {
		return nil
	}
	a.failed = true
	if err := a.disk.sync(a.file); err != nil {
		return failed("flushing an upload", err)
	}
	if err := a.disk.save(a.id, a.offset, a.hash); err != nil {
		return failed("saving an upload's state", err)
	}
	a.failed, a.durable = false, a.offset
	return nil
}

// Seal is artifacts.Blobs's. The state stays until Discard: a crash after the rename finds the digest there again.
func (d *Disk) Seal(ctx context.Context, id, expected string) (digest string, size int64, err error) {
	release, err := d.hold(id)
	if err != nil {
		return "", 0, err
	}
	defer release()
	size, h, err := d.load(id)
	if err != nil {
		return "", 0, err
	}
	digest = digestOf(h)
	if err := mismatch(expected, digest); err != nil {
		return "", 0, err
	}
	if size == 0 {
		w, err := d.Create(ctx, 0)
		if err != nil {
			return "", 0, err
		}
		return w.Commit(digest)
	}
	err = d.cut(id, size)
	if errors.Is(err, fs.ErrNotExist) {
		return digest, size, d.sealed(digest, size)
	}
	if err == nil {
		err = d.publish(d.dataFile(id), digest)
	}
	if err != nil {
		return "", 0, failed("sealing an upload", err)
	}
	return digest, size, nil
}

// cut removes what the data file has beyond its state and flushes it: a state never says more than is flushed, but the
// cut itself has to be on the disk before the name is.
func (d *Disk) cut(id string, size int64) error {
	f, err := os.OpenFile(d.dataFile(id), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if err = continueAt(f, size); err == nil {
		err = d.sync(f)
	}
	return errors.Join(err, f.Close())
}

// sealed reports whether an earlier Seal of the upload got as far as the rename.
func (d *Disk) sealed(digest string, size int64) error {
	path, err := d.path(digest)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("a sealed upload's object: %w", err)
	}
	if info.Size() != size {
		return fmt.Errorf("object %s has %d bytes, not %d", digest, info.Size(), size)
	}
	return d.syncDir(filepath.Dir(path)) // the crash may have come between the rename and this
}

// Discard is artifacts.Blobs's.
func (d *Disk) Discard(_ context.Context, id string) error {
	release, err := d.hold(id)
	if err != nil {
		return err
	}
	defer release()
	// State first: data without a state reads as an upload at 0 that will be cut, a state without data as a sealed one.
	for _, file := range []string{d.stateFile(id), d.dataFile(id)} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("discarding an upload: %w", err)
		}
	}
	return nil
}

// Sweep is artifacts.Blobs's.
func (d *Disk) Sweep(ctx context.Context, before time.Time) (int, error) {
	files, err := os.ReadDir(d.uploads)
	if err != nil {
		return 0, err
	}
	last := map[string]time.Time{}
	for _, e := range files {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		id, _, _ := strings.Cut(e.Name(), ".")
		if last[id].Before(info.ModTime()) {
			last[id] = info.ModTime()
		}
	}
	n := 0
	for id, at := range last {
		if !at.Before(before) {
			continue
		}
		if err := d.Discard(ctx, id); fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) {
			continue // at work just now, or not a file of ours
		} else if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
