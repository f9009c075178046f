package schedules

import (
	"fmt"
	"testing"
	"time"
)

// What one search costs, for the rule that is rarest, the one that never fires, and the usual ones.
func BenchmarkNext(b *testing.B) {
	from := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, rule := range []string{"*/5 * * * *", "30 2 * * *", "0 9 * * MON", "0 12 29 2 */7", "0 0 31 2 *"} {
		r, err := ParseRule(rule, "Europe/Berlin")
		if err != nil {
			b.Fatal(err)
		}
		b.Run(rule, func(b *testing.B) {
			for b.Loop() {
				r.Next(from)
			}
		})
	}
}

// What the curve of a week costs at its bound.
func BenchmarkCurve(b *testing.B) {
	var all []Schedule
	for n := range 1000 {
		p := plan("* * * * *", "Europe/Berlin")
		p.Overlap = Skip
		all = append(all, Schedule{ID: fmt.Sprint(n), Tenant: "acme", Name: fmt.Sprint(n), Plan: p, Shape: Shape{Pool: "p", Slots: 1, Duration: 30 * time.Second}})
	}
	from := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for b.Loop() {
		curve(b.Context(), all, from, true)
	}
}
