package demo

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/roadstead/roadstead/sdk"
)

// state is where a client stands.
type state uint8

const (
	away    state = iota // has not asked yet
	asking               // has asked, no place yet
	waiting              // has a place
	loading              // bytes come
	finished
	failed
)

func (s state) String() string {
	return [...]string{"", "asking", "waiting", "loading", "done", "failed"}[s]
}

// row is one client as the board knows it.
type row struct {
	name, class string
	state       state
	place       int       // as last told
	starts      time.Time // as last told
	offset      int64
	size        int64
	rate        float64 // bytes per second of the last seconds
	retries     int

	told                sdk.Waiting // the first answer with a place and a start; Known is false until then
	asked, began, ended time.Time   // first request, first byte, last byte verified
	err                 error
}

// board is what the fleet reports to and the screen reads.
type board struct {
	mu  sync.Mutex
	all []row
	now func() time.Time
}

func newBoard(members []member, size int64) *board {
	b := &board{now: time.Now}
	for _, m := range members {
		b.all = append(b.all, row{name: m.name, class: m.class.String(), size: size})
	}
	return b
}

// asks notes a client's first request.
func (b *board) asks(i int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all[i].state, b.all[i].asked = asking, b.now()
}

// event takes what the SDK reports of a client.
func (b *board) event(i int, e sdk.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &b.all[i]
	switch e := e.(type) {
	case sdk.Waiting:
		r.rate = 0
		if !e.Known {
			return
		}
		r.state, r.place, r.starts, r.class = waiting, e.Position, e.StartsAt, e.Class
		if !r.told.Known && r.began.IsZero() {
			r.told = e
		}
	case sdk.Progress:
		if r.began.IsZero() {
			r.began = b.now()
		}
		r.state, r.offset, r.rate = loading, e.Offset, e.Rate
	case sdk.Retrying:
		r.retries++
	}
}

// ends notes how a client's download ended.
func (b *board) ends(i int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &b.all[i]
	r.state, r.ended, r.err = finished, b.now(), err
	if err != nil {
		r.state = failed
	}
}

// rows copies the board in the order of the queue: who has ended, who is served, who waits by announced start, who has
// not got a place yet.
func (b *board) rows() []row {
	b.mu.Lock()
	rows := slices.Clone(b.all)
	b.mu.Unlock()
	rank := func(r row) (int, time.Time) {
		switch r.state {
		case finished, failed:
			return 0, r.ended
		case loading:
			return 1, r.began
		case waiting:
			return 2, r.starts
		}
		return 3, time.Time{}
	}
	slices.SortStableFunc(rows, func(x, y row) int {
		a, at := rank(x)
		b, bt := rank(y)
		return cmp.Or(cmp.Compare(a, b), at.Compare(bt))
	})
	return rows
}

// tally counts the clients in each state.
func tally(rows []row) (n [failed + 1]int) {
	for _, r := range rows {
		n[r.state]++
	}
	return n
}

// received is how many bytes the whole fleet has.
func received(rows []row) (n int64) {
	for _, r := range rows {
		n += r.offset
	}
	return n
}
