package delivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"sync"
	"time"

	"github.com/roadstead/roadstead/internal/governor"
)

const (
	bufferSize = 256 << 10              // also the largest body that goes out in one write
	firstBytes = 2 << 10                // sent together with the header: some clients stall between the two
	pieceSize  = 64 << 10               // of one write of many from a buffer
	minSlice   = 16 << 10               // for the slowest reader
	firstSlice = 1 << 20                // as long as nothing is known of the reader
	maxSlice   = 4 << 20                // the governor's longest
	slowest    = 16 << 10               // bytes per second that a write from a buffer is given on top of Idle
	look       = 5 * time.Second        // how often a kernel send that blocks is looked after
	sliceTime  = 100 * time.Millisecond // that a slice takes a slow reader
)

// buffers are reused across responses: a quarter of a megabyte is too much to make for each range.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// transfer moves the body of one response.
type transfer struct {
	w       http.ResponseWriter
	kernel  io.ReaderFrom // sends from a file without copying; nil under TLS, and behind a writer that hides it
	control *http.ResponseController
	answer  *Answer
	file    *os.File
	flow    *governor.Flow
	opt     Options
	pace    int64 // bytes that this reader takes in sliceTime
	credit  int64 // bytes taken from the governor and not yet sent
	begun   bool  // the header is out
	meter   meter
}

func newTransfer(w http.ResponseWriter, r *http.Request, a *Answer, f *os.File, flow *governor.Flow, o Options) *transfer {
	t := &transfer{w: w, control: http.NewResponseController(w), answer: a, file: f, flow: flow, opt: o,
		pace: min(flow.Slice(), firstSlice), meter: newMeter(r.Context())}
	if r.TLS == nil {
		t.kernel, _ = w.(io.ReaderFrom)
	}
	return t
}

func (t *transfer) run(ctx context.Context) error {
	span := t.answer.Span
	switch {
	case span.Multi:
		return t.multipart(ctx)
	case t.kernel != nil && span.To-span.From > bufferSize:
		return t.linked(ctx, span.From, span.To)
	default:
		return t.copied(ctx, span.From, span.To)
	}
}

// linked lets the kernel send from the file. The header and the first bytes go ahead in one write, the rest in slices.
// Each slice must be one io.LimitedReader directly over the *os.File, or net falls back to copying without a word.
func (t *transfer) linked(ctx context.Context, from, to int64) error {
	if err := t.take(ctx, t.slice(to-from)); err != nil { // what the first bytes leave of it is credit
		return err
	}
	var first [firstBytes]byte
	if err := t.read(first[:], from); err != nil {
		return err
	}
	t.begin()
	if err := t.write(first[:]); err != nil {
		return err
	}
	if _, err := t.file.Seek(from+firstBytes, io.SeekStart); err != nil {
		return err
	}
	part := io.LimitedReader{R: t.file}
	step := min(t.opt.Idle/4, look)
	var stalled time.Duration
	for left := to - from - firstBytes; left > 0; {
		n := t.slice(left)
		if err := t.take(ctx, n); err != nil {
			return err
		}
		part.N = n
		began := time.Now()
		t.deadline(began.Add(step))
		m, err := t.kernel.ReadFrom(&part)
		t.accepted(m, time.Since(began))
		left -= m
		switch {
		case err == nil && m < n:
			return io.ErrUnexpectedEOF // the file is shorter than its record says
		case m > 0 && (err == nil || isTimeout(err)):
			stalled = 0 // a slow reader; the next slice is cut to its pace
		case isTimeout(err) && stalled+step < t.opt.Idle:
			stalled += step // the header is out and sendfile left nothing half-written: trying again is safe
		default:
			return err
		}
	}
	return nil
}

