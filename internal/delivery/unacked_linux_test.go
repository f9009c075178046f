package delivery

import (
	"context"
	"io"
	"net"
	"testing"
	"time"
)

// What fills a socket's buffer is accepted, but not on its way: it must not count for the link's rate (D-6.1).
func TestMeterCountsAcknowledgedBytes(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	m := newMeter(ConnContext(t.Context(), conn))
	if err := conn.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	n, err := conn.Write(make([]byte, 64<<20)) // more than both ends hold: what is not acknowledged stays so
	if err == nil {
		t.Fatal("the sockets took everything")
	}
	first := m.accepted(int64(n))
	if first <= 0 || first >= int64(n) {
		t.Errorf("told %d of %d bytes", first, n)
	}
	if _, err := io.CopyN(io.Discard, client, int64(n)); err != nil {
		t.Fatal(err)
	}
	if sum := first + m.accepted(0) + m.rest(); sum != int64(n) || m.rest() != 0 {
		t.Errorf("told %d of %d bytes in all", sum, n)
	}
}

func TestMeterWithoutConnection(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	for _, ctx := range []context.Context{t.Context(), ConnContext(t.Context(), a)} {
		m := newMeter(ctx)
		if got := m.accepted(7); got != 7 || m.rest() != 0 {
			t.Errorf("told %d of 7", got)
		}
	}
}
