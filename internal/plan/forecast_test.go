package plan

import (
	"math"
	"reflect"
	"testing"
)

// erlangC is the probability to wait with random arrivals and exponential times.
func erlangC(slots int, load float64) float64 {
	a, blocked := load*float64(slots), 1.0
	for n := 1; n <= slots; n++ {
		blocked = a * blocked / (float64(n) + a*blocked)
	}
	return blocked / (1 - load*(1-blocked))
}

// The forecast agrees with what queueing theory has a formula for: with 10 slots and times that hardly vary or vary as
// much as their average, the p95 wait lies in the band around that of exponential times (R-1.2: a forecast, labelled).
func TestForecastAgainstErlang(t *testing.T) {
	const slots, seconds, load = 10, 60.0, 0.9
	in := one(load*slots/seconds*60, seconds)
	got, err := Play(in, slots, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := math.Log(erlangC(slots, load)/0.05) * seconds / slots / (1 - load)
	if got.Wait.P95 < 0.6*want || got.Wait.P95 > 1.7*want || !got.Stable || got.Runs != plays*counted || len(got.P95s) != plays {
		t.Errorf("p95 %.0f s of %v, exponential times give %.0f s; %d runs", got.Wait.P95, got.P95s, want, got.Runs)
	}
	steady := in
	steady.Classes = []Class{in.Classes[0]}
	steady.Classes[0].Variation = 0
	even, err := Play(steady, slots, 1)
	if err != nil || even.Wait.P95 >= got.Wait.P95 {
		t.Errorf("times that do not vary wait longer: %.0f s, %v", even.Wait.P95, err)
	}
	again, err := Play(in, slots, 1)
	if err != nil || !reflect.DeepEqual(again, got) {
		t.Errorf("another forecast of the same seed: %+v, %v", again, err)
	}
}

// At the load of the requirement's example hardly anybody waits; with fewer slots than are busy the queue grows, and the
// forecast says so.
func TestForecastOfTheExample(t *testing.T) {
	in := one(120, 180)
	got, err := Play(in, 515, 1)
	if err != nil || got.Wait.P95 > 1 || math.Abs(got.Load-0.699) > 0.001 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = Play(in, 300, 1); err != nil || got.Stable || got.Wait.P95 < 60 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Play(in, 0, 1); err == nil {
		t.Error("no slots were played")
	}
}
