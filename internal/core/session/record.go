package session

import (
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
)

type state uint8

const (
	vacant  state = iota // the slot is free
	waiting              // has a turn in the order
	active               // has a seat
	paused               // lost its seat to idleness; keeps its arrival
	gone                 // tombstone: any ticket of this key is void (D-8.2)
	aside                // reads on without a seat, too slowly for one
)

const (
	identified uint8 = 1 << iota // the client sends a download id
	marked                       // may take a seat when it comes (D-2.12)
	beyond                       // marked although its principal is at its share: no contender was there
	fresh                        // came after the last tick: its place is not told yet (D-6.2)
	linked                       // is in a bucket of the wheel
	tailOnly                     // asked for the tail alone so far, which sets no start (D-2.7)
	aged                         // waited so long that it goes before its class (D-3.1, D-3.2)
	yielding                     // is to give its seat up on the next range boundary (D-4.5)
)

// record is one session. It holds no pointers, so a million of them cost the collector nothing. What every operation
// reads first fills 32 bytes, and what most of them touch 64: records lie at multiples of 32, so the first is in one
// cache line always and the second in one or two.
type record struct {
	key       Key
	order     uint64 // arrival and sequence number, see orderOf
	principal uint32
	state     state
	flags     uint8
	class     class.Class
	rank      uint8 // class it waits in: its own, or a higher one it aged into

	left     int64      // bytes the client still wants, as far as known while it waits
	deadline clock.Mono // no-show, end of a pause, end of a tombstone
	prev     uint32     // neighbours in the wheel's bucket
	next     uint32
	bucket   uint16
	plan     uint16 // index+1 into the plan, when it is there
	held     uint16 // requests the shell holds open
	running  uint8  // responses open
	noted    bool   // changed since the journal heard of it

	size    int64  // bytes of the whole object
	seat    uint32 // index+1 into the machine's seats, once it had one
	promise promise
}

func (r *record) has(f uint8) bool { return r.flags&f != 0 }
func (r *record) set(f uint8)      { r.flags |= f }
func (r *record) clear(f uint8)    { r.flags &^= f }

// Orders: 40 bits of arrival in ms, moved so that arrivals from before the process began are positive too, and 24 bits
// of sequence number.
const (
	sequenceBits = 24
	arrivalBias  = int64(1) << 38
)

func orderOf(arrival clock.Mono, sequence uint32) uint64 {
	ms := int64(arrival)/int64(time.Millisecond) + arrivalBias
	ms = min(max(ms, 0), 1<<40-1)
	return uint64(ms)<<sequenceBits | uint64(sequence&(1<<sequenceBits-1))
}

func (r *record) arrival() clock.Mono {
	return clock.Mono((int64(r.order>>sequenceBits) - arrivalBias) * int64(time.Millisecond))
}

// pageSize records make a page; pages are never moved, so growth copies nothing.
const pageSize = 1024

// arena keeps the records; a handle is an index into it, never 0.
type arena struct {
	pages []*[pageSize]record
	free  []uint32
	used  uint32
}

func (a *arena) at(h uint32) *record { return &a.pages[h/pageSize][h%pageSize] }

func (a *arena) take() uint32 {
	if n := len(a.free); n > 0 {
		h := a.free[n-1]
		a.free = a.free[:n-1]
		return h
	}
	a.used++
	if int(a.used/pageSize) >= len(a.pages) {
		a.pages = append(a.pages, new([pageSize]record))
	}
	return a.used
}

func (a *arena) give(h uint32) {
	*a.at(h) = record{}
	a.free = append(a.free, h)
}

// seat is what only sessions with a seat, or paused ones, need.
type seat struct {
	covered  coverage
	sent     int64      // bytes the sockets accepted since the seat was taken
	goal     int64      // bytes wanted when the seat was taken
	lastByte clock.Mono // idle counts from here (D-2.8)
	since    clock.Mono // when the seat was taken
	inside   bool       // it was taken while the class's window was open (D-5.2)
	pace     pace       // of its reader
}

// tail reports whether the session read nothing but the tail so far.
func (s *seat) tail() bool { return s.covered.start < 0 }

// left is how many bytes the session still wants.
func (s *seat) left() int64 { return max(0, s.goal-s.sent) }

// ask notes the offset of a request; one below the start known so far makes the download longer.
func (s *seat) ask(from, size int64, tail bool) {
	was := s.covered.start
	s.covered.ask(from, tail)
	switch now := s.covered.start; {
	case was < 0 && now >= 0:
		s.goal += size - now
	case now < was:
		s.goal += was - now
	}
}
