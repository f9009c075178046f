package storm

import "github.com/roadstead/roadstead/internal/clock"

// happening is the kind of an entry of the agenda.
type happening uint8

const (
	asks     happening = iota // a client's request reaches the server
	holdEnds                  // a held request was held long enough
	wakes                     // a held request is told to ask again
	hangsUp                   // a client leaves while its request is held
	resumes                   // a stalled client reads on
	cuts                      // the server closes a stalled response
	begins                    // a client starts its next download
	crashes
	restarts
	freezes
	thaws
	configures
	opensOrShuts
	overloads
	wallJumps
	stops // no more trouble and no new downloads
)

// entry is something due at an instant. One that concerns a client is void when the client moved on meanwhile, which
// its turn tells.
type entry struct {
	at     clock.Mono
	seq    uint64
	what   happening
	client *client
	turn   int
	body   *response
}

// agenda is a heap of what is due, soonest first.
type agenda struct {
	heap []entry
	seq  uint64
}

func (e *entry) before(o *entry) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

func (a *agenda) plan(e entry) {
	a.seq++
	e.seq = a.seq
	a.heap = append(a.heap, e)
	i := len(a.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !a.heap[i].before(&a.heap[up]) {
			break
		}
		a.heap[i], a.heap[up] = a.heap[up], a.heap[i]
		i = up
	}
}

// due takes the soonest entry that is not after an instant.
func (a *agenda) due(now clock.Mono) (entry, bool) {
	if len(a.heap) == 0 || a.heap[0].at > now {
		return entry{}, false
	}
	first, last := a.heap[0], len(a.heap)-1
	a.heap[0], a.heap[last] = a.heap[last], entry{}
	a.heap = a.heap[:last]
	for i := 0; ; {
		least := i
		for _, k := range [2]int{2*i + 1, 2*i + 2} {
			if k < last && a.heap[k].before(&a.heap[least]) {
				least = k
			}
		}
		if least == i {
			return first, true
		}
		a.heap[i], a.heap[least] = a.heap[least], a.heap[i]
		i = least
	}
}
