package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// column is one column of the table. Where the screen is narrow, those with the highest drop go first.
type column struct {
	title string
	width int
	right bool // aligned to the right
	drop  int  // 0: never goes
	text  func(r row, now time.Time) string
}

// The bar takes what the other columns leave, within these bounds.
const (
	barTitle           = "PROGRESS"
	narrowBar, wideBar = 8, 32
	leastColumns       = 30 // what the columns that never go need
)

// columns lists the table's columns. begun is the fleet's first request, from which elapsed times count.
func columns(begun time.Time) []column {
	since := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return exact(t.Sub(begun))
	}
	return []column{
		{title: "CLIENT", width: 10, text: func(r row, _ time.Time) string { return r.name }},
		{title: "CLASS", width: 11, drop: 3, text: func(r row, _ time.Time) string { return r.class }},
		{title: "STATE", width: 7, text: func(r row, _ time.Time) string { return r.state.String() }},
		{title: "PLACE", width: 5, right: true, text: func(r row, now time.Time) string {
			if r.state != waiting || r.place > 1 && !r.starts.After(now) { // whose start has come is at the door, and its place old
				return ""
			}
			return fmt.Sprint(r.place)
		}},
		{title: "TOLD", width: 7, right: true, drop: 6, text: func(r row, _ time.Time) string {
			if !r.told.Known {
				return ""
			}
			return since(r.told.StartsAt)
		}},
		{title: "START", width: 8, right: true, drop: 1, text: func(r row, now time.Time) string {
			switch {
			case r.state != waiting:
				return since(r.began)
			case r.starts.After(now.Add(500 * time.Millisecond)):
				return "in " + brief(r.starts.Sub(now))
			}
			return "now"
		}},
		{title: barTitle, width: narrowBar, drop: 2},
		{title: "", width: 4, right: true, text: func(r row, _ time.Time) string {
			if r.offset == 0 {
				return ""
			}
			return fmt.Sprintf("%d%%", r.offset*100/max(r.size, 1))
		}},
		{title: "RATE", width: 9, right: true, drop: 5, text: func(r row, _ time.Time) string {
			if r.state != loading || r.rate == 0 {
				return ""
			}
			return steady(r.rate)
		}},
		{title: "DONE", width: 7, right: true, drop: 4, text: func(r row, _ time.Time) string { return since(r.ended) }},
	}
}

// table draws the board for a view: a line about all, a heading, a line for each client. What has ended long ago and
// what waits far behind give way on a low screen.
func table(rows []row, l link, now time.Time, v view) []string {
	cols, gap := fit(columns(firstRequest(rows, now)), v.columns)
	out := []string{"", clip(overall(rows, l, now), v.columns), "", v.paint(dim, clip(strings.TrimRight(heading(cols, gap), " "), v.columns))}
	above, shown, below := window(rows, v.lines-len(out)-1)
	if above > 0 {
		out = append(out, v.paint(dim, clip(fmt.Sprintf("(%d ended before)", above), v.columns)))
	}
	for _, r := range shown {
		out = append(out, v.row(r, cols, gap, now))
	}
	if below > 0 {
		out = append(out, v.paint(dim, clip(fmt.Sprintf("(%d more behind)", below), v.columns)))
	}
	return out
}

// firstRequest is when the first client asked.
func firstRequest(rows []row, otherwise time.Time) time.Time {
	first := otherwise
	for _, r := range rows {
		if !r.asked.IsZero() && r.asked.Before(first) {
			first = r.asked
		}
	}
	return first
}

// fit gives up the promise, then room between the columns, then columns until the rest fits the width. What is left over
// is the bar's.
func fit(cols []column, width int) (fitted []column, gap string) {
	gap = "  "
	used := func() int {
		n := len(gap) * (len(cols) - 1)
		for _, c := range cols {
			n += c.width
		}
		return n
	}
	for used() > width {
		least := 0
		for i, c := range cols {
			if c.drop > cols[least].drop {
				least = i
			}
		}
		switch {
		case cols[least].drop == 0:
			return cols, gap
		case cols[least].title != "TOLD" && len(gap) > 1:
			gap = " "
		default:
			cols = slices.Delete(cols, least, least+1)
		}
	}
	for i := range cols {
		if cols[i].title == barTitle {
			cols[i].width = min(narrowBar+width-used(), wideBar)
		}
	}
	return cols, gap
}

// window chooses the rows for a number of lines, less one line each for what is left out above and below. No limit
// where the number is negative: there is no screen to overflow.
func window(rows []row, lines int) (above int, shown []row, below int) {
	if lines < 0 || len(rows) <= lines {
		return 0, rows, 0
	}
	n := tally(rows)
	ended := n[finished] + n[failed]
	room := max(lines-1, 1)
	if above = min(ended, len(rows)-room); above < len(rows)-room {
		room = max(room-1, 1)
	}
	below = max(len(rows)-above-room, 0)
	return above, rows[above : len(rows)-below], below
}

func heading(cols []column, gap string) string {
	cells := make([]string, len(cols))
	for i, c := range cols {
		cells[i] = c.pad(c.title)
	}
	return strings.Join(cells, gap)
}

// pad fills a text up to the column's width, or cuts it.
func (c column) pad(s string) string {
	s = clip(s, c.width)
	gap := strings.Repeat(" ", c.width-utf8.RuneCountInString(s))
	if c.right {
		return gap + s
	}
	return s + gap
}

// row draws one client.
func (v view) row(r row, cols []column, gap string, now time.Time) string {
	paint := map[state]color{away: dim, asking: dim, loading: bold, finished: green, failed: red}[r.state]
	var out strings.Builder
	for i, c := range cols {
		if i > 0 {
			out.WriteString(gap)
		}
		if c.title == barTitle {
			out.WriteString(v.bar(r, c.width))
			continue
		}
		text := c.pad(c.text(r, now))
		if c.title == "STATE" {
			text = v.paint(paint, text)
		} else if r.state == away || r.state == asking {
			text = v.paint(dim, text)
		}
		out.WriteString(text)
	}
	return strings.TrimRight(out.String(), " ")
}

// bar draws how much of the file a client has.
func (v view) bar(r row, width int) string {
	full, empty := "=", "."
	if v.unicode {
		full, empty = "━", "─"
	}
	n := min(int(r.offset*int64(width)/max(r.size, 1)), width)
	paint := cyan
	switch r.state {
	case finished:
		paint = green
	case failed:
		paint = red
	case loading:
	default:
		if n == 0 {
			return strings.Repeat(" ", width)
		}
	}
	return v.paint(paint, strings.Repeat(full, n)) + v.paint(dim, strings.Repeat(empty, width-n))
}

// overall is the line about the whole fleet.
func overall(rows []row, l link, now time.Time) string {
	n := tally(rows)
	s := fmt.Sprintf("%s  link %s of %s", exact(now.Sub(firstRequest(rows, now))), steady(l.rate()), perSecond(l.limit))
	s += fmt.Sprintf("  done %d of %d  loading %d  waiting %d", n[finished], len(rows), n[loading], n[waiting]+n[asking])
	if n[failed] > 0 {
		s += fmt.Sprintf("  failed %d", n[failed])
	}
	return s
}

// line is overall for plain output, with who comes next.
func line(rows []row, l link, now time.Time) string {
	s := overall(rows, l, now)
	for _, r := range rows {
		if r.state == waiting {
			if r.starts.After(now) {
				return s + fmt.Sprintf("  next %s (%s) in %s", r.name, r.class, span(r.starts.Sub(now)))
			}
			return s + fmt.Sprintf("  next %s (%s)", r.name, r.class)
		}
	}
	return s
}
