package blob

import (
	"fmt"
	"syscall"

	"github.com/roadstead/roadstead/internal/fault"
)

// roomStep is how much is written between two looks at the free space: so much the reserve may be off, per writer.
const roomStep = 4 << 20

// room refuses n more bytes that would touch the reserve.
func (d *Disk) room(n int64) error {
	if d.reserve == 0 {
		return nil
	}
	free, err := d.free(d.objects)
	if err != nil {
		return fmt.Errorf("asking for the free disk space: %w", err)
	}
	if free-n < d.reserve {
		return fault.New(fault.CapacityExceeded, "the server's disk has no room for this: %d bytes would leave less than the reserve of %d", n, d.reserve)
	}
	return nil
}

// freeBytes is what an unprivileged process may still write to the file system of dir.
func freeBytes(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
