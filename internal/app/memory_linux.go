package app

import "golang.org/x/sys/unix"

// machineMemory is all the memory of this machine, in bytes.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 1 << 30
	}
	return int64(info.Totalram) * int64(info.Unit)
}
