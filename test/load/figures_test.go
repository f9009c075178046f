package main

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/sdk"
)

var zero = time.Unix(1000, 0)

func after(seconds float64) time.Time {
	return zero.Add(time.Duration(seconds * float64(time.Second)))
}

func TestBetweenInterpolates(t *testing.T) {
	samples := []sample{{after(0), 0, 0}, {after(1), 10, 20}, {after(2), 30, 60}}
	for _, c := range []struct{ from, to, sent, wire float64 }{
		{0, 2, 30, 60}, {0.5, 1.5, 15, 30}, {-5, 9, 30, 60}, {1, 1, 0, 0},
	} {
		sent, wire, err := between(samples, after(c.from), after(c.to))
		if err != nil || math.Abs(sent-c.sent) > 1e-6 || math.Abs(wire-c.wire) > 1e-6 {
			t.Errorf("%v to %v: %v and %v bytes, error %v", c.from, c.to, sent, wire, err)
		}
	}
	if _, _, err := between(nil, zero, zero); err == nil {
		t.Error("no samples gave a figure")
	}
}

// The gate's figures: only clients that were told a start count; the first byte decides (D-13.2, D-6.3).
func TestScored(t *testing.T) {
	promise := func(from, point, to float64) *sdk.Waiting {
		return &sdk.Waiting{Known: true, Earliest: after(from), StartsAt: after(point), Latest: after(to)}
	}
	all := []outcome{
		{},                 // never told
		{first: after(99)}, // never told
		{told: zero, promise: promise(9, 10, 11), first: after(9.5)},
		{told: zero, promise: promise(9, 10, 11), first: after(8)},
		{told: zero, promise: promise(9, 10, 11), first: after(12)},
		{told: zero, promise: promise(90, 100, 110), first: after(110)}, // a fifth of the wait wide
	}
	if p, want := scored(all, 4*time.Second), (promises{told: 4, kept: 2, early: 1, late: 1, widest: 1}); p != want {
		t.Errorf("scored %+v, want %+v", p, want)
	}
	if p := scored(all, time.Second); p.widest != 1 {
		t.Errorf("widest %v of what it may be, want 1: a fifth of ten seconds is two", p.widest)
	}
}

func TestClocked(t *testing.T) {
	got := clocked(zero, []outcome{
		{first: after(1), done: after(4)}, {first: after(5), done: after(8)}, {first: after(6), err: errors.New("broken"), done: after(7)},
	})
	if want := (times{zero, 4 * time.Second, 6 * time.Second, after(6)}); got != want {
		t.Errorf("clocked %+v, want %+v", got, want)
	}
}

func TestInversions(t *testing.T) {
	for _, c := range []struct {
		starts []float64
		order  []int
		want   int
	}{{[]float64{1, 2, 3}, []int{0, 1, 2}, 0}, {[]float64{2, 1, 3}, []int{1, 0, 2}, 1}, {[]float64{3, 2, 1}, []int{2, 1, 0}, 3}} {
		var arrived []*caller
		for _, s := range c.starts {
			arrived = append(arrived, &caller{start: after(s)})
		}
		if got := inversions(arrived); got != c.want || !slices.Equal(order(arrived), c.order) {
			t.Errorf("starts %v: %d inversions, order %v", c.starts, got, order(arrived))
		}
	}
}

func TestMeasureLine(t *testing.T) {
	if got, want := atLeast("netns.busy", 0.99512, 0.95).String(), "measure=load.netns.busy value=0.9951 limit=0.95 ok=true"; got != want {
		t.Errorf("line %q, want %q", got, want)
	}
	if atMost("x", math.NaN(), 1).ok || atLeast("x", math.NaN(), 1).ok {
		t.Error("a figure that is none passed")
	}
}

func TestChoose(t *testing.T) {
	plays, err := choose([]string{"-scale", "ci", "-scenario", "seats2", "-clients", "9", "-stock", "2", "-rate", "5000000"})
	if err != nil || len(plays) != 1 {
		t.Fatalf("chosen %v, error %v", plays, err)
	}
	if p := plays[0]; p.name != "seats2" || p.clients != 9 || p.stock != 2 || p.rate != 5e6 || p.seats != 2 {
		t.Errorf("chosen %+v", p)
	}
	for args, want := range map[string]int{"-scale full": 9, "-scale ci": 4, "-scenario variants": 5, "-scenario tail": 1} {
		if plays, err := choose(strings.Fields(args)); err != nil || len(plays) != want {
			t.Errorf("%s: %d scenarios, error %v", args, len(plays), err)
		}
	}
	for args, want := range map[string]string{
		"-scenario quick": "-scenario", "-scale half": "-scale", "-size 5": "-size", "-stock 100": "-stock", "now": `"now"`,
	} {
		if _, err := choose(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", args, err)
		}
	}
}
