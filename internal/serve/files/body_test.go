package files

import (
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/roadstead/roadstead/internal/fault"
)

type brokenBody struct {
	left string
	err  error
}

func (b *brokenBody) Read(p []byte) (int, error) {
	if b.left == "" {
		return 0, b.err
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

func TestBlameTellsTheClientFromTheDisk(t *testing.T) {
	disk := errors.New("disk broke")
	cases := []struct {
		name string
		end  error
		says string // empty: the client is not to blame
	}{
		{"whole", io.EOF, ""},
		{"cut", io.ErrUnexpectedEOF, "ended after 3 of 10 bytes"},
		{"stalled", os.ErrDeadlineExceeded, "pause for more than 60 seconds; it did after 3 bytes"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newPatientBody(httptest.NewRecorder(), &brokenBody{"abc", c.end}, 10)
			_, _ = io.ReadAll(b)
			err := b.blame(disk)
			if c.says == "" {
				if !errors.Is(err, disk) {
					t.Errorf("got %v", err)
				}
				return
			}
			if !fault.Is(err, fault.InvalidInput) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}
