package executor_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/core/lifecycle"
)

// A supervisor that waits takes the next Attempt. One that dies while it waits keeps nothing from starting, and one that
// is not needed ends with the runner.
func TestSupervisorThatWaits(t *testing.T) {
	e := fixture(t)
	t.Cleanup(e.Dismiss)
	run := func(id string) {
		t.Helper()
		s := spec(t, "exit", "0")
		s.AttemptID += id
		if r := wait(t, start(t, e, s)); r.Reason != lifecycle.Done {
			t.Errorf("%s: %+v", id, r)
		}
	}
	run("-first")
	_, used := e.Next()
	run("-by-the-one-that-waited")
	ended(t, used)
	pid, gone := e.Next()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ended(t, gone)
	run("-in-its-stead")

	_, gone = e.Next()
	e.Dismiss()
	ended(t, gone)
}

func ended(t *testing.T, gone <-chan struct{}) {
	t.Helper()
	select {
	case <-gone:
	case <-time.After(30 * time.Second):
		t.Error("the supervisor has not ended")
	}
}
