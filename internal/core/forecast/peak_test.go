package forecast

import (
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

// A link that carries less than it did a while ago is still taken for what it can carry (D-6.1): its clients may be slow.
func TestPeakIsTheBest(t *testing.T) {
	var m Meter
	now := clock.Mono(0)
	carry := func(rate int64, d time.Duration) {
		for end := now.Add(d); now < end; {
			now = now.Add(100 * time.Millisecond)
			m.Add(now, rate/10)
		}
	}
	carry(1000, 10*time.Second)
	carry(500, 10*time.Second)
	near(t, "slower since", m.Peak(now), 1000)
}