// copied sends through a buffer: under TLS, for short bodies and for parts.
func (t *transfer) copied(ctx context.Context, from, to int64) error {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	whole := to-from <= bufferSize
	for {
		n := to - from
		if !whole {
			n = min(t.slice(n), bufferSize)
		}
		if err := t.take(ctx, n); err != nil {
			return err
		}
		if err := t.read(buf[:n], from); err != nil {
			return err
		}
		t.begin()
		piece := bufferSize
		if !whole {
			piece = int(min(t.pace, pieceSize))
		}
		for p := buf[:n]; len(p) > 0; {
			k := min(len(p), piece)
			if err := t.write(p[:k]); err != nil {
				return err
			}
			p = p[k:]
		}
		if from += n; from >= to {
			return nil
		}
	}
}

// multipart sends several ranges. ServeContent has chosen the boundary and counted the length with it.
func (t *transfer) multipart(ctx context.Context) error {
	_, params, err := mime.ParseMediaType(t.answer.header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("boundary of a multipart answer: %w", err)
	}
	mw := multipart.NewWriter(t.w)
	if err := mw.SetBoundary(params["boundary"]); err != nil {
		return fmt.Errorf("boundary of a multipart answer: %w", err)
	}
	t.begin()
	for _, p := range t.answer.parts {
		t.deadline(time.Now().Add(t.opt.Idle))
		if _, err := mw.CreatePart(textproto.MIMEHeader{
			"Content-Range": {contentRange(p, t.answer.content.Size)},
			"Content-Type":  {t.answer.content.mediaType()},
		}); err != nil {
			return err
		}
		if err := t.copied(ctx, p.from, p.to); err != nil {
			return err
		}
	}
	t.deadline(time.Now().Add(t.opt.Idle))
	return errors.Join(mw.Close(), t.flush())
}

// begin writes the header, once.
func (t *transfer) begin() {
	if !t.begun {
		t.begun = true
		t.answer.SetHeader(t.w.Header())
		t.w.WriteHeader(t.answer.Status)
	}
}

// slice is how much to send in one go: the governor's slice, less for a slow reader.
func (t *transfer) slice(left int64) int64 { return min(left, t.flow.Slice(), t.pace) }

// take waits for leave to send n bytes. The wait is reported, so that the session does not seem idle.
func (t *transfer) take(ctx context.Context, n int64) error {
	need := n - t.credit
	if need <= 0 {
		return nil
	}
	if err := t.flow.Take(ctx, need, func() { t.tell(0) }); err != nil {
		return err
	}
	t.credit = n
	return nil
}

// read fills p from the file at off, without moving the offset that linked uses.
func (t *transfer) read(p []byte, off int64) error {
	n, err := t.file.ReadAt(p, off)
	switch {
	case n == len(p):
		return nil
	case err == io.EOF:
		return io.ErrUnexpectedEOF // the file is shorter than its record says
	}
	return err
}

// write sends p as one piece. net/http cannot go on after a write that timed out half-way, so the deadline leaves the
// slowest reader time for all of it.
func (t *transfer) write(p []byte) error {
	began := time.Now()
	t.deadline(began.Add(t.opt.Idle + time.Duration(len(p))*time.Second/slowest))
	n, err := t.w.Write(p)
	if err == nil {
		err = t.flush()
	}
	if err == nil {
		t.accepted(int64(n), time.Since(began))
	}
	return err
}

// accepted counts n bytes that the socket took in d, and fits the slices to the reader: long ones make a rate meter
// see lumps, short ones cost a wake-up each.
func (t *transfer) accepted(n int64, d time.Duration) {
	t.credit -= n
	if more := t.meter.accepted(n); n > 0 {
		t.tell(more)
	}
	switch {
	case d > sliceTime:
		t.pace = max(minSlice, int64(float64(n)*sliceTime.Seconds()/d.Seconds()))
	case d < sliceTime/2:
		t.pace = min(2*t.pace, maxSlice)
	}
}

func (t *transfer) tell(n int64) {
	if t.opt.OnSent != nil {
		t.opt.OnSent(n)
	}
}

// deadline bounds the next write; net/http lifts it after the response. A writer without deadlines has none.
func (t *transfer) deadline(at time.Time) { _ = t.control.SetWriteDeadline(at) }

// flush reports errors of what net/http still held back.
func (t *transfer) flush() error {
	if err := t.control.Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
