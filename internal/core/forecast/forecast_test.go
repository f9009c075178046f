package forecast

import (
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

func at(s float64) clock.Mono { return clock.Mono(s * float64(time.Second)) }

// The peak is a whole second's bytes, lives a minute, and survives an idle link (D-6.1).
func TestMeterPeak(t *testing.T) {
	var m Meter
	m.Add(at(-0.5), 1)
	for i := range 10 {
		m.Add(at(1+float64(i)/10), 10)
	}
	if got := m.Peak(at(1.95)); got != 80 {
		t.Errorf("peak inside the running quarter is %d, want the second before it: 80", got)
	}
	for _, s := range []float64{2, 30, 62} {
		if got := m.Peak(at(s)); got != 100 {
			t.Errorf("peak at %vs is %d, want 100", s, got)
		}
	}
	if got := m.Peak(at(63)); got != 0 {
		t.Errorf("peak a minute later is %d, want 0", got)
	}
	m.Add(at(500), 7)
	if got := m.Peak(at(501)); got != 7 {
		t.Errorf("peak after a long gap is %d, want 7", got)
	}
}

// A link that has just begun to carry is known by its first whole second, wherever that begins: clients are told a
// start two seconds after they came.
func TestMeterFirstSecond(t *testing.T) {
	for begin := 0.0; begin < 1; begin += 0.05 {
		var m Meter
		for s := begin; s < begin+1.5; s += 0.001 {
			m.Add(at(s), 100)
		}
		if got := m.Peak(at(begin + 1.5)); got < 99_000 || got > 101_000 {
			t.Errorf("a link of 100000 B/s that began at %.2fs is taken for %d", begin, got)
		}
	}
}

// Seats end in the order and at the time of an equal split, first between principals.
func TestSeatsSplit(t *testing.T) {
	type step struct {
		tag  uint32
		took float64
	}
	for name, c := range map[string]struct {
		rate, ceiling int64
		take          [][2]int64 // principal, bytes; the tag is the index
		want          []step
	}{
		"equal":                {100, 0, [][2]int64{{1, 100}, {2, 200}}, []step{{0, 2}, {1, 1}}},
		"two of one principal": {100, 0, [][2]int64{{1, 50}, {1, 50}, {2, 100}}, []step{{0, 2}, {1, 0}, {2, 0}}},
		"ceiling":              {100, 20, [][2]int64{{1, 100}}, []step{{0, 5}}},
		"nothing left":         {100, 0, [][2]int64{{1, 0}}, []step{{0, 0.01}}},
	} {
		var s Seats
		s.Reset(c.rate, c.ceiling)
		for i, p := range c.take {
			s.Take(uint32(p[0]), p[1], uint32(i))
		}
		for i, w := range c.want {
			tag, took, ok := s.Next()
			if !ok || tag != w.tag || took.Seconds() < w.took-0.001 || took.Seconds() > w.took+0.001 {
				t.Errorf("%s: end %d is seat %d after %v (%v), want %+v", name, i, tag, took, ok, w)
			}
		}
		if _, _, more := s.Next(); more {
			t.Errorf("%s: seats left over", name)
		}
	}
}

// A rate of nothing plays nothing: what is not known is not guessed.
func TestSeatsWithoutRate(t *testing.T) {
	var s Seats
	s.Reset(0, 0)
	s.Take(1, 5, 9)
	if _, _, ok := s.Next(); ok {
		t.Error("seats end on a link of unknown rate")
	}
}
