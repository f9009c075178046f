package governor

import (
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

// bucket is a ceiling in bytes per second, kept as the instant at which all bytes granted so far have been paid for.
type bucket struct {
	rate int64 // 0: no ceiling
	free clock.Mono
}

const (
	burst   = 20 * time.Millisecond  // what an idle bucket saves up
	catchUp = 250 * time.Millisecond // what a bucket keeps while somebody waits for it: a late timer loses no rate
)

func (b *bucket) open(now clock.Mono) bool { return b.rate == 0 || b.free <= now }

// take pays for n bytes; late says that somebody had been waiting for this bucket to open.
func (b *bucket) take(now clock.Mono, n int64, late bool) {
	if b.rate == 0 {
		return
	}
	saved := burst
	if late {
		saved = catchUp
	}
	price := time.Duration(float64(n) / float64(b.rate) * float64(time.Second))
	b.free = max(b.free, now.Add(-saved)).Add(price)
}

// change sets another rate. A debt stays the same number of bytes; savings are gone.
func (b *bucket) change(now clock.Mono, rate int64) {
	debt := max(0, b.free.Sub(now))
	if b.rate == 0 || rate == 0 {
		debt = 0
	} else {
		debt = time.Duration(float64(debt) * float64(b.rate) / float64(rate))
	}
	b.rate, b.free = rate, now.Add(debt)
}
