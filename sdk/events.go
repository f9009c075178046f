package sdk

import (
	"time"

	"github.com/roadstead/roadstead/api"
)

// Event is what a long operation reports: Waiting, Hashing, Progress, Retrying, Restarted or Done. Callbacks come
// from the goroutine of the operation, one at a time; a slow callback slows the operation.
type Event interface{ event() }

// Waiting says that the server asked to come later. Times are in this machine's clock; they and Position are zero
// when Known is false.
type Waiting struct {
	Known    bool
	Position int       // 1-based place in the queue
	StartsAt time.Time // point estimate of the start
	Earliest time.Time
	Latest   time.Time
	CheckIn  time.Duration // until the next question
	Class    string        // class applied
	Reason   string        // api.Reason..., or empty
	Why      *api.Why      // when Download.Why asked and the server said; its time is in this machine's clock too
}

// Scheduled says that nothing will be asked before At (D-5.1).
type Scheduled struct{ At time.Time }

// Hashing reports the reading of a local file before an upload.
type Hashing struct{ Offset, Size int64 }

// Progress reports bytes moved. Rate is of the last seconds, in bytes per second; ETA is zero while not known.
type Progress struct {
	Offset, Size int64
	Rate         float64
	ETA          time.Duration
}

// Resumed says that an earlier run left Offset verified bytes.
type Resumed struct{ Offset, Size int64 }

// Retrying says that a fault was met and the request will be made again.
type Retrying struct {
	Attempt int // retry of this request
	Spent   int // retries of the whole operation
	In      time.Duration
	Err     error
}

// Restarted says that the download begins again from its first byte, and why.
type Restarted struct{ Reason string }

// Done says that all bytes have arrived and are verified.
type Done struct {
	Size   int64
	Digest string // sha256:<hex>
}

func (Waiting) event()   {}
func (Scheduled) event() {}
func (Hashing) event()   {}
func (Progress) event()  {}
func (Resumed) event()   {}
func (Retrying) event()  {}
func (Restarted) event() {}
func (Done) event()      {}

// meter turns byte counts into a rate over the last seconds, and keeps reports from coming too often.
type meter struct {
	clock   Clock
	emit    func(Event)
	size    int64
	samples []sample // oldest first, spanning at most meterSpan
	last    time.Duration
}

type sample struct {
	at     time.Duration
	offset int64
}

const (
	meterSpan  = 10 * time.Second
	meterEvery = 200 * time.Millisecond
)

// at reports the offset reached; a report comes out at most five times a second unless forced.
func (m *meter) at(offset int64, force bool) {
	now := m.clock.Mono()
	if len(m.samples) > 0 && now-m.last < meterEvery && !force {
		return
	}
	m.last = now
	m.samples = append(m.samples, sample{now, offset})
	for len(m.samples) > 2 && now-m.samples[0].at > meterSpan {
		m.samples = m.samples[1:]
	}
	p := Progress{Offset: offset, Size: m.size}
	first := m.samples[0]
	if span := (now - first.at).Seconds(); span > 0 && offset > first.offset {
		p.Rate = float64(offset-first.offset) / span
		p.ETA = time.Duration(float64(m.size-offset) / p.Rate * float64(time.Second))
	}
	m.emit(p)
}

// pause forgets the rate: time spent in the queue or in a retry says nothing about it.
func (m *meter) pause() { m.samples = nil }
