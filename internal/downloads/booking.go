package downloads

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"strings"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// Object is what a booking resolved to when it was made.
type Object struct {
	ID         string `json:"id"` // immutable, as in Request
	Repository string `json:"repository"`
	Path       string `json:"path"`
	Digest     string `json:"digest"`
	Size       int64  `json:"size"`
}

// Booking asks for a place in the queue ahead of the bytes: the session is the one that a GET of the object with the
// download id belongs to (D-2.14).
type Booking struct {
	Principal      identity.Principal
	IdempotencyKey string
	Body           string // what was asked, in one spelling: a repeated key must come with the same
	DownloadID     string // made by the client; empty: one is made
	Class          string // asked; empty for the highest allowed
	Ticket         string // the latest ticket the client holds, or empty
	Offset         int64  // first byte the client still wants
	NotBefore      time.Time
	NotAfter       time.Time
}

// bookAhead bounds how far ahead a download may be booked.
const bookAhead = 31 * 24 * time.Hour

// Book makes a booking, or answers a repeated Idempotency-Key with the booking it made; find looks the object up for a
// new one, authorization included. It blocks until the place is known, which is at the next tick. A booking with a
// notBefore stays out of the order until then and queues when it is followed afterwards: seats are not kept, and
// whoever waits was there first.
func (s *Service) Book(ctx context.Context, want Booking, find func(context.Context) (Object, error)) (out api.Booking, made bool, err error) {
	if b, err := s.repeated(want); b != nil || err != nil {
		if err != nil {
			return out, false, err
		}
		out, err = s.follow(b, want.Ticket)
		return out, false, err
	}
	object, err := find(ctx)
	if err != nil {
		return out, false, err
	}
	b, made, err := s.book(want, object)
	if err != nil {
		return out, false, err
	}
	next := s.nextTick()
	out, err = s.follow(b, want.Ticket)
	if err != nil {
		if made {
			s.unbook(b)
		}
		return out, false, err
	}
	if out.State == api.BookingQueued && !out.Known {
		select {
		case <-next:
			out, err = s.follow(b, "")
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return out, made, err
}

// Booked follows a booking: it counts as a poll, and takes the seat when one is there for it (D-2.14).
func (s *Service) Booked(_ context.Context, p identity.Principal, id, ticket string) (api.Booking, error) {
	s.mu.Lock()
	b := s.bookings.byName[digest(digest(p.ID), digest(id))]
	s.mu.Unlock()
	if b == nil {
		return api.Booking{}, fault.Missing("booking")
	}
	return s.follow(b, ticket)
}

// CancelBooking takes a booked download out, whatever its state, and ends its responses. Repeating it changes nothing.
func (s *Service) CancelBooking(_ context.Context, p identity.Principal, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bookings.byName[digest(digest(p.ID), digest(id))]
	if b == nil {
		return fault.Missing("booking")
	}
	if b.Ended != "" {
		return nil
	}
	s.bookings.end(b, api.BookingCancelled, s.clock.Wall())
	s.apply(s.clock.Now(), session.Event{Kind: session.Cancel, Key: b.Session})
	for _, h := range s.held[b.Session] {
		h.cancelled = true
	}
	s.wake(b.Session)
	for _, cut := range s.open[b.Session] {
		cut(errCancelled)
	}
	return nil
}

var errCancelled = fault.New(fault.Conflict, "the download was cancelled")

// repeated finds the booking that an Idempotency-Key made.
func (s *Service) repeated(want Booking) (*booking, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repeat(want)
}

func (s *Service) repeat(want Booking) (*booking, error) {
	b := s.bookings.byAsk[digest(digest(want.Principal.ID), digest(want.IdempotencyKey))]
	if b != nil && b.Body != digest(want.Body) {
		return nil, fault.New(fault.IdempotencyMismatch, "this Idempotency-Key was used for another booking; use a new one")
	}
	return b, nil
}

// book remembers a new booking, within the bounds of sessions (D-7.1).
func (s *Service) book(want Booking, object Object) (b *booking, made bool, err error) {
	r := Request{Principal: want.Principal, ObjectID: object.ID, DownloadID: want.DownloadID, Class: want.Class}
	applied, err := r.class()
	if err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	wall := s.clock.Wall()
	switch {
	case want.Offset < 0 || want.Offset >= max(object.Size, 1):
		return nil, false, fault.Invalid("offset", "must be between 0 and the object's last byte, %d", max(object.Size, 1)-1)
	case want.NotBefore.After(wall.Add(bookAhead)):
		return nil, false, fault.Invalid("notBefore", "must be within %d days", bookAhead/(24*time.Hour))
	case !want.NotAfter.IsZero() && (want.NotAfter.Before(want.NotBefore) || want.NotAfter.Before(wall)):
		return nil, false, fault.Invalid("notAfter", "must lie ahead, and not before notBefore")
	}
	if b, err := s.repeat(want); b != nil || err != nil {
		return b, false, err // another request with the key was faster
	}
	if r.DownloadID == "" {
		r.DownloadID = newDownloadID()
	}
	b = &booking{
		ID: r.DownloadID, Principal: digest(want.Principal.ID), Session: r.Key(), Body: digest(want.Body), Object: object,
		Idempotent: digest(digest(want.Principal.ID), digest(want.IdempotencyKey)), Offset: want.Offset, Class: applied,
		NotBefore: want.NotBefore, NotAfter: want.NotAfter, CreatedAt: wall.Truncate(time.Millisecond),
	}
	if old := s.bookings.byName[b.name()]; old != nil && old.Ended == "" {
		return nil, false, fault.New(fault.AlreadyExists, "a booking with this id is there already")
	}
	p := s.conf.Policy
	if len(s.bookings.byName) >= p.MaxSessions || s.bookings.of[b.Principal] >= p.MaxPerPrincipal {
		s.meters.refused.WithLabelValues("bookings").Inc()
		return nil, false, fault.Later(fault.Busy, api.ReasonSessions, bookLater, "too many downloads are booked; come back later")
	}
	s.bookings.add(b)
	if b.NotBefore.After(wall) {
		s.bookings.expire(b, b.NotBefore.Add(session.KeepGone))
	}
	return b, true, nil
}

const bookLater = 30 * time.Second

// unbook takes back a booking that got no place.
func (s *Service) unbook(b *booking) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bookings.end(b, api.BookingCancelled, s.clock.Wall())
	s.bookings.drop(b)
}

func newDownloadID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}

