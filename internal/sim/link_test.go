package sim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

// drain runs the link dry and gives when each client was through, in seconds.
func drain(l *link) map[int]float64 {
	ends := map[int]float64{}
	for at, ok := l.next(); ok; at, ok = l.next() {
		l.advance(at)
		for f := l.through(); f != nil; f = l.through() {
			ends[f.client.index] = time.Duration(at).Seconds()
		}
	}
	return ends
}

func TestLinkSplit(t *testing.T) {
	type load struct {
		principal int
		bytes     int64
	}
	tests := []struct {
		name  string
		rate  Rate
		peak  float64
		loads []load
		ends  []float64
	}{
		{"one flow has it all", 100, 0, []load{{0, 1000}}, []float64{10}},
		{"equal flows end together", 100, 0, []load{{0, 500}, {1, 500}}, []float64{10, 10}},
		{"what a finished flow leaves goes to the other", 100, 0, []load{{0, 500}, {1, 1500}}, []float64{10, 20}},
		{"principals are equal, not flows", 90, 0, []load{{0, 450}, {0, 450}, {0, 450}, {1, 1350}}, []float64{30, 30, 30, 30}},
		{"a peak leaves the rest unused", 100, 20, []load{{0, 200}, {1, 200}}, []float64{10, 10}},
		{"what a principal cannot take goes to the other", 100, 30, []load{{0, 300}, {1, 700}, {1, 700}, {1, 700}}, []float64{10, 25 + 5.0/9, 25 + 5.0/9, 25 + 5.0/9}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLink(tt.rate, tt.peak, len(tt.loads))
			for i, ld := range tt.loads {
				l.add(&client{index: i}, ld.principal, ld.bytes)
			}
			ends := drain(l)
			for i, want := range tt.ends {
				if math.Abs(ends[i]-want) > 0.02 {
					t.Errorf("flow %d is through after %.3f s, want %.3f", i, ends[i], want)
				}
			}
		})
	}
}

// The link never carries more than its rate allows, loses nothing, and is full whenever peaks let it be.
func TestLinkConserves(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 0))
		peak := 0.0
		if seed%2 == 1 {
			peak = 1000 + float64(r.IntN(100_000))
		}
		l := newLink(100_000, peak, 8)
		added, cut := int64(0), 0.0
		for i := range 60 {
			f := l.add(&client{index: i}, r.IntN(8), 1+r.Int64N(1_000_000))
			added += f.length
			at := l.now.Add(time.Duration(r.IntN(int(2 * time.Second))))
			if next, ok := l.next(); ok {
				at = min(at, next)
			}
			before := l.now
			moved := l.advance(at)
			if limit := l.rate * at.Sub(before).Seconds(); moved > limit*(1+1e-9) || peak == 0 && moved < limit*(1-1e-9) {
				t.Fatalf("seed %d: %.3f bytes in a time for %.3f", seed, moved, limit)
			}
			for f := l.through(); f != nil; f = l.through() {
				f.client.state = done
			}
			if i%7 == 0 && f.client.state != done {
				cut += f.left()
				l.drop(f)
			}
		}
		drain(l)
		if got := l.sent + cut; math.Abs(got-float64(added)) > 60 {
			t.Errorf("seed %d: %d bytes were added, %.0f carried or cut", seed, added, got)
		}
		if l.sent > l.rate*time.Duration(l.now).Seconds()*(1+1e-9) {
			t.Errorf("seed %d: %.0f bytes in %s", seed, l.sent, time.Duration(l.now))
		}
	}
}

func TestLinkReportsWholeBytes(t *testing.T) {
	l := newLink(100, 0, 1)
	f := l.add(&client{}, 0, 1000)
	l.advance(clock.Mono(2500 * time.Millisecond))
	if got := f.delivered(); got != 250 {
		t.Errorf("delivered %d bytes, want 250", got)
	}
	l.advance(clock.Mono(10 * time.Second))
	if got := f.delivered(); got != 1000 {
		t.Errorf("delivered %d bytes, want all 1000", got)
	}
}
