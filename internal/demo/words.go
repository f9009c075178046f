package demo

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// opening says what is about to happen and why it takes as long as it does.
func (p plan) opening() []string {
	file := fmt.Sprintf("a file of %s", amount(float64(p.Size)))
	if p.File != "" {
		file = fmt.Sprintf("%s (%s)", strconv.QuoteToGraphic(p.name), amount(float64(p.Size)))
	}
	out := []string{fmt.Sprintf("Roadstead demo: %s want %s at once, over a link limited to %s.",
		count(p.Clients, "client", "clients"), file, perSecond(float64(p.Rate)))}
	took := "All of it takes"
	if p.chosen != "" {
		took = fmt.Sprintf("The %s is sized so that all of it takes", p.chosen)
	}
	out = append(out, fmt.Sprintf("%s about %s: sharing evenly, everybody would wait that long.", took, span(p.length)))
	return append(out, fmt.Sprintf("With Roadstead %s at a time; the others know their place and their start.", count(p.Seats, "client downloads", "clients download")), "")
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// amount writes bytes in decimal units: 30 MB, 15.9 MB.
func amount(n float64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	for n >= 999.5 && len(units) > 1 {
		n, units = n/1000, units[1:]
	}
	s := strconv.FormatFloat(n, 'f', 1, 64)
	if n >= 100 || units[0] == "B" {
		s = strconv.FormatFloat(n, 'f', 0, 64)
	}
	return strings.TrimSuffix(s, ".0") + " " + units[0]
}

// steady is amount with one decimal always, for numbers that change in place.
func steady(n float64) string {
	unit := "kB"
	for n /= 1000; n >= 999.95 && unit != "GB"; n /= 1000 {
		unit = map[string]string{"kB": "MB", "MB": "GB"}[unit]
	}
	return fmt.Sprintf("%.1f %s/s", n, unit)
}

func perSecond(n float64) string { return amount(n) + "/s" }

// span writes a duration in whole seconds, or minutes and seconds.
func span(d time.Duration) string {
	s := int64(max(d, 0).Round(time.Second) / time.Second)
	if s < 120 {
		return fmt.Sprintf("%d s", s)
	}
	if s < 7200 {
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	}
	return fmt.Sprintf("%d h %d min", s/3600, s%3600/60)
}

// brief writes a duration in one unit.
func brief(d time.Duration) string {
	switch {
	case d < 100*time.Second:
		return span(d)
	case d < 100*time.Minute:
		return fmt.Sprintf("%d min", d.Round(time.Minute)/time.Minute)
	}
	return fmt.Sprintf("%d h", d.Round(time.Hour)/time.Hour)
}

// exact writes a duration with tenths of a second.
func exact(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
