package forecast

import (
	"math/rand/v2"
	"testing"
)

// Of a steady kind of starts the stated part falls under each quantile, and a new kind is learnt within some hundred.
func TestCalibrationCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var c Calibration
	for _, kind := range []func() float64{r.NormFloat64, func() float64 { return 3 + r.ExpFloat64() }} {
		under90, under10, n := 0, 0, 0
		for i := range 3000 {
			s, off := c.Spread(), kind()
			if i > 300 {
				n++
				if off <= s.P90 {
					under90++
				}
				if off < s.P10 {
					under10++
				}
			}
			c.Learn(off)
		}
		if p := float64(under90) / float64(n); p < 0.87 || p > 0.94 {
			t.Errorf("%.3f under p90", p)
		}
		if p := float64(under10) / float64(n); p < 0.06 || p > 0.13 {
			t.Errorf("%.3f under p10", p)
		}
	}
}

// With little seen the theory stands; the interval is never narrower than it, and widens when starts miss it.
func TestCalibrationWidens(t *testing.T) {
	var c Calibration
	if c.Spread() != theory {
		t.Error("something is known of nothing")
	}
	for range 100 {
		c.Learn(0.01)
	}
	if s := c.Spread(); s.Early != theory.Early || s.Late != theory.Late {
		t.Errorf("the interval narrowed to %+v", s)
	}
	for range 100 {
		c.Learn(1.5)
	}
	if s := c.Spread(); s.Late < 1.4 {
		t.Errorf("the interval did not widen: %+v", s)
	}
	d := c.Copy()
	d.Learn(9)
	if len(d.sorted) == len(c.sorted) {
		t.Error("a copy shares what it learns")
	}
}
