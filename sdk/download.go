package sdk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"os"
	"path/filepath"
	"time"
)

// Download is one object to fetch into one file.
type Download struct {
	URL  string // Client.FileURL, a share link, or any address of the server
	File string // destination; written under File.part until verified

	Class     string        // asks for a lower class; empty: the caller's own (D-4.3)
	WaitLimit time.Duration // ends waiting, counted from the first question; never cuts bytes that flow. Zero: none (D-1.1)
	NotBefore time.Time     // the server isn't asked earlier (D-5.1)
	NotAfter  time.Time     // ErrQueueDeadline when the start is estimated, or waited for, past it (D-5.1)
	Digest    string        // sha256:<hex> the caller insists on; a changed object is then ErrChanged
	Fresh     bool          // forget an earlier partial file
	ID        string        // of a booking whose place is taken up (Client.Book); empty: one is made
	Why       bool          // ask the server why the download waits; the answer is in Waiting events (D-11.1)

	RangeBytes int64       // bytes of one request; default 8 MiB
	Events     func(Event) // may be nil
}

// Result is a finished download.
type Result struct {
	File     string `json:"file"`
	Size     int64  `json:"size"`
	Digest   string `json:"digest"`   // sha256:<hex> of what was written
	Verified bool   `json:"verified"` // the server (or the caller) named this digest; servers of other makes may name none
	Class    string `json:"class,omitempty"`
}

const (
	defaultRange    = 8 << 20
	checkpointEvery = time.Second
	ticketEvery     = 30 * time.Second
	maxRestarts     = 3 // an object that keeps changing isn't worth chasing
)

// download is the state of one Download call.
type download struct {
	c    *Client
	req  Download
	op   *operation
	rate meter

	file     *os.File
	hash     hash.Hash
	offset   int64 // bytes written and hashed
	cp       checkpoint
	plain    bool // the server refuses ranges from the first byte: ask without
	class    string
	restarts int
	savedAt  time.Duration
	placed   bool // a ticket of this place is in the checkpoint
}

// Download fetches an object: it waits in the queue, reads by ranges pinned to one revision, survives faults within
// the retry budget, continues what an earlier process left, verifies SHA-256, and only then puts the file in place.
// On any error other than ErrIntegrity the verified prefix and the place in the queue are kept for the next call.
func (c *Client) Download(ctx context.Context, req Download) (Result, error) {
	if req.RangeBytes <= 0 {
		req.RangeBytes = defaultRange
	}
	d := &download{c: c, req: req, op: c.operation(c.retry, req.Events)}
	d.op.notAfter = req.NotAfter
	d.rate = meter{clock: c.clock, emit: d.op.emit}
	if err := d.open(); err != nil {
		return Result{}, err
	}
	result, err := d.run(ctx)
	switch { // the error that ended the download matters more than one of these
	case err == nil || errors.Is(err, ErrIntegrity):
	case d.offset == 0 && d.cp.Ticket == "": // neither bytes nor a place: nothing to keep
		d.discard()
	default:
		_ = d.save()
	}
	_ = d.file.Close()
	return result, err
}

// open takes the partial file and what its checkpoint knows.
func (d *download) open() error {
	name := PartialFile(d.req.File)
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return fail(ErrLocal, err, "open the partial file")
	}
	if !lock(file) {
		_ = file.Close()
		return fail(ErrLocked, nil, "another process is downloading to %s", d.req.File)
	}
	d.file, d.hash, d.cp = file, sha256.New(), newCheckpoint(d.req.URL)
	if err := d.takeUp(); err != nil {
		_ = file.Close()
		return fail(ErrLocal, err, "continue the partial file %s", name)
	}
	if d.req.ID != "" && d.cp.ID != d.req.ID {
		d.cp.ID, d.cp.Ticket = d.req.ID, "" // a ticket is of one id
	}
	return nil
}

// takeUp continues from the checkpoint, if there is one to believe. Bytes beyond what it vouches for were never
// known to be on the disk and are cut off.
func (d *download) takeUp() error {
	cp, ok := loadCheckpoint(d.req.File, d.req.URL)
	if d.req.Fresh || !ok {
		return d.file.Truncate(0)
	}
	info, err := d.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() < cp.Offset { // someone cut it: believe what is there no more than its digest will prove
		cp.Offset, cp.Hash = info.Size(), nil
	}
	if d.hash, err = restoreHash(d.file, cp.Hash, cp.Offset); err != nil {
		return err
	}
	d.cp, d.offset = cp, cp.Offset
	if cp.Offset > 0 {
		d.op.emit(Resumed{Offset: cp.Offset, Size: cp.Size})
	}
	return d.file.Truncate(cp.Offset)
}

