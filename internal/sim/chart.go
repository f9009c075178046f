package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// The plot area of every chart, in the units of its view box.
const (
	chartWidth, chartHeight = 760.0, 320.0
	plotLeft, plotRight     = 72.0, 744.0
	plotTop, plotBottom     = 16.0, 268.0
)

// maxMarks bounds the marks of a chart, so that a large fleet still makes a small page.
const maxMarks = 1500

// chart is a drawing ready for the page's template.
type chart struct {
	ID, Title, Desc string
	XLabel, YLabel  string
	XTicks, YTicks  []axisTick
	Lines           []line
	Dots            []dot
	Bars            []bar
	Keys            []legendKey
}

type axisTick struct {
	At   float64
	Text string
}

type line struct{ Style, Path string }

type dot struct {
	Style string
	X, Y  float64
}

type bar struct {
	Style     string
	X, Y1, Y2 float64
}

type legendKey struct{ Style, Text string }

// axis maps values to places of the plot.
type axis struct{ low, high, from, to float64 }

func (a axis) place(v float64) float64 {
	if a.high == a.low {
		return a.from
	}
	return round1(a.from + (v-a.low)/(a.high-a.low)*(a.to-a.from))
}

func round1(v float64) float64 { return math.Round(v*10) / 10 }

// ticks gives about six round values between the ends, in multiples of unit.
func (a axis) ticks(unit float64, text func(float64) string) (out []axisTick) {
	step := niceStep((a.high-a.low)/unit/6) * unit
	for v := math.Ceil(a.low/step) * step; v <= a.high+step/1e6; v += step {
		if math.Abs(v) < step/1e6 {
			v = 0
		}
		out = append(out, axisTick{a.place(v), text(v / unit)})
	}
	return out
}

// niceStep rounds up to 1, 2 or 5 times a power of ten.
func niceStep(v float64) float64 {
	if !(v > 0) {
		return 1
	}
	scale := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*scale*(1+1e-9) {
			return m * scale
		}
	}
	return 10 * scale
}

// timeUnit is the unit a span of seconds is best read in.
func timeUnit(span float64) (float64, string) {
	switch {
	case span < 5*60:
		return 1, "seconds"
	case span < 5*3600:
		return 60, "minutes"
	default:
		return 3600, "hours"
	}
}

func number(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.6g", v), ".0") }

// completions draws how many clients were through at each time, beside even sharing.
func (r Report) completions() chart {
	var ours, even []float64
	for _, s := range r.stories {
		if s.finished >= 0 {
			ours = append(ours, s.finished)
			even = append(even, s.even)
		}
	}
	slices.Sort(ours)
	slices.Sort(even)
	last := 1.0
	if len(ours) > 0 {
		last = max(ours[len(ours)-1], even[len(even)-1], 1e-9)
	}
	unit, name := timeUnit(last)
	x, y := axis{0, last, plotLeft, plotRight}, axis{0, float64(len(r.stories)), plotBottom, plotTop}
	return chart{
		ID: "completions", Title: "Clients through, over time",
		Desc: fmt.Sprintf("Here the first client is through after %s and half of them after %s; with even sharing after %s and %s.",
			seconds(r.Finish.First), seconds(r.Finish.P50), seconds(r.Even.First), seconds(r.Even.P50)),
		XLabel: "time since the first request, " + name, YLabel: "clients through",
		XTicks: x.ticks(unit, number), YTicks: y.ticks(1, number),
		Lines: []line{{"even", steps(even, x, y)}, {"ours", steps(ours, x, y)}},
		Keys:  []legendKey{{"ours", r.Config.Strategy}, {"even", "even sharing"}},
	}
}

// steps is the path of a count that grows by one at each time.
func steps(times []float64, x, y axis) string {
	var b strings.Builder
	fmt.Fprintf(&b, "M%g %g", x.place(0), y.place(0))
	every := max(1, len(times)/maxMarks)
	for i, t := range times {
		if i%every == 0 || i == len(times)-1 {
			fmt.Fprintf(&b, "H%gV%g", x.place(t), y.place(float64(i+1)))
		}
	}
	fmt.Fprintf(&b, "H%g", x.to)
	return b.String()
}

// waits draws each client's wait against its place of arrival, a colour for each class.
func (r Report) waits() chart {
	longest, every := 1e-9, max(1, len(r.stories)/maxMarks)
	for _, s := range r.stories {
		longest = max(longest, s.started-s.entered)
	}
	unit, name := timeUnit(longest)
	x, y := axis{1, float64(max(2, len(r.stories))), plotLeft, plotRight}, axis{0, longest, plotBottom, plotTop}
	c := chart{
		ID: "waits", Title: "Wait for the first byte, by place of arrival",
		Desc:   "Each dot is a client; the longest wait is " + seconds(longest) + ".",
		XLabel: "place of arrival", YLabel: "wait, " + name,
		XTicks: x.ticks(1, number), YTicks: y.ticks(unit, number),
	}
	for i, s := range r.stories {
		if s.started >= 0 && i%every == 0 {
			c.Dots = append(c.Dots, dot{s.class.String(), x.place(float64(i + 1)), y.place(s.started - s.entered)})
		}
	}
	for _, w := range r.Waits {
		c.Keys = append(c.Keys, legendKey{w.Class, w.Class})
	}
	return c
}

// promises draws the first interval each client was told against its actual start, which is the zero line.
func (r Report) promises() chart {
	told := slices.DeleteFunc(slices.Clone(r.stories), func(s story) bool { return !s.promised || s.started < 0 })
	slices.SortFunc(told, func(a, b story) int { return cmp.Compare(a.started, b.started) })
	low, high, last := -1.0, 1.0, 1.0
	for _, s := range told {
		low, high = min(low, s.earliest-s.started), max(high, s.latest-s.started)
		last = max(last, s.started)
	}
	unitX, nameX := timeUnit(last)
	unitY, nameY := timeUnit(high - low)
	x, y := axis{0, last, plotLeft, plotRight}, axis{low, high, plotBottom, plotTop}
	c := chart{
		ID: "promises", Title: "First interval told, against the actual start",
		Desc: fmt.Sprintf("%.1f %% of %d clients started inside the interval; the point was off by %s in the mean.",
			100*r.Estimates.Inside, r.Estimates.Promised, seconds(r.Estimates.Error.Mean)),
		XLabel: "actual start, " + nameX, YLabel: "told minus actual, " + nameY,
		XTicks: x.ticks(unitX, number), YTicks: y.ticks(unitY, number),
		Lines: []line{{"zero", fmt.Sprintf("M%g %gH%g", x.from, y.place(0), x.to)}},
		Keys:  []legendKey{{"inside", "interval with the actual start inside"}, {"outside", "outside"}, {"point", "point told"}},
	}
	every := max(1, len(told)/(maxMarks/3))
	for i, s := range told {
		style := "outside"
		if s.earliest <= s.started && s.started <= s.latest {
			style = "inside"
		}
		// A miss is always drawn: it is what a reader looks for.
		if i%every == 0 || style == "outside" {
			c.Bars = append(c.Bars, bar{style, x.place(s.started), y.place(s.earliest - s.started), y.place(s.latest - s.started)})
			c.Dots = append(c.Dots, dot{"point", x.place(s.started), y.place(s.point - s.started)})
		}
	}
	return c
}

// charts are the page's drawings; a run without promises has no third one.
func (r Report) charts() []chart {
	out := []chart{r.completions(), r.waits()}
	if r.Estimates.Promised > 0 {
		out = append(out, r.promises())
	}
	return out
}
