// Package session is the download scheduler: a pure machine that takes an event and an instant and answers with
// decisions. It has no clock, goroutine, lock, I/O or randomness of its own; the caller serialises the calls and
// supplies the time, so the server, the simulator and the tests run the same code (design: the core).
package session

import (
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
)

// Key names a session: a hash over principal, object and download id (D-2.2).
type Key [16]byte

// EventKind says what happened.
type EventKind uint8

// The events. Each is answered by at most one effect about its own key, besides effects about others.
const (
	// Request is a GET that passed authorization: a new download, a poll, or the next range of an active session.
	// Answered by exactly one of Serve, Wait, Surplus, Refuse. Serve counts a response as open until Finish.
	Request EventKind = iota
	// Finish ends one response that Serve opened; From, To is the span delivered whole, empty when it was cut.
	Finish
	// Progress tells of bytes the sockets of the session accepted since the last Progress.
	Progress
	// Hold says that the shell keeps a request of this waiting session open instead of answering it (D-2.4): the
	// session counts as confirmed until the matching Unhold, and gets Seated when its seat comes.
	Hold
	// Unhold ends one Hold, for whatever reason.
	Unhold
	// Cancel takes the session out, whatever its state (D-2.13).
	Cancel
)

// Event is one thing that happened. Which fields matter depends on Kind.
type Event struct {
	Kind EventKind
	Key  Key

	// Request only.
	Principal  Key         // hash of the principal: shares and turns are counted by it
	Class      class.Class // the applied class, already clamped (D-4.3); used when the session is new
	Identified bool        // the client sent a download id
	Size       int64       // bytes of the whole object
	Ticketed   bool        // a valid ticket came along; it is read only when no record of the key exists (D-8.2)
	Arrival    clock.Mono  // arrival the ticket vouches for

	// From and To bound the bytes: asked (Request) or delivered whole (Finish); To is exclusive. Finish of a response
	// that was cut says with To equal to From where it began, and with Bytes how many the socket accepted.
	From, To int64
	Tail     bool // Request: a read of the tail, which sets no start (D-2.7)

	Bytes int64 // Progress: bytes accepted since the last one; zero with a Touch keeps the session from idling

	// Paced is, for Progress, how long the governor held the response back since the last one: the rest of the time was
	// its reader's, by which a slow one is known.
	Paced time.Duration
}

// EffectKind says what the machine decided.
type EffectKind uint8

// The effects.
const (
	Serve      EffectKind = iota // the request may send its bytes now
	Wait                         // the session waits for a seat: tell the client with Answer, or Hold
	Surplus                      // too many responses of this session at once (D-2.10): place kept, come back in a second
	Refuse                       // a bound is reached (D-7.1): come back after RetryAfter; nothing was kept
	Seated                       // a held session got its seat: its held requests should ask again now
	Started                      // a session took a seat (after Waited in the queue)
	Finished                     // a session delivered its last byte and gave its seat back
	Paused                       // a session idled and gave its seat back; its place by arrival is kept (D-2.8)
	NoShow                       // a waiting session was not confirmed in time and is gone (D-2.11)
	Forgot                       // a paused session did not come back in time
	Yielded                      // a session gave its seat up on a range boundary and waits anew (D-4.5)
	MovedAside                   // a slow reader left its seat and reads on what nobody else wants
)

// Effect is one decision.
type Effect struct {
	Kind       EffectKind
	Key        Key
	Class      class.Class
	RetryAfter time.Duration // Surplus, Refuse
	Bound      string        // Refuse: which bound, for the reason: "sessions" or "principal"
	Waited     time.Duration // Started: since its arrival
	At         clock.Mono    // Started: when
	Promised   bool          // Started: a start interval had been announced
	Earliest   clock.Mono    // Started: the first interval announced with a place (D-6.3)
	P10        clock.Mono
	Point      clock.Mono
	P90        clock.Mono
	Latest     clock.Mono
}

// Estimate is what a waiting session is told (D-6). Known is false until the first tick that saw it.
type Estimate struct {
	Known    bool
	Position int        // 1-based place in its order
	Called   bool       // marked for a seat or about to start: the shell may keep its request open for Door instead of answering
	Start    clock.Mono // point
	Earliest clock.Mono // interval
	Latest   clock.Mono
	P10      clock.Mono // one start in ten is earlier, as far as the last ones tell
	P50      clock.Mono
	P90      clock.Mono // nine in ten are earlier
	Check    clock.Mono // when to ask again (D-6.2)
	Class    class.Class
	Arrival  clock.Mono
}

// ClassCounts counts sessions of one class.
type ClassCounts struct {
	Waiting, Active, Paused int
	Aside                   int        // served without a seat: slow readers
	Held                    int        // requests held open
	WaitingBytes            int64      // bytes the waiting ones still want
	Head                    clock.Mono // arrival of the first in its order; meaningful when Waiting > 0
}

// Counts is a snapshot of the machine.
type Counts struct {
	Classes   [class.Count]ClassCounts
	Sessions  int   // records of every kind, tombstones included
	Responses int   // open responses
	Rate      int64 // bytes per second that estimates are made with; 0 when not known
}