func (d *download) run(ctx context.Context) (Result, error) {
	if at := d.req.NotBefore; at.After(d.c.clock.Wall()) {
		d.op.emit(Scheduled{At: at})
		if err := waitUntil(ctx, d.c.clock, at); err != nil {
			return Result{}, err
		}
	}
	if !d.req.NotAfter.IsZero() && d.c.clock.Wall().After(d.req.NotAfter) {
		return Result{}, fail(ErrQueueDeadline, nil, "the deadline %s has passed", d.req.NotAfter.Local().Format(time.DateTime))
	}
	if d.req.WaitLimit > 0 {
		d.op.limited, d.op.limit = true, d.c.clock.Mono()+d.req.WaitLimit
	}
	d.rate.size = d.cp.Size
	for d.cp.Size < 0 || d.offset < d.cp.Size {
		if err := d.step(ctx); err != nil {
			return Result{}, err
		}
	}
	return d.finish()
}

// step makes one request and deals with how it ends.
func (d *download) step(ctx context.Context) error {
	err := d.fetch(ctx)
	if err == nil {
		d.op.answered()
		return d.saveNow(d.cp.Offset == 0 || d.c.clock.Mono()-d.savedAt >= checkpointEvery)
	}
	if c, ok := errors.AsType[*changedError](err); ok {
		return d.restart(c.reason)
	}
	if e, ok := errors.AsType[*Error](err); ok && e.busy() {
		d.rate.pause()
		// The ticket is the place in the queue. An earlier one of the same place holds for 15 minutes (D-8.2), so not
		// each of a night's answers is worth an fsync.
		if err := d.saveNow(!d.placed || d.c.clock.Mono()-d.savedAt >= ticketEvery); err != nil {
			return err
		}
		d.placed = d.cp.Ticket != ""
	}
	return d.op.recoverFrom(ctx, err)
}

// restart begins anew on another revision, unless the caller insists on the one it named.
func (d *download) restart(reason string) error {
	d.restarts++
	if d.req.Digest != "" || d.restarts > maxRestarts {
		return fail(ErrChanged, nil, "%s", reason)
	}
	d.op.emit(Restarted{Reason: reason})
	d.rate.pause()
	// The id stays: the queue tells the revisions apart by itself (D-2.2), and the ticket is the new one already.
	d.cp.ETag, d.cp.Digest, d.cp.Size, d.cp.Offset, d.cp.Hash = "", "", -1, 0, nil
	d.hash, d.offset, d.placed = sha256.New(), 0, false
	if err := d.file.Truncate(0); err != nil {
		return fail(ErrLocal, err, "empty the partial file")
	}
	return d.saveNow(true)
}

func (d *download) saveNow(now bool) error {
	if !now {
		return nil
	}
	if err := d.save(); err != nil {
		return fail(ErrLocal, err, "save the state of the download")
	}
	return nil
}

// save makes the bytes durable first and only then vouches for them.
func (d *download) save() error {
	if d.offset > d.cp.Offset {
		if err := d.file.Sync(); err != nil {
			return err
		}
	}
	d.cp.Offset, d.cp.Hash = d.offset, hashState(d.hash)
	if err := d.cp.save(d.req.File); err != nil {
		return err
	}
	d.savedAt = d.c.clock.Mono()
	return nil
}

func (d *download) discard() {
	_ = removeIfThere(checkpointFile(d.req.File))
	_ = removeIfThere(PartialFile(d.req.File))
}

// finish verifies the whole and puts it in place.
func (d *download) finish() (Result, error) {
	digest := digestPrefix + hex.EncodeToString(d.hash.Sum(nil))
	want := d.cp.Digest
	if d.req.Digest != "" {
		want = d.req.Digest
	}
	if want != "" && digest != want {
		// Nothing tells which bytes are wrong: none of them is worth keeping.
		d.discard()
		return Result{}, fail(ErrIntegrity, nil, "the bytes received have the digest %s, not %s; they were discarded", digest, want)
	}
	d.rate.at(d.offset, true)
	err := d.file.Sync()
	if err == nil {
		err = os.Rename(PartialFile(d.req.File), d.req.File)
	}
	if err == nil {
		err = errors.Join(syncDir(filepath.Dir(d.req.File)), removeIfThere(checkpointFile(d.req.File)))
	}
	if err != nil {
		return Result{}, fail(ErrLocal, err, "put the finished file in place")
	}
	d.op.emit(Done{Size: d.offset, Digest: digest})
	return Result{File: d.req.File, Size: d.offset, Digest: digest, Verified: want != "", Class: d.class}, nil
}

// syncDir makes a rename durable; systems that can't fsync a folder are left to their own ways.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = f.Sync()
	return f.Close()
}
