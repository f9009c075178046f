package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// dropping are the rights that a stage started by root needs to lose all of them.
var dropping = []string{"CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"}

// become makes this process the user for good: no groups, no rights, none to be had again. The kernel keeps rights by
// thread, and those of the thread that starts the payload are the payload's.
func become(user uint32) error {
	if user == 0 {
		return nil
	}
	runtime.LockOSThread()
	for right := uintptr(0); ; right++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) && right > unix.CAP_SETPCAP {
			break // the kernel has no more
		}
		if err != nil {
			return fmt.Errorf("give up right %d: %w", right, err)
		}
	}
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(int(user), int(user), int(user)), syscall.Setresuid(int(user), int(user), int(user))); err != nil {
		return fmt.Errorf("become the Attempt's user: %w", err)
	}
	var none [2]unix.CapUserData
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("give up the last rights: %w", err)
	}
	return nil
}
