package executor

import "time"

// Overdue lets a test wait less for a supervisor that hangs.
func (e *Executor) Overdue(d time.Duration) { e.overdue = d }

// Privileged lets a test run as on a machine without user namespaces.
func (e *Executor) Privileged() { e.privileged = true }
