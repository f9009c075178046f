package api

import "time"

// States of a booking.
const (
	BookingScheduled = "scheduled" // its notBefore lies ahead; it has no place yet
	BookingQueued    = "queued"    // waits for a seat
	BookingActive    = "active"    // its bytes may be fetched now
	BookingFinished  = "finished"  // all bytes were delivered
	BookingCancelled = "cancelled"
	BookingLapsed    = "lapsed" // nobody followed it in time
)

// NewBooking is the body of POST /api/v1/downloads (D-2.14).
type NewBooking struct {
	Repository string     `json:"repository"`
	Path       string     `json:"path,omitempty" doc:"The file, at its current revision; or give a digest."`
	Digest     string     `json:"digest,omitempty" doc:"sha256:<hex> of the object; or give a path."`
	ID         string     `json:"id,omitempty" pattern:"^[A-Za-z0-9._-]{1,64}$" doc:"The download's id, to be sent as Arkvory-Download-Id when its bytes are fetched; made by the server when absent."`
	Class      string     `json:"class,omitempty" doc:"interactive, release, bulk or background; may only lower the class."`
	Offset     int64      `json:"offset,omitempty" minimum:"0" doc:"First byte still wanted, when the download is resumed."`
	NotBefore  *time.Time `json:"notBefore,omitempty" doc:"The download does not start earlier; it queues when it is followed from then on."`
	NotAfter   *time.Time `json:"notAfter,omitempty" doc:"Kept and compared with the estimate; the client decides what to do about it."`
}

// Booking is a place in the download queue that was asked for ahead of the bytes. The place and the times are absent
// while they are not known.
type Booking struct {
	ID             string     `json:"id"`
	State          string     `json:"state" enum:"scheduled,queued,active,finished,cancelled,lapsed"`
	Repository     string     `json:"repository"`
	Path           string     `json:"path,omitempty"`
	Digest         string     `json:"digest"`
	Size           int64      `json:"size"`
	Admission      string     `json:"admission" enum:"sessions,per-request" doc:"per-request: the object needs no seat; its requests are admitted one by one."`
	Ticket         string     `json:"ticket,omitempty" doc:"Send the latest one back, as Arkvory-Queue-Ticket."`
	LapsesAt       *time.Time `json:"lapsesAt,omitempty" doc:"When the booking ends if nobody follows it."`
	NotBefore      *time.Time `json:"notBefore,omitempty"`
	NotAfter       *time.Time `json:"notAfter,omitempty"`
	MissesNotAfter bool       `json:"missesNotAfter" doc:"As far as is known the start lies after notAfter."`
	CreatedAt      time.Time  `json:"createdAt"`
	Wait
}

// Why are the reasons of a wait, for machines (D-11.1).
type Why struct {
	Ahead         []WhyAhead `json:"ahead" nullable:"false" doc:"Sessions that go first, by the class they wait in."`
	Seats         int        `json:"seats"`
	SeatsInUse    int        `json:"seatsInUse"`
	Reserve       int        `json:"reserve" doc:"Seats that this class never takes."`
	OwnSeats      int        `json:"ownSeats" doc:"Seats that the caller's downloads have."`
	OwnShare      int        `json:"ownShare" doc:"Seats the caller may have while others wait."`
	WindowClosed  bool       `json:"windowClosed" doc:"The class may not start at this hour."`
	WindowOpensAt *time.Time `json:"windowOpensAt,omitempty"`
	Yielded       bool       `json:"yielded" doc:"It gave its seat to a download that still waits for one."`
	AgedSeconds   float64    `json:"agedSeconds" doc:"Time waited that counts for aging."`
}

// WhyAhead counts the sessions of one class that go first.
type WhyAhead struct {
	Class    string `json:"class"`
	Sessions int    `json:"sessions"`
}
