package downloads

import (
	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/core/session"
)

// coverageOf is how many starts are kept to say how good what was told is (D-6.3).
const coverageOf = 1024

// score says of one start that was waited for what had been told of it first.
type score struct{ told, inside, under10, under90 bool }

// coverage keeps the scores of the last starts that were waited for. The zero value has seen none.
type coverage struct {
	ring [coverageOf]score
	n    int // ever
}

// scored is the score of a start; ok is false when nobody waited for it.
func scored(f session.Effect) (s score, ok bool) {
	if f.Kind != session.Started || f.Waited <= 0 {
		return score{}, false
	}
	if !f.Promised {
		return score{}, true
	}
	return score{told: true, inside: f.Earliest <= f.At && f.At <= f.Latest, under10: f.At < f.P10, under90: f.At <= f.P90}, true
}

func (c *coverage) add(s score) {
	c.ring[c.n%coverageOf] = s
	c.n++
}

// estimates are the shares of the last starts; nil while there was none.
func (c *coverage) estimates() *api.QueueEstimates {
	if c.n == 0 {
		return nil
	}
	out, told := &api.QueueEstimates{Starts: min(c.n, coverageOf)}, 0
	for _, s := range c.ring[:out.Starts] {
		if s.told {
			told++
		}
		for _, hit := range []struct {
			share *float64
			is    bool
		}{{&out.Inside, s.inside}, {&out.UnderP10, s.under10}, {&out.UnderP90, s.under90}} {
			if hit.is {
				*hit.share++
			}
		}
	}
	out.Known = float64(told) / float64(out.Starts)
	for _, share := range []*float64{&out.Inside, &out.UnderP10, &out.UnderP90} {
		*share /= float64(max(told, 1))
	}
	return out
}
