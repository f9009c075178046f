package supervisor

import (
	"errors"
	"time"

	"github.com/roadstead/roadstead/internal/executor/folder"
)

// finish makes sure that nothing of the payload is left, and then writes how it ended: the slot is free when the record is
// there.
func (w *watch) finish() error {
	killed := w.order.Group.Kill(killPatience)
	u, usageErr := w.order.Group.Usage()
	w.record.EndedAt = time.Now()
	w.record.Usage.User, w.record.Usage.System, w.record.Usage.MemoryPeak = u.User, u.System, u.MemoryPeak
	if w.launched > 0 {
		w.record.Usage.Wall = folder.Uptime() - w.launched
		w.record.Usage.Disk = max(w.record.Usage.Disk, newMeter(w.folder, w.order.Group).measure(w.order.Spec.Limits.Disk))
	}
	var logged error
	if w.log != nil {
		logged = w.log.close()
		w.record.Usage.Log = w.log.written()
	}
	if killed != nil {
		return errors.Join(killed, logged) // no record while anything may still run
	}
	return errors.Join(usageErr, logged, w.folder.DropScratch(), w.order.Group.Remove(), w.folder.WriteRecord(w.record))
}
