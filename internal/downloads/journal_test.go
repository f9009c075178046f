package downloads

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/core/session"
)

// paper is a Journal in memory, whose database may be away.
type paper struct {
	mu       sync.Mutex
	alive    time.Time
	places   map[session.Key]Place
	bookings map[session.Key]BookingRow
	away     bool
	writes   int
}

func newPaper() *paper {
	return &paper{places: map[session.Key]Place{}, bookings: map[session.Key]BookingRow{}}
}

func (p *paper) SaveJournal(_ context.Context, b Batch) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away {
		return errors.New("away")
	}
	p.writes++
	p.alive = b.Alive
	for _, r := range b.Places {
		p.places[r.Key] = r
	}
	for _, r := range b.Bookings {
		p.bookings[r.Key] = r
	}
	return nil
}

func (p *paper) kept() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.places)
}

func (p *paper) LoadJournal(context.Context) (Batch, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Batch{p.alive, slices.Collect(maps.Values(p.places)), slices.Collect(maps.Values(p.bookings))}, nil
}

func (p *paper) SweepJournal(context.Context, time.Time) error { return nil }

func (p *paper) ClearJournal(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.places)
	clear(p.bookings)
	return nil
}

// lives runs a service over the journal until the test function returns, and lets it end as a crash does: what was not
// written by then is lost.
func lives(t *testing.T, p *paper, test func(ctx context.Context, s *Service)) {
	t.Helper()
	s := newService(t, 1, &memory{})
	if err := s.Resume(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	test(ctx, s)
	p.mu.Lock()
	away := p.away
	p.away = true
	p.mu.Unlock()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	p.mu.Lock()
	p.away = away
	p.mu.Unlock()
}

// stock is a request of a tool without a download id, from an address of its own.
func stock(n int) Request {
	r := whole("mirror"+strconv.Itoa(n), "")
	r.ClientAddr = "192.0.2." + strconv.Itoa(n)
	return r
}

// After a crash everybody has its old place, tools without an id included, in whatever order they come back (D-2.12).
func TestJournalKeepsPlacesWithoutTickets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaper()
		const n = 20
		lives(t, p, func(ctx context.Context, s *Service) {
			s.mu.Lock()
			s.conf.HoldLimit = 0
			s.mu.Unlock()
			first := mustServe(t, s, ctx, whole("ann", "a"))
			for i := range n {
				mustWait(t, s, ctx, stock(i))
			}
			<-time.After(3 * time.Second)
			first.Close(0, 10, true)
			<-time.After(3 * time.Second)
		})
		<-time.After(2 * time.Minute)
		lives(t, p, func(ctx context.Context, s *Service) {
			s.mu.Lock()
			s.conf.HoldLimit = 0
			s.mu.Unlock()
			mustWait(t, s, ctx, whole("ann", "a"))
			for i := range n {
				mustWait(t, s, ctx, stock(n-1-i))
			}
			<-time.After(3 * time.Second)
			pass := mustServe(t, s, ctx, whole("ann", "a"))
			<-time.After(time.Second)
			for i := range n {
				if w := mustWait(t, s, ctx, stock(i)); w.Wait.Position != i+1 {
					t.Errorf("client %d is now at place %d", i+1, w.Wait.Position)
				}
			}
			pass.Close(0, 0, false)
		})
	})
}

// A database that is away stops nothing: the journal falls behind, says so, and catches up.
func TestJournalFallsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaper()
		p.away = true
		lives(t, p, func(ctx context.Context, s *Service) {
			pass := mustServe(t, s, ctx, whole("ann", "a"))
			for i := range 100 {
				mustWait(t, s, ctx, whole("bob", strconv.Itoa(i)))
			}
			<-time.After(journalLate + 2*time.Second)
			if j := s.Journal(); !j.Late() || !j.Failing || j.Unsaved != 101 {
				t.Errorf("behind: %+v", j)
			}
			p.mu.Lock()
			p.away = false
			p.mu.Unlock()
			<-time.After(3 * time.Second)
			if j := s.Journal(); j.Late() || j.Failing || j.Unsaved != 0 || p.kept() != 101 {
				t.Errorf("caught up: %+v, %d places", j, p.kept())
			}
			p.mu.Lock()
			p.writes = 0
			p.mu.Unlock()
			<-time.After(3 * time.Second)
			p.mu.Lock()
			if p.writes != 0 {
				t.Errorf("%d transactions although nothing changed", p.writes)
			}
			p.mu.Unlock()
			pass.Close(0, 0, false)
		})
	})
}

// A journal that nobody wrote for a quarter of an hour is of no use: whoever waited has gone (D-8.2).
func TestOldJournalIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaper()
		lives(t, p, func(ctx context.Context, s *Service) {
			mustServe(t, s, ctx, whole("ann", "a")).Close(0, 0, false)
			mustWait(t, s, ctx, whole("bob", "b"))
			<-time.After(3 * time.Second)
		})
		<-time.After(16 * time.Minute)
		lives(t, p, func(_ context.Context, s *Service) {
			if n := counts(s).Sessions; n != 0 || p.kept() != 0 {
				t.Errorf("%d sessions came back, %d are kept", n, p.kept())
			}
		})
	})
}

// A booking is found under its id after a crash, at its place.
func TestBookingSurvivesACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaper()
		var was api.Booking
		lives(t, p, func(ctx context.Context, s *Service) {
			mustServe(t, s, ctx, whole("ann", "a")).Close(0, 0, false)
			was, _ = mustBook(t, s, ctx, bookFor("bob", "key", "b"))
			<-time.After(3 * time.Second)
		})
		lives(t, p, func(ctx context.Context, s *Service) {
			again, made := mustBook(t, s, ctx, bookFor("bob", "key", "b"))
			if made || again.ID != was.ID || again.State != api.BookingQueued {
				t.Errorf("after the crash: %+v", again)
			}
			<-time.After(4 * time.Second)
			is, err := s.Booked(ctx, person("bob"), was.ID, "")
			if err != nil || is.State != api.BookingActive {
				t.Errorf("its turn came: %+v, %v", is, err)
			}
		})
	})
}
