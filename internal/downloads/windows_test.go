package downloads

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/window"
	"github.com/roadstead/roadstead/internal/governor"
	"github.com/roadstead/roadstead/internal/ticket"
)

// setClock is a clock whose wall time somebody sets.
type setClock struct {
	clock.System
	ahead atomic.Int64
}

func (c *setClock) Wall() time.Time { return c.System.Wall().Add(time.Duration(c.ahead.Load())) }

// nights is a window of bulk from 22 to 6 o'clock in Berlin.
func nights(t *testing.T, outside float64) (w [class.Count]Window) {
	t.Helper()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	rule, err := window.ParseRule("open", nil, "22:00", "06:00")
	if err != nil {
		t.Fatal(err)
	}
	hours := window.New(berlin, rule)
	w[class.Bulk] = Window{Hours: &hours, Outside: outside}
	return w
}

// windowed gives a running queue with night hours for bulk, from an instant on.
func windowed(t *testing.T, from string, outside float64, test func(ctx context.Context, s *Service, c *setClock)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		at, err := time.Parse(time.RFC3339, from)
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Until(at))
		c := &setClock{System: clock.NewSystem()}
		conf := Default(2)
		conf.Policy.LinkRate, conf.Windows = 10<<20, nights(t, outside)
		s, err := New(t.Context(), conf, c, &memory{}, ticket.New([]byte("a key of the installation")))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		test(ctx, s, c)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// bulk asks for a download of the class that has hours.
func bulk(download string) Request {
	r := whole("ann", download)
	r.Class = "bulk"
	return r
}

// until lets time go by up to a second after a wall time.
func until(t *testing.T, at string) {
	t.Helper()
	when, err := time.Parse(time.RFC3339, at)
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Until(when.Add(time.Second)))
}

// The night in which summer time begins is an hour shorter: 22:00 CET to 06:00 CEST. Who waits is told when the window
// opens, and who began inside goes on after the close (D-5.2).
func TestWindowsOnANightOfSevenHours(t *testing.T) {
	windowed(t, "2000-03-25T20:55:00Z", 0, func(ctx context.Context, s *Service, _ *setClock) {
		mustWait(t, s, ctx, bulk("a"))
		<-time.After(2 * time.Second)
		if w := mustWait(t, s, ctx, bulk("a")); !w.Wait.Known || w.Wait.StartsAt.Format(time.RFC3339) != "2000-03-25T21:00:00Z" {
			t.Errorf("told %+v, want a start when the window opens", w.Wait)
		}
		until(t, "2000-03-25T21:00:00Z")
		mustServe(t, s, ctx, bulk("a")).Close(0, size, true)
		until(t, "2000-03-26T03:59:55Z")
		inside := mustServe(t, s, ctx, bulk("b"))
		until(t, "2000-03-26T04:00:00Z")
		if l := inside.Sent(1, 0); l.Outside {
			t.Errorf("who began inside is on the lane %+v after the close", l)
		}
		mustWait(t, s, ctx, bulk("c"))
		mustServe(t, s, ctx, bulk("b")).Close(0, size, true)
		inside.Close(0, 0, false)
		<-time.After(2 * time.Second)
		if w := mustWait(t, s, ctx, bulk("c")); !w.Wait.Known || w.Wait.StartsAt.Format(time.RFC3339) != "2000-03-26T20:00:00Z" {
			t.Errorf("told %+v, want a start at 22 o'clock summer time", w.Wait)
		}
	})
}

// Hours follow the wall clock when it is set, at the next tick; waits don't (D-5.2, D-7.3).
func TestWindowsFollowTheWallClock(t *testing.T) {
	windowed(t, "2000-02-01T12:00:00Z", 0, func(ctx context.Context, s *Service, c *setClock) {
		mustWait(t, s, ctx, bulk("a"))
		c.ahead.Store(int64(10 * time.Hour)) // 22:00 UTC, 23 o'clock in Berlin
		<-time.After(time.Second)
		mustServe(t, s, ctx, bulk("a")).Close(0, size, true)
		c.ahead.Store(0)
		<-time.After(time.Second)
		mustWait(t, s, ctx, bulk("b"))
		next := s.conf.Settings
		next.Windows = [class.Count]Window{}
		if err := s.Configure(next); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		mustServe(t, s, ctx, bulk("b")).Close(0, size, true)
	})
}

// With an outside share a class starts outside its hours too, on that share, until the window opens (D-5.2).
func TestOutsideShareUntilTheWindowOpens(t *testing.T) {
	windowed(t, "2000-02-01T20:59:30Z", 0.1, func(ctx context.Context, s *Service, _ *setClock) {
		p := mustServe(t, s, ctx, bulk("a"))
		defer p.Close(0, 0, false)
		outside := governor.Lane{Outside: true, Class: class.Bulk}
		if p.Lane() != outside || p.Sent(1, 0) != outside {
			t.Errorf("begins on the lane %+v, want the outside share", p.Lane())
		}
		until(t, "2000-02-01T21:00:00Z")
		if l := p.Sent(1, 0); l.Outside {
			t.Errorf("still on the lane %+v inside the window", l)
		}
	})
}
