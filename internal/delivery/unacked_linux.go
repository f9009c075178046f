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
