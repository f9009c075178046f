package files

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/roadstead/roadstead/internal/fault"
)

// stallLimit ends an upload that sends nothing for so long. A slow upload is welcome; a stalled one only holds memory
// and a descriptor, and can be resumed.
const stallLimit = 60 * time.Second

// patientBody reads a request's body with a deadline that moves with every byte, and remembers whether the client or
// the disk failed.
type patientBody struct {
	src     io.Reader
	control *http.ResponseController
	want    int64 // Content-Length, -1 when not known
	got     int64
	stall   time.Duration // the longest pause
	err     error         // what reading the body failed with
}

func newPatientBody(w http.ResponseWriter, src io.Reader, want int64) *patientBody {
	return &patientBody{src: src, control: http.NewResponseController(w), want: want, stall: stallLimit}
}

func (b *patientBody) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(b.stall)) // a writer without deadlines (tests) has none to miss
	n, err := b.src.Read(p)
	b.got += int64(n)
	switch {
	case err == io.EOF:
		// Without this a deadline that passes while the answer is made would look like a client that left.
		_ = b.control.SetReadDeadline(time.Time{})
	case err != nil:
		b.err = err // the deadline stays: before it answers, net/http waits for what is left of a short body
	}
	return n, err
}

// blame names the client's failure when that is what ended the upload.
func (b *patientBody) blame(err error) error {
	if b.err == nil {
		return err
	}
	if errors.Is(b.err, os.ErrDeadlineExceeded) {
		return fault.Invalid("body", "must not pause for more than %d seconds; it did after %d bytes", int(stallLimit/time.Second), b.got)
	}
	return fault.Invalid("body", "must be sent whole; it ended after %d of %d bytes", b.got, b.want)
}

// joined is the value of a header that may be given as several fields.
func joined(h http.Header, name string) string { return strings.Join(h.Values(name), ", ") }
