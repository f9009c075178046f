package demo

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/roadstead/roadstead/internal/class"
)

// result is what a run came to. Times count from the fleet's first request.
type result struct {
	finished int
	failures []string
	retries  int
	rate     float64 // bytes per second from the first byte to the last
	ours     times
	even     times // computed: the same fleet sharing the link evenly at rate
	classes  []classTimes
	promises promises
}

// times sums up when clients had the file.
type times struct{ first, mean, last time.Duration }

// classTimes is times of one class.
type classTimes struct {
	class   string
	clients int
	times   times
}

// promises scores the first start each client was told with a place (D-6.3).
type promises struct {
	told   int
	inside int           // started inside the interval told
	off    time.Duration // mean distance of the start from the point told
	wait   time.Duration // mean wait of these clients
}

// sum sums a run up.
func sum(rows []row, size int64) result {
	var r result
	begun := firstRequest(rows, time.Now())
	var asked, ends []time.Duration
	var firstByte, lastByte time.Time
	byClass := map[string][]time.Duration{}
	for _, c := range rows {
		r.retries += c.retries
		if c.state != finished {
			r.failures = append(r.failures, fmt.Sprintf("%s: %v", c.name, c.err))
			continue
		}
		r.finished++
		end := c.ended.Sub(begun)
		asked, ends = append(asked, c.asked.Sub(begun)), append(ends, end)
		byClass[c.class] = append(byClass[c.class], end)
		if firstByte.IsZero() || c.began.Before(firstByte) {
			firstByte = c.began
		}
		if c.ended.After(lastByte) {
			lastByte = c.ended
		}
		r.promises.add(c)
	}
	if r.finished == 0 {
		return r
	}
	r.promises.off /= time.Duration(max(r.promises.told, 1))
	r.promises.wait /= time.Duration(max(r.promises.told, 1))
	r.rate = float64(size) * float64(r.finished) / max(lastByte.Sub(firstByte).Seconds(), 1e-3)
	r.ours, r.even = timesOf(ends), timesOf(evenly(asked, float64(size), r.rate))
	for _, k := range class.All() {
		if ends := byClass[k.String()]; len(ends) > 0 {
			r.classes = append(r.classes, classTimes{k.String(), len(ends), timesOf(ends)})
		}
	}
	return r
}

func (p *promises) add(c row) {
	if !c.told.Known {
		return
	}
	p.told++
	if !c.began.Before(c.told.Earliest) && !c.began.After(c.told.Latest) {
		p.inside++
	}
	p.off += c.began.Sub(c.told.StartsAt).Abs()
	p.wait += c.began.Sub(c.asked)
}

func timesOf(ends []time.Duration) times {
	t := times{first: slices.Min(ends), last: slices.Max(ends)}
	for _, e := range ends {
		t.mean += e
	}
	t.mean /= time.Duration(len(ends))
	return t
}

// evenly computes when clients that come at the given times would each have size bytes if all shared a link of rate
// bytes per second evenly, from the first moment on and without any loss. All want the same, so they end in the order
// in which they came: one has the file when the share of a client that was there all the time has grown by size.
func evenly(asked []time.Duration, size, rate float64) []time.Duration {
	came := slices.Sorted(slices.Values(asked))
	ends, until := make([]time.Duration, 0, len(came)), make([]float64, len(came))
	now, share := 0.0, 0.0 // seconds; bytes of a client that was there all the time
	for next := 0; len(ends) < len(came); {
		here := float64(next - len(ends))
		end := math.Inf(1)
		if here > 0 {
			end = now + (until[len(ends)]-share)*here/rate
		}
		if next < len(came) && came[next].Seconds() <= end {
			at := came[next].Seconds()
			if here > 0 {
				share += (at - now) * rate / here
			}
			now, until[next] = at, share+size
			next++
			continue
		}
		now, share = end, until[len(ends)]
		ends = append(ends, time.Duration(end*float64(time.Second)))
	}
	return ends
}

// words is the summary for a person.
func (r result) words(p plan, v view) []string {
	out := []string{"", v.paint(bold, r.outcome(p)), ""}
	for _, f := range r.failures {
		out = append(out, v.paint(red, "failed: ")+f)
	}
	if len(r.failures) > 0 {
		out = append(out, "")
	}
	if r.finished == 0 {
		return out
	}
	return append(append(out, r.comparison(v)...), "", r.meaning())
}

func (r result) outcome(p plan) string {
	s := fmt.Sprintf("%d of %d clients have the file, every byte verified by SHA-256.", r.finished, p.Clients)
	if r.finished == 0 {
		s = fmt.Sprintf("None of %s got the file.", count(p.Clients, "client", "clients"))
	}
	return s
}

// comparison is the table of both ways to use the link.
func (r result) comparison(v view) []string {
	line := func(name, ours, even, note string) string {
		return strings.TrimRight(fmt.Sprintf("  %-18s %11s %14s   %s", name, ours, even, note), " ")
	}
	out := []string{v.paint(dim, line("", "ROADSTEAD", "EVEN SHARING", ""))}
	both := func(name string, ours, even time.Duration) {
		out = append(out, line(name, exact(ours), exact(even), faster(ours, even)))
	}
	both("first has the file", r.ours.first, r.even.first)
	both("mean", r.ours.mean, r.even.mean)
	both("last", r.ours.last, r.even.last)
	for _, c := range r.classes {
		out = append(out, line("  "+c.class, exact(c.times.mean), "", "mean of "+fmt.Sprint(c.clients)))
	}
	errors := ""
	if r.retries > 0 {
		errors = count(r.retries, "retry", "retries")
	}
	out = append(out, line("errors", fmt.Sprint(len(r.failures)), "", errors))
	if p := r.promises; p.told > 0 {
		out = append(out,
			line("start off by", exact(p.off), "", "mean, of a mean wait of "+exact(p.wait)),
			line("started as told", fmt.Sprintf("%d of %d", p.inside, p.told), "", "inside the first interval that came with a place"))
	}
	return append(out, "", v.paint(dim, fmt.Sprintf("  Even sharing is computed: the same clients and bytes at the %s measured in this run.", perSecond(r.rate))))
}

// faster compares two times in words.
func faster(ours, even time.Duration) string {
	switch x := even.Seconds() / max(ours.Seconds(), 1e-3); {
	case x >= 1.05:
		return fmt.Sprintf("%.1f times as fast", x)
	case x > 0.95:
		return "the same"
	}
	return fmt.Sprintf("%.1f s later", (ours - even).Seconds())
}

// meaning is what the figures come to, in a sentence.
func (r result) meaning() string {
	saved, late := r.even.mean-r.ours.mean, r.ours.last-r.even.last
	switch {
	case saved < r.even.mean/20:
		return "What it means: with so few clients for so many seats a queue changes little; try more clients, or fewer seats."
	case late > r.even.last/20:
		return fmt.Sprintf("What it means: the mean client has the file %s sooner, the last one %s later.", exact(saved), exact(late))
	}
	return fmt.Sprintf("What it means: over the same link the mean client has the file %s sooner, and the last one no later.", exact(saved))
}