// event is the GET that a booking stands for.
func (b *booking) event() session.Event {
	return session.Event{
		Kind: session.Request, Key: b.Session, Principal: b.Principal, Class: b.Class, Identified: true,
		Size: b.Object.Size, From: b.Offset, To: b.Object.Size,
	}
}

// follow polls for a booking as its client would, and says where it stands.
func (s *Service) follow(b *booking, ticket string) (api.Booking, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, wall := s.clock.Now(), s.clock.Wall().Truncate(time.Millisecond)
	e := b.event()
	s.present(&e, ticket)
	out := api.Booking{
		ID: b.ID, Repository: b.Object.Repository, Path: b.Object.Path, Digest: b.Object.Digest, Size: b.Object.Size,
		Admission: api.AdmissionSessions, CreatedAt: b.CreatedAt,
		Wait: api.Wait{Class: b.Class.String(), CheckAt: wall.Add(session.MaxCheck), CheckInMillis: session.MaxCheck.Milliseconds()},
	}
	out.NotBefore, out.NotAfter = orNil(b.NotBefore), orNil(b.NotAfter)
	if b.Ended != "" {
		out.State = b.Ended
		return out, nil
	}
	switch {
	case s.machine.Active(e.Key):
		out.State = api.BookingActive
	case s.draining:
		return out, s.turnAway(now, e)
	case b.NotBefore.After(wall):
		out.State = api.BookingScheduled
		check := min(b.NotBefore.Sub(wall), session.MaxCheck)
		out.CheckAt, out.CheckInMillis = wall.Add(check), check.Milliseconds()
		out.LapsesAt = orNil(b.EndsAt)
	case s.perRequest(e):
		out.State, out.Admission = api.BookingActive, api.AdmissionPerRequest
		s.bookings.expire(b, wall.Add(session.KeepGone))
		out.LapsesAt = orNil(b.EndsAt)
	default:
		b.EndsAt = time.Time{}
		if err := s.poll(now, b, e, &out); err != nil {
			return out, err
		}
	}
	if est, known := s.machine.Estimate(now, e.Key); known || s.machine.Active(e.Key) {
		out.Class, out.Ticket = est.Class.String(), s.ticket(e.Key, est.Arrival, s.clock.Wall())
	}
	out.MissesNotAfter = s.misses(b, out, wall)
	return out, nil
}

