//go:build !linux

package app

// machineMemory is a guess: the sandbox works on Linux only.
func machineMemory() int64 { return 1 << 30 }
