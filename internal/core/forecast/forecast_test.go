package forecast

import (
	"fmt"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

func at(s float64) clock.Mono { return clock.Mono(s * float64(time.Second)) }

// carry lets a link carry bytes per second from one instant to another.
func carry(m *Meter, from, to, rate float64) {
	for s := from; s < to; s += 0.001 {
		m.Add(at(s), int64(rate/1000))
	}
}

func near(t *testing.T, what string, got, want int64) {
	t.Helper()
	if d := float64(got-want) / float64(want); d < -0.03 || d > 0.03 {
		t.Errorf("%s: taken for %d, want %d", what, got, want)
	}
}

// The rate is the best of four seconds on end, lives a minute, and survives an idle link (D-6.1).
func TestMeterPeak(t *testing.T) {
	var m Meter
	if got := m.Peak(at(0)); got != 0 {
		t.Errorf("a link that carried nothing is taken for %d", got)
	}
	carry(&m, 10, 16, 50_000)
	carry(&m, 16, 22, 100_000)
	for _, s := range []float64{22, 30, 70} {
		near(t, "carried 22 s long", m.Peak(at(s)), 100_000)
	}
	if got := m.Peak(at(83)); got != 0 {
		t.Errorf("a minute later it is taken for %d", got)
	}
	carry(&m, 500, 501.5, 70_000)
	near(t, "after a long gap", m.Peak(at(501.5)), 70_000)
}

// A link that has just begun to carry is known after a second and a half, wherever that begins: clients are told a start
// two seconds after they came.
func TestMeterFirstSeconds(t *testing.T) {
	for begin := 0.0; begin < 1; begin += 0.05 {
		var m Meter
		carry(&m, begin, begin+1.8, 100_000)
		near(t, fmt.Sprintf("begun at %.2f s", begin), m.Peak(at(begin+1.8)), 100_000)
	}
}

// Bytes told late and in lumps, as a stalled process does, don't make the link look faster than it is (D-6.3).
func TestMeterLumps(t *testing.T) {
	var m Meter
	for s := 0.0; s < 50; s += 1.5 {
		carry(&m, s, s+0.7, 40_000_000)
		m.Add(at(s+1.4), 28_000_000) // the next 0.7 s in one piece
		carry(&m, s+1.4, s+1.5, 40_000_000)
	}
	if got := m.Peak(at(51)); got < 38_000_000 || got > 46_000_000 {
		t.Errorf("lumps of 0.7 s on a link of 40 MB/s: taken for %d", got)
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
