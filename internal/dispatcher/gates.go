package dispatcher

import (
	"maps"
	"slices"
)

// gate lets so many Runs through at once, in the order they came: a concurrency key lets one, an array its limit
//
type gate struct {
	limit   int
	open    map[string]bool // let through: queued or active
	waiting []string
	dead    map[string]bool // of waiting: gone meanwhile
}

func newGate(limit int) *gate {
	return &gate{limit: limit, open: map[string]bool{}, dead: map[string]bool{}}
}

// enter lets a Run through, or not yet.
func (g *gate) enter(id string) (through bool) {
	if g.open[id] {
		return true
	}
	if len(g.open) < g.limit {
		g.open[id] = true
		return true
	}
	delete(g.dead, id)
	g.waiting = append(g.waiting, id)
	return false
}

// force counts a Run that is active already, whatever the limit.
func (g *gate) force(id string) { g.open[id] = true }

// leave takes a Run out and says which ones may go through instead.
func (g *gate) leave(id string) (next []string) {
	if !g.open[id] {
		g.dead[id] = true
		return nil
	}
	delete(g.open, id)
	for len(g.open) < g.limit && len(g.waiting) > 0 {
		first := g.waiting[0]
		g.waiting = g.waiting[1:]
		if g.dead[first] {
			delete(g.dead, first)
			continue
		}
		g.open[first] = true
		next = append(next, first)
	}
	return next
}

// empty reports whether nobody is left.
func (g *gate) empty() bool { return len(g.open) == 0 && len(g.waiting) == 0 }

// sortedKeys lists keys in order, so that nothing depends on a map's.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
