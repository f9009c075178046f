package downloads

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/ticket"
)

func newService(t *testing.T, seats int, state State) *Service {
	t.Helper()
	conf := Default(seats)
	conf.Policy.LinkRate = 10 << 20
	s, err := New(t.Context(), conf, clock.NewSystem(), state, ticket.New([]byte("a key of the installation")))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// bookFor asks for the object that whole asks for.
func bookFor(who, key, id string) Booking {
	return Booking{Principal: person(who), IdempotencyKey: key, Body: id, DownloadID: id}
}

func found(bytes int64) func(context.Context) (Object, error) {
	return func(context.Context) (Object, error) {
		return Object{ID: "repo/big@1", Repository: "repo", Path: "big", Digest: "sha256:0", Size: bytes}, nil
	}
}

func mustBook(t *testing.T, s *Service, ctx context.Context, b Booking) (api.Booking, bool) {
	t.Helper()
	out, made, err := s.Book(ctx, b, found(size))
	if err != nil {
		t.Fatalf("not booked: %v", err)
	}
	return out, made
}

func counts(s *Service) session.Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.Counts()
}

// A booking is the session of the GET with its id: it tells the place at once, takes the seat when its turn comes, and
// the GET that follows is served (D-2.14).
func TestBookingIsTheSession(t *testing.T) {
	run(t, 1, &memory{}, 0, func(ctx context.Context, s *Service) {
		first := mustServe(t, s, ctx, whole("ann", "a"))
		b, made := mustBook(t, s, ctx, bookFor("bob", "k", "b"))
		if !made || b.State != api.BookingQueued || !b.Known || b.Position != 1 || b.StartsAt == nil || b.Ticket == "" || b.LapsesAt == nil || b.Why == nil || b.Why.SeatsInUse != 1 {
			t.Fatalf("booked: made %v, %+v", made, b)
		}
		w := mustWait(t, s, ctx, whole("bob", "b"))
		if w.Wait.Position != 1 {
			t.Errorf("the GET is another session: %+v", w.Wait)
		}
		first.Sent(size, 0)
		first.Close(0, size, true)
		<-time.After(time.Second)
		if b, err := s.Booked(ctx, person("bob"), "b", ""); err != nil || b.State != api.BookingActive {
			t.Fatalf("its turn came: %+v, %v", b, err)
		}
		pass := mustServe(t, s, ctx, whole("bob", "b"))
		pass.Sent(size, 0)
		pass.Close(0, size, true)
		if b, err := s.Booked(ctx, person("bob"), "b", ""); err != nil || b.State != api.BookingFinished {
			t.Errorf("delivered: %+v, %v", b, err)
		}
		<-time.After(session.KeepGone + time.Second)
		if _, err := s.Booked(ctx, person("bob"), "b", ""); !fault.Is(err, fault.NotFound) {
			t.Errorf("long over: %v", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if l := s.bookings; len(l.byName)+len(l.byAsk)+len(l.bySession)+len(l.of)+len(l.due) != 0 {
			t.Errorf("kept: %+v", l)
		}
	})
}

// The same key answers the same, another body is refused, ids are unique per principal, and not yours is not found.
func TestBookingKeysAndIds(t *testing.T) {
	run(t, 1, &memory{}, 0, func(ctx context.Context, s *Service) {
		first, made := mustBook(t, s, ctx, bookFor("bob", "k", ""))
		again, madeAgain := mustBook(t, s, ctx, bookFor("bob", "k", ""))
		if !made || madeAgain || first.ID != again.ID || len(first.ID) != 26 || first.Ticket == "" {
			t.Errorf("%v %+v, then %v %+v", made, first, madeAgain, again)
		}
		other := bookFor("bob", "k", "x")
		if _, _, err := s.Book(ctx, other, found(size)); !fault.Is(err, fault.IdempotencyMismatch) {
			t.Errorf("another body: %v", err)
		}
		other.IdempotencyKey, other.DownloadID = "k2", first.ID
		if _, _, err := s.Book(ctx, other, found(size)); !fault.Is(err, fault.AlreadyExists) {
			t.Errorf("another booking of the id: %v", err)
		}
		eve, _ := mustBook(t, s, ctx, bookFor("eve", "k", first.ID))
		if eve.Ticket == first.Ticket {
			t.Error("two principals share a session by its id")
		}
		if _, err := s.Booked(ctx, person("mal"), first.ID, ""); !fault.Is(err, fault.NotFound) {
			t.Errorf("somebody else's: %v", err)
		}
		if err := s.CancelBooking(ctx, person("mal"), first.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("cancelled by somebody else: %v", err)
		}
		missing := fault.Missing("file")
		_, _, err := s.Book(ctx, bookFor("bob", "k3", ""), func(context.Context) (Object, error) { return Object{}, missing })
		if !errors.Is(err, missing) {
			t.Errorf("no such file: %v", err)
		}
	})
}

// Cancelling ends what runs, what is held and what waits, and changes nothing when repeated (D-2.13).
func TestBookingCancelled(t *testing.T) {
	run(t, 1, &memory{}, 0, func(ctx context.Context, s *Service) {
		mustBook(t, s, ctx, bookFor("bob", "k", "b"))
		pass := mustServe(t, s, ctx, whole("bob", "b"))
		sending, over := pass.Context(ctx)
		mustBook(t, s, ctx, bookFor("bob", "k2", "c"))
		<-time.After(time.Second)
		s.mu.Lock() // as a session near its seat has it
		h := &hold{wake: make(chan struct{}), most: time.Hour, door: true}
		c := whole("bob", "c").Key()
		s.held[c] = append(s.held[c], h)
		s.atDoor++
		s.apply(s.clock.Now(), session.Event{Kind: session.Hold, Key: c})
		s.mu.Unlock()
		held := make(chan error, 1)
		go func() {
			_, err := s.wait(ctx, session.Event{Kind: session.Request, Key: c}, h)
			held <- err
		}()
		synctest.Wait()
		for _, id := range []string{"c", "b", "b"} {
			if err := s.CancelBooking(ctx, person("bob"), id); err != nil {
				t.Fatal(err)
			}
		}
		<-sending.Done()
		over()
		pass.Close(0, 0, false)
		if err := <-held; !fault.Is(err, fault.Conflict) {
			t.Errorf("the held request: %v", err)
		}
		if b, err := s.Booked(ctx, person("bob"), "b", ""); err != nil || b.State != api.BookingCancelled {
			t.Errorf("cancelled: %+v, %v", b, err)
		}
		s.mu.Lock()
		open := len(s.open)
		s.mu.Unlock()
		if n := counts(s).Classes[0]; n.Active+n.Waiting+n.Paused+n.Held+open != 0 {
			t.Errorf("left: %+v and %d responses", n, open)
		}
		if b, made := mustBook(t, s, ctx, bookFor("bob", "k4", "b")); !made || b.State != api.BookingActive {
			t.Errorf("booked anew: %+v", b)
		}
	})
}

// Nothing starts before its notBefore, by whatever door it comes; a start past notAfter is told (D-2.14).
func TestBookingWindow(t *testing.T) {
	run(t, 1, &memory{}, 0, func(ctx context.Context, s *Service) {
		later := bookFor("bob", "k", "b")
		later.NotBefore = time.Now().Add(time.Hour)
		b, _ := mustBook(t, s, ctx, later)
		if b.State != api.BookingScheduled || b.Known || b.CheckAt.After(later.NotBefore) || b.LapsesAt == nil {
			t.Errorf("booked for later: %+v", b)
		}
		w := &Waiting{}
		if _, err := s.Admit(ctx, whole("bob", "b")); !errors.As(err, &w) || w.Fault.Reason != api.ReasonScheduled {
			t.Errorf("its bytes now: %v", err)
		}
		if n := counts(s).Sessions; n != 0 {
			t.Errorf("%d sessions although nothing may start", n)
		}
		<-time.After(time.Hour)
		if b, err := s.Booked(ctx, person("bob"), "b", ""); err != nil || b.State != api.BookingActive {
			t.Errorf("at its time: %+v, %v", b, err)
		}
		soon := bookFor("eve", "k", "e")
		soon.NotAfter = time.Now().Add(2 * time.Second)
		if b, _ := mustBook(t, s, ctx, soon); b.State != api.BookingQueued || !b.MissesNotAfter {
			t.Errorf("starts after the one before: %+v", b)
		}
		for i, bad := range []Booking{
			{NotBefore: time.Now().Add(32 * 24 * time.Hour)}, {NotAfter: time.Now().Add(-time.Second)}, {Offset: size}, {Class: "urgent"},
			{NotBefore: time.Now().Add(2 * time.Hour), NotAfter: time.Now().Add(time.Hour)},
		} {
			bad.Principal, bad.IdempotencyKey = person("bob"), "bad"+strconv.Itoa(i)
			if _, _, err := s.Book(ctx, bad, found(size)); !fault.Is(err, fault.InvalidInput) {
				t.Errorf("%+v: %v", bad, err)
			}
		}
	})
}

// Nobody follows: the booking lapses, whether it waits, is scheduled or needs no seat. Small objects need none.
func TestBookingLapses(t *testing.T) {
	run(t, 1, &memory{}, 0, func(ctx context.Context, s *Service) {
		pass := mustServe(t, s, ctx, whole("ann", "a"))
		mustBook(t, s, ctx, bookFor("bob", "1", "waits"))
		later := bookFor("bob", "2", "later")
		later.NotBefore = time.Now().Add(time.Minute)
		mustBook(t, s, ctx, later)
		b, _, err := s.Book(ctx, bookFor("bob", "3", "small"), found(1000))
		if err != nil || b.State != api.BookingActive || b.Admission != api.AdmissionPerRequest {
			t.Errorf("small: %+v, %v", b, err)
		}
		<-time.After(session.KeepGone + 2*time.Minute)
		for _, id := range []string{"waits", "later", "small"} {
			s.mu.Lock()
			state := "forgotten"
			if b := s.bookings.byName[digest(digest("bob"), digest(id))]; b != nil {
				state = b.Ended
			}
			s.mu.Unlock()
			if state != api.BookingLapsed && !(id == "waits" && state == "forgotten") {
				t.Errorf("%s: %q", id, state)
			}
		}
		pass.Close(0, 0, false)
	})
}

// Bookings are bounded (D-7.1).
func TestBookingsAreBounded(t *testing.T) {
	run(t, 1, &memory{}, 0, func(ctx context.Context, s *Service) {
		s.mu.Lock()
		s.conf.Policy.MaxPerPrincipal = 3
		s.mu.Unlock()
		for i := range 4 {
			_, _, err := s.Book(ctx, bookFor("bob", strconv.Itoa(i), "d"+strconv.Itoa(i)), found(1000))
			if (err != nil) != (i == 3) || i == 3 && fault.From(err).RetryAfter == 0 {
				t.Errorf("booking %d: %v", i, err)
			}
		}
	})
}

func TestAdviceOnSizes(t *testing.T) {
	run(t, 1, &memory{}, 0, func(ctx context.Context, s *Service) {
		pass := mustServe(t, s, ctx, whole("ann", "a"))
		for i := range 10 {
			r := whole("bob", strconv.Itoa(i))
			if i > 0 {
				r.ObjectID, r.Size, r.To = "repo/small@1", 20<<20, 20<<20
			} else {
				r.ObjectID, r.Size, r.To = "repo/huge@1", 20<<30, 20<<30
			}
			mustWait(t, s, ctx, r)
		}
		<-time.After(time.Second)
		if q := s.Queue(); q.SizeGini == nil || *q.SizeGini < 0.8 || !strings.Contains(q.Advice, "smallest-first") {
			t.Errorf("queue: %+v", q)
		}
		pass.Close(0, 0, false)
	})
}
