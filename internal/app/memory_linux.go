package app

import "golang.org/x/sys/unix"

// memoryFor is what Attempts may take of this machine's memory together: three quarters of it.
func memoryFor(int) int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 1 << 30
	}
	return int64(info.Totalram) * int64(info.Unit) / 4 * 3
}