// misses reports whether a download starts after the client's deadline, as far as anybody knows.
func (s *Service) misses(b *booking, out api.Booking, wall time.Time) bool {
	if b.NotAfter.IsZero() || out.State == api.BookingActive {
		return false
	}
	return wall.After(b.NotAfter) || out.StartsAt != nil && out.StartsAt.After(b.NotAfter)
}

// poll asks the machine and renders its answer.
func (s *Service) poll(now clock.Mono, b *booking, e session.Event, out *api.Booking) error {
	switch answer := s.apply(now, e); answer.Kind {
	case session.Refuse:
		s.meters.refused.WithLabelValues(answer.Bound).Inc()
		return fault.Later(fault.Busy, api.ReasonSessions, answer.RetryAfter, "the download queue is full; come back later")
	case session.Serve: // the seat is taken; its bytes are fetched by GETs of their own
		s.apply(now, session.Event{Kind: session.Finish, Key: e.Key})
		out.State = api.BookingActive
	case session.Surplus:
		out.State = api.BookingActive
	default:
		w := s.waiting(now, e.Key)
		out.State, out.Wait = api.BookingQueued, w.Wait
		lapses := w.Wait.CheckAt.Add(session.NoShowSlack)
		out.LapsesAt = &lapses
		out.Why = s.why(now, e.Key)
	}
	return nil
}

// tooEarly keeps a booked download from starting before its notBefore, and lets it start as it was booked afterwards.
// The caller holds the lock.
func (s *Service) tooEarly(e *session.Event) error {
	b := s.bookings.bySession[e.Key]
	if b == nil || b.Ended != "" {
		return nil
	}
	wall := s.clock.Wall()
	if !b.NotBefore.After(wall) {
		b.EndsAt = time.Time{} // from here its session counts
		e.Class = max(e.Class, b.Class)
		return nil
	}
	check := min(b.NotBefore.Sub(wall), session.MaxCheck)
	return &Waiting{
		Fault: fault.Later(fault.Busy, api.ReasonScheduled, check, "booked for later; it queues from its notBefore on"),
		Wait:  api.Wait{CheckAt: wall.Add(check).Truncate(time.Millisecond), CheckInMillis: check.Milliseconds(), Class: max(e.Class, b.Class).String()},
	}
}

// Why explains the wait of a request's session; nil when it does not wait (D-11.1).
func (s *Service) Why(k session.Key) *api.Why {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why(s.clock.Now(), k)
}

func (s *Service) why(now clock.Mono, k session.Key) *api.Why {
	w, ok := s.machine.Why(now, k)
	if !ok {
		return nil
	}
	out := &api.Why{
		Seats: w.Seats, SeatsInUse: w.Busy, Reserve: w.Reserve, OwnSeats: w.Own, OwnShare: w.Share, WindowClosed: w.Closed,
		Yielded: w.Yielded, AgedSeconds: w.Aged.Truncate(time.Millisecond).Seconds(), Ahead: []api.WhyAhead{},
	}
	for c, n := range w.Ahead {
		if n > 0 {
			out.Ahead = append(out.Ahead, api.WhyAhead{Class: class.Class(c).String(), Sessions: n})
		}
	}
	if w.Closed && w.Opens != 0 {
		at := s.clock.Wall().Add(w.Opens.Sub(now)).Truncate(time.Second)
		out.WindowOpensAt = &at
	}
	return out
}

func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
