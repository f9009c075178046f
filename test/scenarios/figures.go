package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/roadstead/roadstead/api"
)

// kind is how a value stands to its limit.
type kind int

const (
	atMost kind = iota
	atLeast
	exactly
)

// report prints a figure and notes whether it is past its limit.
func (b *bench) report(name string, value float64, k kind, limit float64) {
	ok := value <= limit
	switch k {
	case atLeast:
		ok = value >= limit
	case exactly:
		ok = value == limit
	}
	fmt.Printf("measure=scenario.%s value=%.4g limit=%.4g ok=%t\n", name, value, limit, ok)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missed = b.missed || !ok
}

func boolean(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}

// p95 is the ninety-fifth percentile in seconds.
func p95(all []time.Duration) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, len(sorted)*95/100)].Seconds()
}

// waits are the times in the queue of Runs that were assigned, by the server's clock.
func waits(all []api.Run) (out []time.Duration) {
	for _, r := range all {
		if len(r.Attempts) > 0 {
			out = append(out, r.Attempts[0].AssignedAt.Sub(r.CreatedAt))
		}
	}
	return out
}

// held is how long Attempts held their slots on average.
func held(all []api.Run) time.Duration {
	var sum time.Duration
	n := 0
	for _, r := range all {
		for _, a := range r.Attempts {
			if a.EndedAt != nil {
				sum += a.EndedAt.Sub(a.AssignedAt)
				n++
			}
		}
	}
	return sum / time.Duration(max(n, 1))
}

// part is the part of the Runs that a condition holds for.
func part(all []api.Run, is func(api.Run) bool) float64 {
	n := 0
	for _, r := range all {
		if is(r) {
			n++
		}
	}
	return float64(n) / float64(max(len(all), 1))
}

func succeeded(r api.Run) bool { return r.State == "succeeded" }
func triedOnce(r api.Run) bool { return len(r.Attempts) == 1 }
