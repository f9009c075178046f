package sandbox

import (
	"fmt"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// minLandlock is the kernel interface with which truncating a file counts as writing to it.
const minLandlock = 3

// Find looks for bubblewrap and for what the kernel must bring. The words in missing say what is not there and what to
// do about it; the sandbox is complete when there are none.
func Find(bubblewrap string) (path string, missing []string) {
	if bubblewrap == "" {
		bubblewrap = "bwrap"
	}
	path, err := exec.LookPath(bubblewrap)
	if err != nil {
		missing = append(missing, "bubblewrap is not installed (Debian and Fedora: package bubblewrap)")
	} else if help, err := exec.Command(path, "--help").CombinedOutput(); err != nil || !strings.Contains(string(help), "--disable-userns") {
		missing = append(missing, fmt.Sprintf("bubblewrap at %s is too old; 0.8 or newer is needed", path))
	}
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 || abi < minLandlock {
		missing = append(missing, fmt.Sprintf("Landlock is not in this kernel, or older than version %d (boot with lsm=landlock,...)", minLandlock))
	}
	if _, err := systemCallFilter(); err != nil {
		missing = append(missing, fmt.Sprintf("no filter of system calls: %v", err))
	}
	return path, missing
}
