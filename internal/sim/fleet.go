package sim

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
)

// rangeBytes is the piece the SDK asks for at a time; only whole ones count as delivered when a client stops.
const rangeBytes = 8 << 20

// fate is what befalls a client besides waiting and reading.
type fate uint8

const (
	finishes    fate = iota
	leavesQueue      // stops asking while it waits, with or without a word
	leavesFile       // stops reading for good, its connection left open
	fallsSilent      // stops reading, comes back later and resumes
)

// state is where a client stands.
type state uint8

const (
	coming  state = iota // has not reached the server yet
	waiting              // in the queue, as far as it knows
	reading              // its bytes flow
	silent               // fell silent in mid-file
	gone                 // left for good
	done
)

// client is one download and who makes it. It keeps what the SDK keeps: its ticket, its verified prefix, and the first
// promise it was given.
type client struct {
	index     int
	key       session.Key
	principal int
	class     class.Class
	size      int64
	stock     bool // a tool without a download id
	arrives   clock.Mono

	fate    fate
	cutAt   int64         // bytes after which leavesFile and fallsSilent happen
	silence time.Duration // fallsSilent: for how long
	asks    int           // leavesQueue: asks left
	cancels bool          // leavesQueue: tells the server

	state    state
	from     int64 // verified prefix: where its next request starts
	flow     *flow
	told     int64      // bytes of the flow the machine knows of
	asked    bool       // for its seat: the flow ends on the next range boundary
	holding  int        // counts holds; an expiry of an earlier hold is ignored
	held     bool       // the server keeps its request open
	atDoor   bool       // it does because the client was called
	ticketed bool       // has a ticket
	arrival  clock.Mono // as the ticket says
	promised bool       // was given a place and an interval
	promise  session.Estimate
	entered  clock.Mono // first request at the server
	begun    bool
	started  clock.Mono // first byte may flow; meaningful when begun
	finished clock.Mono // last byte at the client
}

// keyOf names the n-th of a kind by a hash, as the server does.
func keyOf(kind string, n int) (k session.Key) {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(kind), uint64(n)))
	copy(k[:], sum[:])
	return k
}

// newFleet draws the clients from the seed, in order of arrival. Each property has its own stream of numbers, so that
// changing one option leaves the rest of the fleet as it was.
func newFleet(cfg Config) []*client {
	stream := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(cfg.Seed, n)) }
	sizes, arrivals, classes, fates, stock := stream(1), stream(2), stream(3), stream(4), stream(5)
	fleet := make([]*client, cfg.Clients)
	for i := range fleet {
		c := &client{
			size:    cfg.Sizes.Min + sizes.Int64N(cfg.Sizes.Max-cfg.Sizes.Min+1),
			class:   cfg.Classes.pick(classes.Float64()),
			stock:   stock.Float64() < cfg.Stock,
			arrives: clock.Mono(arrivals.Int64N(int64(cfg.Spread) + 1)),
		}
		c.draw(cfg, fates)
		fleet[i] = c
	}
	slices.SortStableFunc(fleet, func(a, b *client) int { return cmp.Compare(a.arrives, b.arrives) })
	principals := cfg.Principals
	if principals == 0 {
		principals = cfg.Clients
	}
	for i, c := range fleet {
		c.index, c.key, c.principal = i, keyOf("client", i), i%principals
	}
	return fleet
}

// draw decides the client's fate. It takes the same number of draws whatever comes out.
func (c *client) draw(cfg Config, r *rand.Rand) {
	at, where, length := r.Float64(), r.Float64(), r.Float64()
	c.cutAt = 1 + int64(where*float64(c.size-2))
	switch {
	case at < cfg.Vanish/2:
		c.fate, c.asks, c.cancels = leavesQueue, 1+int(where*4), length < 0.5
	case at < cfg.Vanish:
		c.fate = leavesFile
	case at < cfg.Vanish+cfg.Stall:
		c.fate = fallsSilent
		c.silence = time.Second + time.Duration(length*float64(2*time.Minute))
	}
}

// length is how far the client reads from its prefix before it is through or its fate strikes.
func (c *client) length() int64 {
	if (c.fate == leavesFile || c.fate == fallsSilent) && c.from < c.cutAt {
		return c.cutAt - c.from
	}
	return c.size - c.from
}

// ask is the client's request, as the machine sees it.
func (c *client) ask() session.Event {
	return session.Event{
		Kind: session.Request, Key: c.key, Principal: keyOf("principal", c.principal), Class: c.class,
		Identified: !c.stock, Size: c.size, Ticketed: c.ticketed, Arrival: c.arrival, From: c.from, To: c.size,
	}
}
