package main

import (
	"math"
	"testing"
)

// The sizes are what the variant says of them: unlike enough, as large as the link has time for, and without a large
// one at either end.
func TestHeavyTail(t *testing.T) {
	sizes := heavyTail(48, 40e6)
	sum, largest := 0.0, int64(0)
	for i, s := range sizes {
		sum += float64(s)
		largest = max(largest, s)
		if s != sizes[len(sizes)-1-i] {
			t.Fatalf("number %d is not mirrored", i)
		}
	}
	if g := gini(sizes); g < 0.5 || g > 0.55 {
		t.Errorf("Gini coefficient %v", g)
	}
	if mean := sum / 48; len(sizes) != 48 || math.Abs(mean-40e6) > 100 {
		t.Errorf("%d sizes of %v on the mean", len(sizes), mean)
	}
	if sizes[0] == largest {
		t.Error("the largest comes first")
	}
}

func TestGini(t *testing.T) {
	for _, c := range []struct {
		sizes []int64
		want  float64
	}{{[]int64{5, 5, 5}, 0}, {[]int64{3, 1}, 0.25}, {[]int64{0, 0, 0, 8}, 0.75}} {
		if got := gini(c.sizes); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("gini(%v) = %v, want %v", c.sizes, got, c.want)
		}
	}
}

func TestPassedBy(t *testing.T) {
	var arrived []outcome
	for _, s := range []float64{2, 4, 1, 3} {
		arrived = append(arrived, outcome{first: after(s)})
	}
	if most, pairs := passedBy(arrived); most != 2 || pairs != 3 {
		t.Errorf("passed by %d, %d pairs; want 2 and 3", most, pairs)
	}
}
