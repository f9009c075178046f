//go:build !linux

package app

// memoryFor is what Attempts may take together where the memory isn't known; the sandbox works on Linux only.
func memoryFor(slots int) int64 { return int64(slots) << 30 }
