package forecast

import (
	"math"
	"testing"
	"time"
)

// A stream is measured by kind, is expected to last about as long again, and has stopped when nobody came for long (D-6.3).
func TestInflow(t *testing.T) {
	var f Inflow
	all := [Kinds]Total{1: {Sessions: 40, Bytes: 4000}} // were there before anybody looked
	f.See(at(0), all)
	if rate, _ := f.Rate(1); rate != 0 || f.Lasts() != 0 {
		t.Error("those who were there flow in")
	}
	for s := 1; s <= 300; s++ {
		all[0].Sessions, all[0].Bytes = all[0].Sessions+1, all[0].Bytes+100
		if s%10 == 0 {
			all[2].Sessions, all[2].Bytes = all[2].Sessions+1, all[2].Bytes+5000
		}
		f.See(at(float64(s)), all)
	}
	for kind, want := range map[int][2]float64{0: {100, 100}, 1: {0, 0}, 2: {500, 5000}} {
		rate, mean := f.Rate(kind)
		if math.Abs(rate-want[0]) > 0.05*want[0] || math.Abs(mean-want[1]) > 0.05*want[1] {
			t.Errorf("kind %d: %.0f bytes per second in sessions of %.0f, want %v", kind, rate, mean, want)
		}
	}
	if d := f.Lasts(); d != 299*time.Second {
		t.Errorf("lasts %v more", d)
	}
	f.See(at(305), all)
	if rate, _ := f.Rate(2); rate == 0 {
		t.Error("stopped within its usual gap")
	}
	f.See(at(320), all)
	if rate, _ := f.Rate(2); rate != 0 || f.Lasts() != 0 {
		t.Error("goes on though nobody comes")
	}
	all[0].Sessions++
	f.See(at(330), all)
	if d := f.Lasts(); d != 0 {
		t.Errorf("a new stream lasts %v", d)
	}
}

// One kind that stops while others go on is not expected any more.
func TestInflowOfOneKindStops(t *testing.T) {
	var f Inflow
	var all [Kinds]Total
	for s := range 400 {
		all[3].Sessions, all[3].Bytes = all[3].Sessions+1, all[3].Bytes+10
		if s < 200 {
			all[0].Sessions, all[0].Bytes = all[0].Sessions+1, all[0].Bytes+10
		}
		f.See(at(float64(s)), all)
	}
	if rate, _ := f.Rate(0); rate != 0 {
		t.Errorf("%.1f bytes per second of a kind that stopped", rate)
	}
	if rate, _ := f.Rate(3); rate < 9 || rate > 11 {
		t.Errorf("%.1f bytes per second of the other, want 10", rate)
	}
}
