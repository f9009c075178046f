package forecast

import (
	"math"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

// Kinds is how many kinds of sessions there are, each with its own weight in the link.
const Kinds = 4

const (
	inflowMemory = 15 * time.Minute // arrivals count for about so long
	inflowGaps   = 6                // mean gaps without an arrival, after which a kind, or all, are taken to have stopped
)

// Inflow measures what arrives, by kind, and for how long that may be expected to go on. Nobody knows when a stream
// ends; one that has lasted for a while goes on for about as long again. The zero value has seen nothing.
type Inflow struct {
	at    clock.Mono
	seen  bool
	began clock.Mono // of the present stream
	last  clock.Mono // arrival of any kind
	flows bool
	span  float64 // seconds looked at, older ones counting less
	kinds [Kinds]arrivals
}

// arrivals is what came of one kind.
type arrivals struct {
	total  Total   // as told last
	count  float64 // sessions, older ones counting less
	volume float64 // their bytes
	last   clock.Mono
}

// Total is all that ever came of a kind.
type Total struct{ Sessions, Bytes int64 }

// See takes what ever came, now.
func (f *Inflow) See(now clock.Mono, all [Kinds]Total) {
	passed, first := now.Sub(f.at).Seconds(), !f.seen
	f.at, f.seen = now, true
	if first {
		for k := range f.kinds {
			f.kinds[k].total = all[k]
		}
		return
	}
	fade := math.Exp(-passed / inflowMemory.Seconds())
	f.span = f.span*fade + passed
	came, count := false, 0.0
	for k := range f.kinds {
		a := &f.kinds[k]
		n := max(all[k].Sessions-a.total.Sessions, 0)
		a.count = a.count*fade + float64(n)
		a.volume = a.volume*fade + float64(max(all[k].Bytes-a.total.Bytes, 0))
		a.total = all[k]
		count += a.count
		if n > 0 {
			came, a.last, f.last = true, now, now
		}
	}
	if came && !f.flows {
		f.began = now
	}
	f.flows = came || f.flows && f.comes(count, f.last)
}

// comes reports whether what came so often, and then last, has not stopped.
func (f *Inflow) comes(count float64, last clock.Mono) bool {
	return count >= 0.5 && f.at.Sub(last).Seconds() <= inflowGaps*f.span/count
}

// Rate is the bytes per second that a kind is expected to bring from now on, and the mean of one session of it.
func (f *Inflow) Rate(kind int) (rate, mean float64) {
	a := &f.kinds[kind]
	if !f.flows || f.span <= 0 || !f.comes(a.count, a.last) {
		return 0, 0
	}
	return a.volume / f.span, a.volume / a.count
}

// Lasts is for how long the stream is expected to go on.
func (f *Inflow) Lasts() time.Duration {
	if !f.flows {
		return 0
	}
	return f.at.Sub(f.began)
}
