package executor

import "time"

// Overdue lets a test wait less for a supervisor that hangs.
func (e *Executor) Overdue(d time.Duration) { e.overdue = d }
