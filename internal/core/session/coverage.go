package session

import "slices"

// spansMost bounds the intervals a session remembers; past it the shortest is forgotten, which only delays the end of
// the session to its idle time (D-2.7).
const spansMost = 64

// span is bytes from..to, to exclusive.
type span struct{ from, to int64 }

// coverage is what a download was given whole, and where it began (D-2.7).
type coverage struct {
	spans []span // apart from each other, in order
	start int64  // lowest offset asked, reads of the tail aside; -1 while there is none
	cuts  []span // what responses that were cut off may have delivered, the latest last
	lost  bool   // the process before this one may have delivered more than it wrote down
}

// cutsMost bounds the cut responses remembered; a client resumes one of its latest.
const cutsMost = 4

// cut notes a response that broke off: by itself it delivers nothing (D-2.7).
func (c *coverage) cut(from, to int64) {
	if to <= from {
		return
	}
	if len(c.cuts) == cutsMost {
		c.cuts = slices.Delete(c.cuts, 0, 1)
	}
	c.cuts = append(c.cuts, span{from, to})
}

// resume takes a client at its word that goes on inside what a cut response had sent, or past a restart: what lies
// before its offset it has, or it would not go on there. Without this a download that was cut once would never be
// complete, and hold its seat idly at its end. It reports whether more is known to be delivered now.
func (c *coverage) resume(from int64) (more bool) {
	before := c.delivered()
	c.cuts = slices.DeleteFunc(c.cuts, func(s span) bool {
		if from <= s.from || from > s.to {
			return false
		}
		c.add(s.from, from)
		return true
	})
	if c.lost && from > c.start && c.start >= 0 {
		c.add(c.start, from)
	}
	c.lost = false
	return c.delivered() > before
}

// ask notes the offset of a request. A read of the tail sets no start: it is how archives are looked into.
func (c *coverage) ask(from int64, tail bool) {
	if !tail && (c.start < 0 || from < c.start) {
		c.start = from
	}
}

// add notes bytes delivered whole.
func (c *coverage) add(from, to int64) {
	if to <= from {
		return
	}
	i := 0
	for i < len(c.spans) && c.spans[i].to < from {
		i++
	}
	j := i
	for j < len(c.spans) && c.spans[j].from <= to {
		from, to = min(from, c.spans[j].from), max(to, c.spans[j].to)
		j++
	}
	c.spans = slices.Replace(c.spans, i, j, span{from, to})
	if len(c.spans) > spansMost {
		short := 0
		for k, s := range c.spans {
			if s.to-s.from < c.spans[short].to-c.spans[short].from {
				short = k
			}
		}
		c.spans = slices.Delete(c.spans, short, short+1)
	}
}

// complete reports whether everything from the start to the end of the object was delivered.
func (c *coverage) complete(size int64) bool {
	if c.start < 0 {
		return false
	}
	for _, s := range c.spans {
		if s.from <= c.start {
			if s.to >= size {
				return true
			}
			continue
		}
		break
	}
	return c.start >= size
}

// delivered is the number of bytes given whole.
func (c *coverage) delivered() (n int64) {
	for _, s := range c.spans {
		n += s.to - s.from
	}
	return n
}
