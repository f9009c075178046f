// Package downloads gives large downloads their place, their seat and an honest answer meanwhile: the shell around the
// session machine, with the clock, the lock, the requests it holds open and the metrics.
package downloads

import (
	"context"
	"time"

	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/fault"
)

// Config sizes the queue.
type Config struct {
	Settings                // in force until Configure changes them
	Hold      time.Duration // how long a request without a download id is held before it is answered busy (D-2.4)
	HoldLimit int           // requests held at once
	Small     SmallConfig
	Seed      uint64 // feeds the spread of check times
}

// SmallConfig bounds the per-request queue of objects up to SessionMinBytes (D-2.5).
type SmallConfig struct {
	Active              int           // responses at once
	ActivePerPrincipal  int           //
	Waiting             int           // requests waiting at once
	WaitingPerPrincipal int           //
	Wait                time.Duration // the longest wait before a busy answer
}

// Default is the configuration of the documents for a number of seats.
func Default(seats int) Config {
	return Config{
		Settings: Settings{Policy: session.Default(seats), SessionMinBytes: 16 << 20}, Hold: 20 * time.Second, HoldLimit: 64,
		Small: SmallConfig{Active: 16, ActivePerPrincipal: 4, Waiting: 64, WaitingPerPrincipal: 8, Wait: 20 * time.Second},
	}
}

// Validate names the first field that cannot work.
func (c Config) Validate() error {
	if err := c.Settings.Validate(); err != nil {
		return err
	}
	switch {
	case c.Hold < 0 || c.Hold > time.Hour:
		return fault.Invalid("holdSeconds", "must be between 0 and 3600")
	case c.HoldLimit < 0:
		return fault.Invalid("transferQueueLimit", "must not be negative")
	case c.Small.Active < 1 || c.Small.ActivePerPrincipal < 1:
		return fault.Invalid("maxDownloads", "must be at least 1")
	case c.Small.Waiting < 0 || c.Small.WaitingPerPrincipal < 0 || c.Small.Wait < 0:
		return fault.Invalid("small", "limits of the per-request queue must not be negative")
	}
	return nil
}

// State remembers across a restart that downloads were waiting, so that the new process lets them come back before it
// gives a seat away (D-2.12). Both block on the database; SetQueueMark is idempotent.
type State interface {
	QueueMark(ctx context.Context) (waiters bool, err error)
	SetQueueMark(ctx context.Context, waiters bool) error
}

// Signer makes and checks tickets (D-8.1). It is safe for concurrent use and never blocks.
type Signer interface {
	Sign(session [16]byte, arrival, issued time.Time) string
	Verify(ticket string, session [16]byte, now time.Time) (arrival time.Time, ok bool)
}
