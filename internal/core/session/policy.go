package session

import (
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/fault"
)

// Policy is everything an operator can set about the queue. The zero value is not usable; start from Default.
type Policy struct {
	Sessions         int                 // seats: sessions that may be active at once
	Reserve          int                 // seats that classes below interactive never take (D-4.2)
	PerPrincipal     int                 // share: seats of one principal while others wait (D-4.4)
	Weights          [class.Count]uint32 // turns of each class in a round of the order (D-4.1)
	MaxSessions      int                 // records of every kind (D-7.1)
	MaxPerPrincipal  int                 // records of one principal (D-7.1)
	RangesPerSession int                 // responses of one session at once (D-2.10)
	Idle             time.Duration       // pause that frees a seat (D-2.8)
	LinkRate         int64               // ceiling of the link in bytes per second; 0 when none is set and the rate is measured
	Strategy         Strategy            // order inside a class (D-3)
	Aging            time.Duration       // waiting this long raises a session, once per as long again (D-3.1); 0 never
	Preempt          bool                // a seat may be taken back on a range boundary (D-4.5)
	AutoMin, AutoMax int                 // the seats follow the use of the link within these bounds; AutoMax 0: they stay as set
	MinRate          int64               // bytes per second that a seat asks of its reader; 0: none
	PollBudget       int                 // polls per second that all waiting clients together are told to make; 0: no such bound (D-6.2)
}

// Strategy is the order inside a class. The third of the document, shared, is no queue: the shell admits each request.
type Strategy uint8

// The strategies.
const (
	Ordered       Strategy = iota // principals in turn, first come first served in each (D-3.1)
	SmallestFirst                 // fewer remaining bytes first, the aged before all (D-3.2)
)

// Fixed times of the document.
const (
	TickEvery    = 500 * time.Millisecond // D-7.2
	KeepPaused   = 10 * time.Minute       // D-2.8
	KeepGone     = 15 * time.Minute       // tombstones, as long as a ticket lives (D-8.2)
	NoShowSlack  = 30 * time.Second       // D-2.11
	EndingSoon   = 5 * time.Second        // D-2.12
	Door         = 15 * time.Second       // how long a called session's request may be kept open: well over EndingSoon, so its seat comes meanwhile
	DoorSoon     = 4 * time.Second        // who starts within it is called: under Door, so that the seat comes meanwhile
	SettleFor    = 2 * time.Second        // D-2.12, after a restart
	MaxCheck     = 5 * time.Minute        // D-6.2
	MaxStretched = 12 * time.Minute       // D-6.2, under a poll budget; less than the life of a ticket
	Tenure       = time.Minute            // D-4.5: nobody loses a seat held for less
	TailHold     = 5 * time.Second        // D-2.9
	MinCheck     = 2 * time.Second        // D-6.2
	MinCheckHead = time.Second            // D-6.2, first in the queue
)

// Default is the policy of the documents for a number of seats.
func Default(seats int) Policy {
	p := Policy{
		Sessions: seats, PerPrincipal: min(4, seats), Weights: [class.Count]uint32{8, 4, 2, 1},
		MaxSessions: 65536, MaxPerPrincipal: 4096, RangesPerSession: 4, Idle: 30 * time.Second,
		Aging: time.Hour, Preempt: true,
	}
	if seats >= 4 {
		p.Reserve = 1
	}
	return p
}

// Validate names the first field that cannot work.
func (p Policy) Validate() error {
	between := func(field string, v, lo, hi int) error {
		if v < lo || v > hi {
			return fault.Invalid(field, "must be between %d and %d, is %d", lo, hi, v)
		}
		return nil
	}
	checks := []error{
		between("sessions", p.Sessions, 1, 65536),
		between("reserve", p.Reserve, 0, max(0, p.Sessions-1)),
		between("perPrincipal", p.PerPrincipal, 1, p.Sessions),
		between("maxSessions", p.MaxSessions, 1, 1<<20),
		between("maxPerPrincipal", p.MaxPerPrincipal, 1, 1<<20),
		between("rangesPerSession", p.RangesPerSession, 1, 64),
		between("idleSeconds", int(p.Idle/time.Second), 1, 3600),
	}
	if p.Strategy > SmallestFirst {
		checks = append(checks, fault.Invalid("strategy", "must be ordered, smallest-first or shared"))
	}
	checks = append(checks, between("agingMinutes", int(p.Aging/time.Minute), 0, 60*24*30), between("pollBudget", p.PollBudget, 0, 1<<20))
	if p.AutoMax != 0 {
		checks = append(checks, between("sessionsMax", p.AutoMax, 1, 65536), between("sessionsMin", p.AutoMin, p.Reserve+1, p.AutoMax))
		if p.LinkRate == 0 {
			checks = append(checks, fault.Invalid("sessionsMax", "needs the bandwidth of the link: set it in the server's environment"))
		}
	}
	for i, w := range p.Weights {
		checks = append(checks, between("weights."+class.Class(i).String(), int(w), 1, 100))
	}
	if p.LinkRate < 0 {
		checks = append(checks, fault.Invalid("linkRate", "must not be negative"))
	}
	if p.MinRate < 0 || p.LinkRate > 0 && p.MinRate > p.LinkRate {
		checks = append(checks, fault.Invalid("minRate", "must be 0 or a rate the link of %d bytes per second can give, is %d", p.LinkRate, p.MinRate))
	}
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	return nil
}
