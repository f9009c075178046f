package delivery

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// unacked is how many bytes the socket holds that the other side has not acknowledged; 0 when it cannot tell.
func unacked(raw syscall.RawConn) int64 {
	n := 0
	if err := raw.Control(func(fd uintptr) {
		if v, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ); err == nil {
			n = v
		}
	}); err != nil {
		return 0
	}
	return int64(n)
}

// unsentMost is how many bytes a socket under TLS holds that it has not sent at all. Without the bound the kernel takes
// megabytes, and takes more only when a third of them are gone: of a slow reader nothing is heard for minutes.
const unsentMost = 256 << 10

// holdLess bounds the unsent bytes of a socket; on a socket that knows no such bound nothing changes.
func holdLess(raw syscall.RawConn) {
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentMost)
	})
}
