package files

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

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

// An upload that stalls a few bytes before its end is answered: it does not hold its connection.
func TestStalledUploadIsAnswered(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := newPatientBody(w, r.Body, r.ContentLength)
		b.stall = 20 * time.Millisecond
		_, _ = io.Copy(io.Discard, b)
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nab"); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400") {
		t.Errorf("got %q, %v", answer, err)
	}
}
