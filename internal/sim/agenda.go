package sim

import (
	"container/heap"

	"github.com/roadstead/roadstead/internal/clock"
)

// happening is the kind of an entry of the agenda.
type happening uint8

const (
	tick    happening = iota // the machine's tick
	request                  // a client's request reaches the server
	release                  // a held request has been held long enough
	cut                      // the server closes the response of a client that fell silent
	second                   // a second ends: the bytes that flowed in it are told
)

// entry is something due at an instant.
type entry struct {
	at     clock.Mono
	seq    uint64 // breaks ties in the order of planning, so that a replay meets them alike
	what   happening
	client *client
	hold   int // release: which hold of the client
}

// agenda is what is due, soonest first.
type agenda struct {
	entries entries
	seq     uint64
}

func (a *agenda) plan(e entry) {
	a.seq++
	e.seq = a.seq
	heap.Push(&a.entries, e)
}

// next is the instant of the soonest entry.
func (a *agenda) next() (clock.Mono, bool) {
	if len(a.entries) == 0 {
		return 0, false
	}
	return a.entries[0].at, true
}

// due takes the soonest entry that is not after now.
func (a *agenda) due(now clock.Mono) (entry, bool) {
	if len(a.entries) == 0 || a.entries[0].at > now {
		return entry{}, false
	}
	return heap.Pop(&a.entries).(entry), true
}

type entries []entry

func (h entries) Len() int { return len(h) }
func (h entries) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h entries) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *entries) Push(x any)   { *h = append(*h, x.(entry)) }
func (h *entries) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}
