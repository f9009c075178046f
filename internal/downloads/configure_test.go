package downloads

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/core/window"
	"github.com/roadstead/roadstead/internal/fault"
)

// configure changes the running settings.
func configure(t *testing.T, s *Service, change func(*Settings)) {
	t.Helper()
	s.mu.Lock()
	next := s.conf.Settings
	s.mu.Unlock()
	change(&next)
	if err := s.Configure(next); err != nil {
		t.Fatal(err)
	}
}

// admission is one Admit that is under way.
type admission struct {
	pass *Pass
	err  error
}

func admit(ctx context.Context, s *Service, r Request) chan admission {
	done := make(chan admission, 1)
	go func() {
		p, err := s.Admit(ctx, r)
		done <- admission{p, err}
	}()
	synctest.Wait()
	return done
}

// A held request leaves for per-request admission when the strategy becomes shared or the threshold rises above its
// object, and its session waits no longer; who has a seat keeps it (D-2.4, D-3).
func TestHeldRequestsLeave(t *testing.T) {
	for name, change := range map[string]func(*Settings){
		"shared":    func(n *Settings) { n.Shared = true },
		"threshold": func(n *Settings) { n.SessionMinBytes = size },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, 1, &memory{}, 0, func(ctx context.Context, s *Service) {
				first := mustServe(t, s, ctx, whole("ann", "a"))
				held := admit(ctx, s, whole("bob", ""))
				if s.holding != 1 {
					t.Fatalf("%d held", s.holding)
				}
				began := time.Now()
				configure(t, s, change)
				got := <-held
				if got.err != nil || !got.pass.small || time.Since(began) > time.Second {
					t.Fatalf("the held request got %+v, %v after %v", got.pass, got.err, time.Since(began))
				}
				if q := s.Queue(); q.Classes[0].Waiting != 0 || q.Classes[0].Active != 1 || q.Classes[0].Held != 0 {
					t.Errorf("classes %+v", q.Classes[0])
				}
				// The next range of the active session passes as one of it.
				next := mustServe(t, s, ctx, whole("ann", "a"))
				if next.small || next.ticket == "" {
					t.Error("the active session was cut")
				}
				next.Close(0, 0, false)
				// A client with an id that polls is admitted by itself too, and its place is given up.
				poll := mustServe(t, s, ctx, whole("cleo", "c"))
				if !poll.small {
					t.Error("a poll still takes a seat")
				}
				for _, p := range []*Pass{poll, got.pass, first} {
					p.Close(0, size, true)
				}
			})
		})
	}
}

// Who waits for per-request admission when the strategy goes back to seats waits for a seat from then on (D-3).
func TestBackToSeats(t *testing.T) {
	run(t, 2, &memory{}, 0, func(ctx context.Context, s *Service) {
		configure(t, s, func(n *Settings) { n.Shared = true })
		if q := s.Queue(); q.Strategy != api.StrategyShared || q.Admission != api.AdmissionPerRequest {
			t.Errorf("the queue says %s, %s", q.Strategy, q.Admission)
		}
		var passes []*Pass
		for range s.conf.Small.ActivePerPrincipal {
			passes = append(passes, mustServe(t, s, ctx, whole("ann", "")))
		}
		waits := admit(ctx, s, whole("ann", "later"))
		configure(t, s, func(n *Settings) { n.Shared, n.Policy.Strategy = false, session.SmallestFirst })
		got := <-waits
		if got.err != nil || got.pass.small {
			t.Fatalf("got %+v, %v, want a seat", got.pass, got.err)
		}
		if q := s.Queue(); q.Strategy != api.StrategySmallestFirst || q.SeatsInUse != 1 {
			t.Errorf("the queue says %s with %d seats in use", q.Strategy, q.SeatsInUse)
		}
		for _, p := range append(passes, got.pass) {
			p.Close(0, size, true)
		}
	})
}

// More seats are given to those who wait; fewer take none away (D-3).
func TestSeatsChange(t *testing.T) {
	run(t, 1, &memory{}, 0, func(ctx context.Context, s *Service) {
		first := mustServe(t, s, ctx, whole("ann", "a"))
		held := admit(ctx, s, whole("bob", ""))
		configure(t, s, func(n *Settings) { n.Policy.Sessions, n.Policy.PerPrincipal = 2, 2 })
		second := <-held
		if second.err != nil {
			t.Fatal(second.err)
		}
		configure(t, s, func(n *Settings) { n.Policy.Sessions, n.Policy.PerPrincipal = 1, 1 })
		mustWait(t, s, ctx, whole("cleo", "c"))
		mustServe(t, s, ctx, whole("bob", "")).Close(0, 0, false)
		if q := s.Queue(); q.Seats != 1 || q.SeatsInUse != 2 {
			t.Errorf("%d of %d seats in use", q.SeatsInUse, q.Seats)
		}
		first.Close(0, size, true)
		second.pass.Close(0, size, true)
	})
}

// A class with hours starts inside them only; taking the hours away opens it at once (D-5.2).
func TestHours(t *testing.T) {
	run(t, 1, &memory{}, 0, func(ctx context.Context, s *Service) {
		opens := time.Now().UTC().Add(10 * time.Minute)
		rule, err := window.ParseRule("w", nil, opens.Format("15:04"), opens.Add(time.Hour).Format("15:04"))
		if err != nil {
			t.Fatal(err)
		}
		hours := window.New(time.UTC, rule)
		configure(t, s, func(n *Settings) { n.Windows[class.Interactive].Hours = &hours })
		<-time.After(time.Second)
		mustWait(t, s, ctx, whole("ann", "a"))
		<-time.After(2 * time.Second)
		w := mustWait(t, s, ctx, whole("ann", "a"))
		if w.Wait.StartsAt == nil || w.Wait.StartsAt.Sub(opens).Abs() > 2*time.Minute {
			t.Errorf("start %v is told, the hours open at %v", w.Wait.StartsAt, opens)
		}
		<-time.After(time.Until(opens) + 2*time.Second)
		mustServe(t, s, ctx, whole("bob", "b")).Close(0, size, true)
	})
}

// Settings that cannot work change nothing.
func TestConfigureRefuses(t *testing.T) {
	run(t, 4, &memory{}, 0, func(_ context.Context, s *Service) {
		was := s.conf.Settings
		for field, change := range map[string]func(*Settings){
			"reserve":         func(n *Settings) { n.Policy.Reserve = 4 },
			"maxSessions":     func(n *Settings) { n.Policy.MaxSessions = 10 },
			"sessionMinBytes": func(n *Settings) { n.SessionMinBytes = -1 },
			"windows.release.outsideShare": func(n *Settings) {
				n.Windows[class.Release].Outside = 2
			},
		} {
			next := was
			change(&next)
			if f := fault.From(s.Configure(next)); f.Code != fault.InvalidInput || f.Details[0].Field != field {
				t.Errorf("%s: %v", field, f)
			}
			if s.conf.Settings != was || s.machine.Policy() != was.Policy {
				t.Errorf("%s: refused and yet applied", field)
			}
		}
	})
}
