package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Screen is what a run is shown on.
type Screen struct {
	Out     io.Writer
	Size    func() (columns, lines int) // nil: not a terminal, so plain lines
	Color   bool
	Unicode bool
}

// view is a screen at one moment.
type view struct {
	columns, lines int // lines 0: as many as wanted
	color, unicode bool
}

// How often the screen changes: a table in place four times a second, plain lines once.
const (
	frameEvery = 250 * time.Millisecond
	plainEvery = time.Second
)

// display draws. It is used from one goroutine; the first error of its writer is kept.
type display struct {
	screen Screen
	now    func() time.Time
	drawn  int       // lines of the frame that the next one replaces
	last   time.Time // of the last word about something going on
	err    error
}

func (d *display) live() bool { return d.screen.Size != nil }

// look is what the screen is like now.
func (d *display) look() view {
	v := view{columns: 100, color: d.screen.Color, unicode: d.screen.Unicode}
	if d.live() {
		v.columns, v.lines = d.screen.Size()
		v.columns = max(v.columns, leastColumns)
	}
	return v
}

func (d *display) write(s string) {
	if d.err == nil {
		_, d.err = io.WriteString(d.screen.Out, s)
	}
}

// say prints lines that stay.
func (d *display) say(lines ...string) {
	d.frame(nil)
	for _, l := range lines {
		d.write(l + "\n")
	}
}

// doing says what is going on, in place or at most once a second.
func (d *display) doing(format string, args ...any) {
	now := d.now()
	switch {
	case d.live():
		if now.Sub(d.last) >= frameEvery {
			d.frame([]string{clip("  "+fmt.Sprintf(format, args...), d.look().columns)})
			d.last = now
		}
	case d.last.IsZero():
		d.last = now // what takes less than a second needs no line
	case now.Sub(d.last) >= plainEvery:
		d.say("  " + fmt.Sprintf(format, args...))
		d.last = now
	}
}

// done says that a step is through.
func (d *display) done(format string, args ...any) {
	v := d.look()
	mark := "ok"
	if v.unicode {
		mark = "✓"
	}
	d.say(v.paint(green, mark) + " " + fmt.Sprintf(format, args...))
}

// frame replaces the last frame.
func (d *display) frame(lines []string) {
	if !d.live() || d.drawn == 0 && len(lines) == 0 {
		return
	}
	var b strings.Builder
	if d.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", d.drawn)
	}
	for _, l := range lines {
		b.WriteString(l)
		b.WriteString("\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	d.write(b.String())
	d.drawn = len(lines)
}

// keep leaves the last frame on the screen.
func (d *display) keep() { d.drawn = 0 }

// watch shows the board until ended is closed or nothing can be shown any more.
func (d *display) watch(b *board, limit float64, ended <-chan struct{}) {
	every := plainEvery
	if d.live() {
		every = frameEvery
		d.write("\x1b[?25l") // no cursor
		defer d.write("\x1b[?25h")
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	l := link{limit: limit}
	l.at(d.now(), 0)
	for over := false; !over && d.err == nil; {
		select {
		case <-tick.C:
		case <-ended:
			over = true
		}
		rows, now := b.rows(), d.now()
		l.at(now, received(rows))
		switch v := d.look(); {
		case d.live():
			d.frame(table(rows, l, now, v))
		case over:
			d.say(table(rows, l, now, v)...)
		default:
			d.say(line(rows, l, now))
		}
	}
	d.keep()
}

// link measures what the limited link carries.
type link struct {
	limit   float64      // bytes per second
	samples []linkSample // of the last seconds, oldest first
}

type linkSample struct {
	at    time.Time
	bytes int64
}

// at notes how many bytes had come at an instant.
func (l *link) at(now time.Time, bytes int64) {
	l.samples = append(l.samples, linkSample{now, bytes})
	for len(l.samples) > 2 && now.Sub(l.samples[0].at) > 3*time.Second {
		l.samples = l.samples[1:]
	}
}

// rate is bytes per second over the last seconds.
func (l *link) rate() float64 {
	if len(l.samples) < 2 {
		return 0
	}
	first, last := l.samples[0], l.samples[len(l.samples)-1]
	return float64(last.bytes-first.bytes) / max(last.at.Sub(first.at).Seconds(), 1e-3)
}

// clip cuts a line without colours to a width.
func clip(s string, columns int) string {
	if r := []rune(s); len(r) > columns {
		return string(r[:max(columns, 0)])
	}
	return s
}

// color is an ANSI colour or weight.
type color string

const (
	bold   color = "1"
	dim    color = "2"
	red    color = "31"
	green  color = "32"
	yellow color = "33"
	cyan   color = "36"
)

// paint colours a text where the screen has colours.
func (v view) paint(c color, s string) string {
	if !v.color || c == "" || s == "" {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}
