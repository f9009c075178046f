package demo

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/sdk"
)

func TestEvenly(t *testing.T) {
	s := func(seconds ...float64) (out []time.Duration) {
		for _, x := range seconds {
			out = append(out, time.Duration(x*float64(time.Second)))
		}
		return out
	}
	for i, c := range []struct{ asked, ends []time.Duration }{
		{s(0), s(10)},
		{s(0, 0, 0, 0), s(40, 40, 40, 40)},
		{s(0, 20), s(10, 30)}, // alone, a pause, alone
		{s(5, 0), s(15, 20)},  // half of the first goes alone, the other half and as much of the second side by side
		{s(0, 0, 20), s(20, 20, 30)},
	} {
		got := evenly(c.asked, 1000, 100)
		if !slices.EqualFunc(got, c.ends, func(a, b time.Duration) bool { return (a - b).Abs() < time.Millisecond }) {
			t.Errorf("case %d: got %v, want %v", i, got, c.ends)
		}
	}
}

// ended is a fleet that has run over a link of one file per second, a seat for one, but for what change says.
func ended(n int, change func([]row)) []row {
	rows := make([]row, n)
	for i := range rows {
		began := float64(i)
		rows[i] = row{
			name: "c", class: "bulk", state: finished, offset: 1e6, size: 1e6, asked: instant(0), began: instant(began), ended: instant(began + 1),
			told: sdk.Waiting{Known: i > 0, StartsAt: instant(began + 0.5), Earliest: instant(began - 1), Latest: instant(began + 1)},
		}
	}
	change(rows)
	return rows
}

func TestSummary(t *testing.T) {
	p := plan{Config: Config{Clients: 20}}
	tests := map[string]struct {
		rows []row
		says []string
	}{
		"all.txt": {ended(20, func(r []row) {
			r[0].class, r[1].class = "interactive", "release"
			r[7].told.Latest = instant(6)
		}), []string{"20 of 20 clients have the file", "18 of 19", "0.5 s", "9.5 s sooner, and the last one no later"}},
		"failed.txt": {ended(20, func(r []row) {
			r[3].state, r[3].err, r[4].retries = failed, errors.New("the connection broke"), 2
		}), []string{"19 of 20", "failed: c: the connection broke", "2 retries"}},
	}
	for name, tt := range tests {
		text := strings.Join(sum(tt.rows, 1e6).words(p, view{}), "\n") + "\n"
		golden(t, name, text)
		for _, s := range tt.says {
			if !strings.Contains(text, s) {
				t.Errorf("%s lacks %q", name, s)
			}
		}
	}
}

func TestSummaryOfNothing(t *testing.T) {
	rows := ended(2, func(r []row) { r[0].state, r[1].state = failed, failed })
	text := strings.Join(sum(rows, 1e6).words(plan{Config: Config{Clients: 2}}, view{}), "\n")
	if !strings.Contains(text, "None of 2 clients got the file") || strings.Contains(text, "means") {
		t.Error(text)
	}
}

func TestMeaningIsHonest(t *testing.T) {
	of := func(ourMean, ourLast, even time.Duration) string {
		return result{ours: times{mean: ourMean, last: ourLast}, even: times{mean: even, last: even}}.meaning()
	}
	for text, want := range map[string]string{
		of(5*time.Second, 10*time.Second, 10*time.Second):  "5.0 s sooner, and the last one no later",
		of(5*time.Second, 12*time.Second, 10*time.Second):  "5.0 s sooner, the last one 2.0 s later",
		of(10*time.Second, 10*time.Second, 10*time.Second): "changes little",
		of(15*time.Second, 20*time.Second, 10*time.Second): "changes little",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
}
