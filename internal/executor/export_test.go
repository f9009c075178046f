package executor

import "time"

// Overdue lets a test wait less for a supervisor that hangs.
func (e *Executor) Overdue(d time.Duration) { e.overdue = d }

// Privileged lets a test run as on a machine without user namespaces.
func (e *Executor) Privileged() { e.privileged = true }

// Next gives the supervisor that waits for an Attempt, and what is closed when it has ended.
func (e *Executor) Next() (pid int, gone <-chan struct{}) {
	e.prepareNext()
	return e.next.pid, e.next.gone
}
