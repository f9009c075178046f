package forerun

import (
	"cmp"
	"slices"
	"time"

	"github.com/roadstead/roadstead/internal/core/session"
)

// playShared is everybody at once: the link is split evenly between principals, then between the downloads of each. What
// a principal's download has behind it depends on what its principal got only, so the ends are sorted once by that, and
// time is added up between them.
func playShared(q Queue) Result {
	type end struct {
		got  float64 // bytes of its principal when this download is through
		i    int     // index into q.Waiting, or -1
		last bool    // the principal's last
	}
	type part struct {
		left float64
		i    int
	}
	r := Result{Fates: make([]Fate, len(q.Waiting)), Drained: q.Now, Done: q.Now, Whole: true}
	of := map[session.Key][]part{}
	var principals []session.Key // in the order they come, so that the result is the same every time
	add := func(s session.Saved, i int) {
		if _, known := of[s.Principal]; !known {
			principals = append(principals, s.Principal)
		}
		of[s.Principal] = append(of[s.Principal], part{float64(max(s.Left, 1)), i})
	}
	for _, s := range q.Seated {
		add(s, -1)
	}
	for i, s := range q.Waiting {
		add(s, i)
	}
	var ends []end
	for _, k := range principals {
		parts := of[k]
		slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.left, b.left) })
		got, done := 0.0, 0.0
		for j, p := range parts {
			got += (p.left - done) * float64(len(parts)-j)
			done = p.left
			ends = append(ends, end{got, p.i, j == len(parts)-1})
		}
	}
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.got, b.got) })
	seconds, got, share := 0.0, 0.0, float64(len(principals))
	for _, e := range ends {
		seconds += (e.got - got) * share / float64(q.Rate)
		got = e.got
		if e.last {
			share--
		}
		at := q.Now.Add(time.Duration(seconds * float64(time.Second)))
		r.Done = max(r.Done, at)
		if e.i >= 0 {
			r.Fates[e.i] = Fate{Started: true, Finished: true, Start: q.Now, Finish: at}
		}
	}
	return r
}
