package delivery

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

// The kernel sends the file's own pages: bytes changed after the server had sent them, but before the client read
// them, reach the client changed. Behind a writer without ReadFrom they don't, so this test sees when sendfile is lost.
func TestSendfileIsKept(t *testing.T) {
	if !zeroCopy(t, nil) {
		t.Error("the body was copied through user space")
	}
	if zeroCopy(t, paths["buffers"]) {
		t.Error("this test cannot tell: it saw no copy behind a writer that hides ReadFrom")
	}
}

// zeroCopy reports whether a large body leaves without passing through a buffer of ours.
func zeroCopy(t *testing.T, wrap func(http.ResponseWriter) http.ResponseWriter) bool {
	t.Helper()
	c, data := stored(t, 384<<10)
	h, out := handler(t, c, nil, time.Minute, wrap)
	s := httptest.NewServer(h)
	defer s.Close()
	conn := ask(t, s, 208<<10)
	defer conn.Close()
	if o := <-out; !o.Whole { // all of it is in the sockets now, and the client has read nothing
		t.Fatalf("%+v", o)
	}
	f, err := c.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := overwrite(f.Name(), len(data)); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, len(data)/2)
	if _, err := io.ReadFull(conn, body); err != nil {
		t.Fatal(err)
	}
	rest := make([]byte, len(data)/2)
	if _, err := io.ReadFull(conn, rest); err != nil {
		t.Fatal(err)
	}
	// Of the second half most is far behind whatever the kernel may have moved already.
	return bytes.Contains(rest, make([]byte, 64<<10))
}

// overwrite changes a file in place, in the page cache.
func overwrite(path string, n int) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, n))
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
