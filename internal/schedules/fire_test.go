package schedules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
)

// A weekly schedule fires each week, although the server restarts every six hours and its leader changes each time (R02).
func TestWeeklyThroughRestarts(t *testing.T) {
	m, h := newMemory(), &hands{wall: berlin("2026-03-02 12:00")}
	put(t, service(t, m, h), "weekly", plan("0 9 * * MON", "Europe/Berlin"), 0)
	for range 30 * 4 {
		a, b := service(t, m, h), service(t, m, h) // two processes, new ones each time
		for range 36 {
			h.pass(10 * time.Minute)
			var both sync.WaitGroup
			for _, s := range []*Service{a, b} {
				both.Go(func() {
					if err := s.Fire(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			both.Wait()
		}
	}
	want := []string{"03-09 09:00", "03-16 09:00", "03-23 09:00", "03-30 09:00"}
	if got := m.made(berlin("2026-03-02 12:00").Location()); !slices.Equal(got, want) || len(m.order) != 4 {
		t.Errorf("fired %v in %d submits", got, len(m.order))
	}
}

// Pausing for three days, changing the time and changing the zone fire nothing by themselves, and the next fire is by the
// new rule from now (R25).
func TestNothingFiresOnTheEdit(t *testing.T) {
	m, h := newMemory(), &hands{wall: berlin("2026-06-01 12:00")}
	s := service(t, m, h)
	zone := h.wall.Location()
	put(t, s, "daily", plan("30 13 * * *", "Europe/Berlin"), 0)
	step(t, s, h, 6*24, 10*time.Minute)
	if _, err := s.Pause(t.Context(), ann(), "", "daily", true); err != nil {
		t.Fatal(err)
	}
	step(t, s, h, 3*24*6, 10*time.Minute)
	d, err := s.Pause(t.Context(), ann(), "", "daily", false)
	if err != nil || d.Instant.In(zone).Format("01-02 15:04") != "06-05 13:30" {
		t.Fatalf("resumed: %+v, %v", d, err)
	}
	step(t, s, h, 1, 20*time.Minute)
	d = put(t, s, "daily", plan("0 16 * * *", "Europe/Berlin"), 3)
	if d.Instant.In(zone).Format("01-02 15:04") != "06-05 16:00" {
		t.Fatalf("new time: %s", d.Instant)
	}
	step(t, s, h, 6*6, 10*time.Minute)
	d = put(t, s, "daily", plan("0 16 * * *", "America/New_York"), 4)
	if d.Instant.In(zone).Format("01-02 15:04") != "06-05 22:00" {
		t.Fatalf("new zone: %s", d.Instant)
	}
	step(t, s, h, 6*24, 10*time.Minute)
	want := []string{"06-01 13:30", "06-05 16:00", "06-05 22:00"}
	if got := m.made(zone); !slices.Equal(got, want) {
		t.Errorf("fired %v", got)
	}
	if len(m.audit) != 5 || m.audit[1].Action != "schedule.paused" || m.audit[4].Action != "schedule.changed" {
		t.Errorf("audit %+v", m.audit)
	}
}

// A change of the template alone keeps the next fire, which is not lost.
func TestOtherTemplateSameTimes(t *testing.T) {
	m, h := newMemory(), &hands{wall: berlin("2026-06-01 12:00")}
	s := service(t, m, h)
	was := put(t, s, "daily", plan("30 13 * * *", "Europe/Berlin"), 0)
	h.pass(91 * time.Minute)
	p := plan("30 13 * * *", "Europe/Berlin")
	p.Template = []byte(`{"pool":"other","slots":1}`)
	if d := put(t, s, "daily", p, 1); !d.Instant.Equal(was.Instant) || d.Shape.Pool != "other" {
		t.Errorf("%+v", d)
	}
	step(t, s, h, 1, 0)
	if len(m.runs) != 1 {
		t.Errorf("%d runs", len(m.runs))
	}
}

// What was due while nobody looked: left out, the latest, or the latest few within an age (R25: only as the schedule asks).
func TestCatchUp(t *testing.T) {
	for _, c := range []struct {
		policy CatchUp
		want   []string
	}{
		{CatchUp{}, nil},
		{CatchUp{Policy: Last}, []string{"06-04 13:30"}},
		{CatchUp{Policy: All, Max: 2}, []string{"06-03 13:30", "06-04 13:30"}},
		{CatchUp{Policy: All, Max: 100}, []string{"06-01 13:30", "06-02 13:30", "06-03 13:30", "06-04 13:30"}},
		{CatchUp{Policy: All, Max: 100, MaxAge: 25 * time.Hour}, []string{"06-04 13:30"}},
		{CatchUp{Policy: Last, MaxAge: time.Hour}, nil},
	} {
		m, h := newMemory(), &hands{wall: berlin("2026-06-01 12:00")}
		s := service(t, m, h)
		p := plan("30 13 * * *", "Europe/Berlin")
		p.CatchUp = c.policy
		d := put(t, s, "daily", p, 0)
		h.set(berlin("2026-06-05 12:00"))
		step(t, s, h, 3, time.Minute)
		if got := m.made(berlin("2026-06-01 12:00").Location()); !slices.Equal(got, c.want) {
			t.Errorf("%+v: fired %v", c.policy, got)
		}
		first := m.fires[Fire{Schedule: d.ID, Instant: d.Instant}.Key()]
		if len(c.want) < 4 && (first.State != MissedOut || !strings.Contains(first.Reason, "catch-up")) {
			t.Errorf("%+v: the first is %+v", c.policy, first)
		}
		if got := m.schedules[d.ID].Instant; !got.Equal(berlin("2026-06-05 13:30")) {
			t.Errorf("%+v: next %s", c.policy, got)
		}
	}
}

// A short stop is no miss: a fire up to the grace late is made under every policy, once.
func TestWithinTheGrace(t *testing.T) {
	m, h := newMemory(), &hands{wall: berlin("2026-06-01 12:00")}
	s := service(t, m, h)
	put(t, s, "often", plan("* * * * *", "Europe/Berlin"), 0)
	put(t, s, "daily", plan("1 12 * * *", "Europe/Berlin"), 0)
	step(t, s, h, 1, 4*time.Minute)
	if got := m.made(h.wall.Location()); !slices.Equal(got, []string{"06-01 12:01", "06-01 12:04"}) {
		t.Errorf("fired %v", got)
	}
}

// A clock that is set, by years and by hours, in both directions, makes no storm, repeats no instant, and stops nothing:
// the next tick goes on by the new time (R26).
func TestWallClockJumps(t *testing.T) {
	const many = 10
	zone := berlin("2026-06-01 12:00").Location()
	for _, c := range []struct {
		name string
		jump time.Duration
		want []string // of the three hours after the jump
	}{
		{"nine years back", -9 * 365 * 24 * time.Hour, []string{"06-04 01:00", "06-04 02:00", "06-04 03:00"}},
		{"an hour back", -time.Hour, []string{"06-02 01:00", "06-02 02:00"}}, // 00:00 comes again, and is not made again
		{"an hour forward", time.Hour, []string{"06-02 02:00", "06-02 03:00", "06-02 04:00"}},
		{"forty days forward", 40 * 24 * time.Hour, []string{"07-12 01:00", "07-12 02:00", "07-12 03:00"}},
		{"a leap second", -time.Second, []string{"06-02 01:00", "06-02 02:00", "06-02 03:00"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, h := newMemory(), &hands{wall: berlin("2026-06-02 00:00").Add(-time.Minute)}
				s := service(t, m, h)
				for n := range many {
					put(t, s, fmt.Sprintf("hourly-%d", n), plan("@hourly", "Europe/Berlin"), 0)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- s.Run(ctx) }()
				tick := func(d time.Duration) {
					for range d / time.Second {
						<-time.After(time.Second)
						h.pass(time.Second)
					}
					synctest.Wait()
				}
				tick(30 * time.Minute)
				before := len(m.order)
				h.set(h.Wall().Add(c.jump))
				tick(3 * time.Second)
				if n := len(m.order) - before; n > many {
					t.Errorf("%d submits in the ticks after the jump", n)
				}
				tick(3 * time.Hour)
				got := map[string]int{}
				for _, f := range m.order[before:] {
					got[f.Instant.In(zone).Format("01-02 15:04")]++
				}
				for _, at := range c.want {
					if got[at] != many {
						t.Errorf("%d fires at %s; %v", got[at], at, got)
					}
				}
				if len(got) != len(c.want) || before != many {
					t.Errorf("fired at %v; %d before the jump", got, before)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A crash between the claim and the submit, or between the submit and its answer, loses no fire and makes no second Run
// (R02, R-2.4).
func TestCrashBetweenClaimAndSubmit(t *testing.T) {
	m, h := newMemory(), &hands{wall: berlin("2026-06-01 12:00")}
	s := service(t, m, h)
	d := put(t, s, "daily", plan("30 13 * * *", "Europe/Berlin"), 0)
	h.pass(90 * time.Minute)
	claimed, err := m.ClaimFires(t.Context(), []Claim{s.claim(m.schedules[d.ID], s.now())})
	if err != nil || len(claimed) != 1 {
		t.Fatal(claimed, err)
	}
	step(t, service(t, m, h), h, 1, time.Second)
	if len(m.order) != 0 {
		t.Error("submitted while its claimer may still do it")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	s.submit(gone, claimed[0]) // stops before
	if run, err := m.SubmitScheduled(t.Context(), claimed[0]); err != nil || run == "" {
		t.Fatal(err) // and here the answer is lost
	}
	step(t, service(t, m, h), h, 1, handover)
	if f := m.fires[claimed[0].Key()]; f.State != Submitted || f.Run != "run_1" || len(m.runs) != 1 {
		t.Errorf("%+v, %d runs", f, len(m.runs))
	}
}

// What a submit may be answered, and what then becomes of the fire.
func TestRefusedFires(t *testing.T) {
	full := fault.Later(fault.RateLimited, "queue_full", 40*time.Second, "the queue is full")
	overlap := &fault.Error{Code: fault.Conflict, Reason: ReasonOverlap, Message: "one runs"}
	for _, c := range []struct {
		name    string
		refused Refused
		answer  func(f Fire, try int) error
		state   State
		submits int
		reason  string
	}{
		{"dropped", Drop, func(Fire, int) error { return full }, Dropped, 1, "queue is full"},
		{"tried again", Retry, func(_ Fire, try int) error {
			if try < 3 {
				return full
			}
			return nil
		}, Submitted, 4, ""},
		{"until the next", Retry, func(Fire, int) error { return full }, Dropped, 7, "the next fire came first"},
		{"skipped", Retry, func(Fire, int) error { return overlap }, Skipped, 1, "one runs"},
		{"unknown outcome", Drop, func(_ Fire, try int) error {
			if try < 2 {
				return errors.New("connection reset")
			}
			return nil
		}, Submitted, 3, ""},
		{"busy database", Drop, func(_ Fire, try int) error {
			if try < 2 {
				return fault.Later(fault.Busy, "", time.Second, "the database is away")
			}
			return nil
		}, Submitted, 3, ""},
	} {
		m, h := newMemory(), &hands{wall: berlin("2026-06-01 12:00")}
		s := service(t, m, h)
		p := plan("*/5 * * * *", "Europe/Berlin")
		p.Refused = c.refused
		d := put(t, s, "often", p, 0)
		first := Fire{Schedule: d.ID, Instant: d.Instant}.Key()
		submits := 0
		m.answer = func(f Fire, try int) error {
			if f.Key() != first {
				return nil
			}
			submits++
			return c.answer(f, try)
		}
		step(t, s, h, 700, time.Second)
		if f := m.fires[first]; f.State != c.state || submits != c.submits || !strings.Contains(f.Reason, c.reason) {
			t.Errorf("%s: %s after %d submits: %q", c.name, f.State, submits, f.Reason)
		}
	}
}

// Fires of one schedule that are caught up together are submitted in their order, and carry its overlap as a key.
func TestOrderAndKeys(t *testing.T) {
	m, h := newMemory(), &hands{wall: berlin("2026-06-01 12:00")}
	s := service(t, m, h)
	p := plan("*/5 * * * *", "Europe/Berlin")
	p.CatchUp, p.Overlap = CatchUp{Policy: All, Max: 10}, Queue
	d := put(t, s, "often", p, 0)
	h.pass(time.Hour)
	step(t, s, h, 1, time.Second)
	if len(m.order) != 10 || !slices.IsSortedFunc(m.order, func(a, b Fire) int { return a.Instant.Compare(b.Instant) }) {
		t.Errorf("%d fires", len(m.order))
	}
	f := m.order[0]
	if f.Key() != d.ID+"/2026-06-01T10:15:00Z" || f.ConcurrencyKey() != "schedule/"+d.ID || f.Order.Owner != "ann" {
		t.Errorf("%+v", f)
	}
	f.Order.Overlap = Allow
	if f.ConcurrencyKey() != "" {
		t.Error("a key where Runs may overlap")
	}
}

// The search and the claim of a rule that fires each minute stay cheap when the clock is forty years ahead.
func TestClaimIsBounded(t *testing.T) {
	h := &hands{wall: berlin("2026-06-01 12:00")}
	r := parsed(t, "* * * * *", "Europe/Berlin")
	d := Schedule{Instant: h.wall, Plan: Plan{CatchUp: CatchUp{Policy: All, Max: 100, MaxAge: maxAge}}}
	if got := d.made(r, h.wall.AddDate(40, 0, 0), time.Minute); len(got) != 100 {
		t.Errorf("%d fires", len(got))
	}
}

var _ clock.Clock = (*hands)(nil)
