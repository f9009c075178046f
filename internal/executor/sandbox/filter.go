package sandbox

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// forbidden are system calls that no job needs and that have been ways out of sandboxes: mounts, namespaces, the
// kernel's keys and modules, programs for the kernel, other processes' memory, the clock.
var forbidden = []string{
	"acct", "add_key", "adjtimex", "bpf", "clock_adjtime", "clock_settime", "delete_module", "fanotify_init", "finit_module", "fsconfig",
	"fsmount", "fsopen", "fspick", "init_module", "io_uring_enter", "io_uring_register", "io_uring_setup", "ioperm", "iopl", "kcmp",
	"kexec_file_load", "kexec_load", "keyctl", "lookup_dcookie", "mount", "mount_setattr", "move_mount", "name_to_handle_at", "nfsservctl",
	"open_by_handle_at", "open_tree", "perf_event_open", "pivot_root", "process_madvise", "process_vm_readv", "process_vm_writev", "ptrace",
	"quotactl", "quotactl_fd", "reboot", "request_key", "setdomainname", "sethostname", "setns", "settimeofday", "swapoff", "swapon",
	"syslog", "umount", "umount2", "unshare", "userfaultfd", "vhangup",
}

// newNamespaces are the flags of clone that make a namespace.
const newNamespaces = unix.CLONE_NEWCGROUP | unix.CLONE_NEWIPC | unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID |
	unix.CLONE_NEWUSER | unix.CLONE_NEWUTS

// systemCallFilter is the filter as the kernel takes it, for this machine's architecture. Calls of another one (32 bits on
// a 64-bit kernel) end the process, as their numbers mean other things.
func systemCallFilter() ([]byte, error) {
	here, err := arch.GetInfo("")
	if err != nil {
		return nil, fmt.Errorf("find the system calls of this machine: %w", err)
	}
	known := func(names ...string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(n string) bool { _, is := here.SyscallNames[n]; return !is })
	}
	clone := []seccomp.NameWithConditions{}
	for flag := uint64(1); flag <= newNamespaces; flag <<= 1 {
		if flag&newNamespaces != 0 {
			clone = append(clone, seccomp.NameWithConditions{Name: "clone", Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.BitsSet, Value: flag}}})
		}
	}
	policy := seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{
		{Action: seccomp.ActionErrno, Names: known(forbidden...)},
		// The flags of clone3 lie in memory, where a filter can't look: C libraries fall back to clone when it isn't there.
		{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: known("clone3")},
		{Action: seccomp.ActionErrno, NamesWithCondtions: append(clone,
			// Typing into the terminal of whoever started us, and sockets of kinds that no namespace holds.
			seccomp.NameWithConditions{Name: "ioctl", Conditions: seccomp.ArgumentConditions{{Argument: 1, Operation: seccomp.Equal, Value: unix.TIOCSTI}}},
			seccomp.NameWithConditions{Name: "ioctl", Conditions: seccomp.ArgumentConditions{{Argument: 1, Operation: seccomp.Equal, Value: unix.TIOCLINUX}}},
			seccomp.NameWithConditions{Name: "socket", Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.Equal, Value: unix.AF_VSOCK}}},
			seccomp.NameWithConditions{Name: "socket", Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.Equal, Value: unix.AF_ALG}}},
			seccomp.NameWithConditions{Name: "socket", Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.Equal, Value: unix.AF_PACKET}}},
		)},
	}}
	program, err := policy.Assemble()
	if err != nil {
		return nil, fmt.Errorf("assemble the filter of system calls: %w", err)
	}
	const architecture = 4 // offset in the kernel's seccomp_data
	program = append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: architecture, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(here.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(seccomp.ActionKillProcess)},
	}, program...)
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("assemble the filter of system calls: %w", err)
	}
	var out bytes.Buffer
	for _, i := range raw { // struct sock_filter, in this machine's byte order
		if err := binary.Write(&out, binary.NativeEndian, unix.SockFilter{Code: i.Op, Jt: i.Jt, Jf: i.Jf, K: i.K}); err != nil {
			return nil, fmt.Errorf("write the filter of system calls: %w", err)
		}
	}
	return out.Bytes(), nil
}
