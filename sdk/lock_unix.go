//go:build unix

package sdk

import (
	"os"
	"syscall"
)

// lock takes the file for this process; the system frees it when the file is closed or the process ends.
func lock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
