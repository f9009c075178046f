package delivery

import (
	"context"
	"net"
	"syscall"
)

type connKey struct{}

// ConnContext goes into http.Server.ConnContext. With it OnSent counts bytes when the client's side has acknowledged
// them: sockets accept megabytes at once that the link has yet to carry, and a rate taken from that would be too high.
// Without it OnSent counts bytes when the socket accepts them.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	t, encrypted := c.(interface{ NetConn() net.Conn }) // TLS
	if encrypted {
		c = t.NetConn()
	}
	s, ok := c.(syscall.Conn)
	if !ok {
		return ctx
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return ctx
	}
	if encrypted {
		holdLess(raw) // a write under TLS cannot be looked after while it blocks: let it block for short
	}
	return context.WithValue(ctx, connKey{}, raw)
}

// meter counts the bytes of one response as they are acknowledged.
type meter struct {
	raw  syscall.RawConn // nil: not known, accepted counts
	sent int64           // accepted by the socket
	told int64
}

func newMeter(ctx context.Context) meter {
	raw, _ := ctx.Value(connKey{}).(syscall.RawConn)
	return meter{raw: raw}
}

// accepted adds n bytes and gives how many more were acknowledged. What the socket holds includes all our bytes that
// are not, as ours came last; what else it holds only makes us tell later.
func (m *meter) accepted(n int64) int64 {
	m.sent += n
	held := int64(0)
	if m.raw != nil {
		held = min(m.sent, unacked(m.raw))
	}
	more := max(0, m.sent-held-m.told)
	m.told += more
	return more
}

// rest gives the bytes not told yet, when the response ends.
func (m *meter) rest() int64 {
	more := m.sent - m.told
	m.told = m.sent
	return more
}
