package storm

import (
	"math/rand/v2"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
)

// rangeBytes is the piece the SDK asks for at a time: where a response may end for another's sake.
const rangeBytes = 8 << 20

// fate is what befalls one download of a client.
type fate uint8

const (
	finishes    fate = iota
	leavesQueue      // stops asking while it waits
	leavesFile       // stops reading for good, its connection left open
	stalls           // stops reading for a while
)

// stage is where a client stands.
type stage uint8

const (
	idle    stage = iota // between downloads
	away                 // its next request is on the agenda
	held                 // the server keeps its request open
	reading              // has responses open
)

// span is bytes from..to, to exclusive.
type span struct {
	from, to int64
	tail     bool
}

// place is what a ticket says. It is signed when a server is to read it, which is seldom: signing at every answer would
// be most of the run.
type place struct{ arrival, issued time.Time }

// client makes one download after another. It keeps what the SDK keeps: id, ticket, and what it still lacks.
type client struct {
	number    int
	principal int
	class     class.Class
	stock     bool // no download id; held by the server (D-2.4)
	ghost     bool // came with an overload, for one download
	twin      *client

	key     session.Key
	size    int64
	parts   []span // not asked for yet, or to be asked for again
	open    []*response
	lanes   int // ranges it asks for at once
	liar    bool
	fate    fate
	strikes int64 // bytes of a response after which leavesFile and stalls happen
	patient int   // leavesQueue: answers it still waits for
	cancels bool
	crawls  bool // reads slower than a seat asks for
	whole   bool // nothing went wrong: its last byte must free the seat

	stage   stage
	turn    int
	door    bool
	ticket  place
	retries int
}

// response is one answer whose bytes flow. Its progress is worked out when its rate changes or somebody asks.
type response struct {
	client  *client
	session *record
	span    span
	rate    float64
	sent    float64 // at since
	since   clock.Mono
	told    int64
	stalled bool
	closed  bool
	strikes bool // fate comes at its end instead of the end of its span
	endsAt  int64
}

func (b *response) upTo(now clock.Mono) float64 {
	return min(b.sent+b.rate*now.Sub(b.since).Seconds(), float64(b.endsAt-b.span.from))
}

// keyOf is a key that no two numbers share.
func keyOf(n uint64) (k session.Key) {
	x, y := mix(n), mix(n^0x5bd1e995<<17)
	for i := range 8 {
		k[i], k[8+i] = byte(x>>(8*i)), byte(y>>(8*i))
	}
	return k
}

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// start draws the client's next download.
func (c *client) start(s *scenario, r *rand.Rand, number uint64) {
	c.key, c.size, c.ticket, c.retries = keyOf(number), s.small+r.Int64N(s.big-s.small+1), place{}, 0
	c.fate, c.liar, c.lanes, c.whole = finishes, r.Float64() < s.lie, 1, true
	switch x := r.Float64(); {
	case c.ghost && x < 0.7 || x < s.vanish/2:
		c.fate, c.patient, c.cancels = leavesQueue, 1+r.IntN(4), r.IntN(2) == 0
	case x < s.vanish:
		c.fate = leavesFile
	case x < s.vanish+s.stall:
		c.fate = stalls
	}
	c.crawls = s.crawl > 0 && r.Float64() < s.crawl
	c.strikes = 1 + r.Int64N(c.size)
	c.parts = c.parts[:0]
	if r.Float64() < s.tail {
		c.parts = append(c.parts, span{c.size - 1<<16, c.size, true})
	}
	if !c.stock && r.Float64() < s.wide {
		c.lanes = 2 + r.IntN(5)
		piece := c.size/int64(c.lanes) + 1
		for at := int64(0); at < c.size; at += piece {
			c.parts = append(c.parts, span{at, min(at+piece, c.size), false})
		}
		return
	}
	c.parts = append(c.parts, span{0, c.size, false})
}

// ask is the client's next request, as the machine sees it.
func (c *client) ask() session.Event {
	p := c.parts[0]
	return session.Event{
		Kind: session.Request, Key: c.key, Principal: principalKey(c.principal), Class: c.class,
		Identified: !c.stock, Size: c.size, From: p.from, To: p.to, Tail: p.tail,
	}
}

func principalKey(n int) session.Key { return keyOf(1<<40 + uint64(n)) }

// wait is how long the client stays away when told a time: the SDK adds up to a tenth, a stock tool knows whole seconds.
func (c *client) wait(told time.Duration, r *rand.Rand) time.Duration {
	if c.stock {
		return max(time.Second, (told + time.Second - 1).Truncate(time.Second))
	}
	told = max(told, 250*time.Millisecond)
	return told + time.Duration(r.Int64N(int64(min(told/10, 5*time.Second))+1))
}
