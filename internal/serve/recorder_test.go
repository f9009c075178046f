package serve

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// countingListener hands out connections that count how many bytes net/http gave to ReadFrom with a plain file
// inside, which is what becomes sendfile on a TCP connection.
type countingListener struct {
	net.Listener
	sent *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countingConn{Conn: c, sent: l.sent}, nil
}

type countingConn struct {
	net.Conn
	sent *atomic.Int64
}

func (c *countingConn) ReadFrom(r io.Reader) (int64, error) {
	n, err := c.Conn.(*net.TCPConn).ReadFrom(r)
	inner := r
	if l, ok := r.(*io.LimitedReader); ok {
		inner = l.R
	}
	if _, ok := inner.(*os.File); ok {
		c.sent.Add(n)
	}
	return n, err
}

// A wrapper around the ResponseWriter without ReadFrom loses sendfile silently; this fails when that happens.
func TestTheWholeChainKeepsSendfile(t *testing.T) {
	const size = 4 << 20
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	edge := newEdge(nil, slog.New(slog.DiscardHandler))
	h := edge.wrap(edge.handle(stream, func(w http.ResponseWriter, _ *http.Request) error {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", "4194304")
		_, err = w.(io.ReaderFrom).ReadFrom(io.LimitReader(f, size))
		return err
	}))
	srv := httptest.NewUnstartedServer(h)
	var sent atomic.Int64
	srv.Listener = countingListener{srv.Listener, &sent}
	srv.Start()
	defer srv.Close()
	res, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	n, err := io.Copy(io.Discard, res.Body)
	if err != nil || n != size {
		t.Fatalf("got %d bytes, %v", n, err)
	}
	if sent.Load() < size-4096 {
		t.Errorf("only %d of %d bytes could go by sendfile", sent.Load(), size)
	}
}
