package sim

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
)

const (
	restartClients = 42
	restartSeats   = 2
	restartSize    = int64(60e6)
)

// restarted is a server over whose seats downloads of a minute go one after the other, each request held until its turn.
type restarted struct {
	t      *testing.T
	m      *session.Machine
	now    clock.Mono
	starts []int
	ends   map[int]clock.Mono
}

func newRestarted(t *testing.T) *restarted {
	p := session.Default(restartSeats)
	p.LinkRate = restartSize * restartSeats / 60
	m, err := session.New(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	m.Track()
	return &restarted{t: t, m: m, now: clock.Mono(time.Second), ends: map[int]clock.Mono{}}
}

// ask is the request of a client, with the arrival of its ticket if it has one.
func (r *restarted) ask(n int, ticket *clock.Mono) {
	e := session.Event{
		Kind: session.Request, Key: keyOf("file", n), Principal: keyOf("principal", n), Class: class.Release, Size: restartSize, To: restartSize,
	}
	if ticket != nil {
		e.Ticketed, e.Arrival = true, *ticket
	}
	r.take(r.m.Apply(r.now, e))
	if !r.m.Active(e.Key) {
		r.m.Apply(r.now, session.Event{Kind: session.Hold, Key: e.Key})
	}
}

func (r *restarted) take(effects []session.Effect) {
	for _, e := range slices.Clone(effects) {
		if e.Kind != session.Started {
			continue
		}
		for n := range restartClients {
			if e.Key == keyOf("file", n) {
				r.starts = append(r.starts, n)
				r.ends[n] = r.now.Add(time.Minute)
			}
		}
	}
}

// pass lets ticks go by; who has read for a minute is through.
func (r *restarted) pass(d time.Duration) {
	for end := r.now.Add(d); r.now < end; {
		r.now = r.now.Add(session.TickEvery)
		for n := range restartClients {
			at, reads := r.ends[n]
			if !reads {
				continue
			}
			k := keyOf("file", n)
			r.take(r.m.Apply(r.now, session.Event{Kind: session.Progress, Key: k, Bytes: restartSize / 120}))
			if r.now >= at {
				delete(r.ends, n)
				r.take(r.m.Apply(r.now, session.Event{Kind: session.Finish, Key: k, To: restartSize}))
			}
		}
		effects, _ := r.m.Tick(r.now)
		r.take(effects)
	}
}

// inversions counts the pairs of those starts that came in the wrong order.
func inversions(starts []int) (n int) {
	for i, a := range starts {
		for _, b := range starts[i+1:] {
			if a > b {
				n++
			}
		}
	}
	return n
}

// A server dies with forty waiting whose tickets are lost, and they come back the latest first, one a second. With the
// journal they start in the order in which they once came, but for those who find a seat free before the others are
// back (D-2.12, 0010-journal-of-places); without it the order is turned round.
func TestJournalKeepsTheOrder(t *testing.T) {
	for _, c := range []struct {
		name            string
		journal, ticket bool
		least, most     int // inversions
	}{
		{"journal, tickets lost", true, false, 0, 0}, {"tickets, no journal", false, true, 0, 0}, {"neither", false, false, 700, math.MaxInt},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newRestarted(t)
			var arrivals [restartClients]clock.Mono
			for n := range restartClients {
				arrivals[n] = a.now
				a.ask(n, nil)
				a.pass(session.TickEvery)
			}
			saved := a.m.Changes(math.MaxInt, nil)
			b := newRestarted(t)
			shift := a.now.Sub(b.now) + 10*time.Second // down for ten seconds
			for i := range saved {
				saved[i].Arrival = saved[i].Arrival.Add(-shift)
			}
			if c.journal {
				if left := b.m.Restore(b.now, saved); len(left) != 0 {
					t.Fatalf("%d do not fit", len(left))
				}
			}
			b.m.Settle(b.now.Add(session.SettleFor))
			for n := restartClients - 1; n >= restartSeats; n-- {
				at := arrivals[n].Add(-shift)
				if b.ask(n, map[bool]*clock.Mono{true: &at}[c.ticket]); n > restartSeats {
					b.pass(time.Second)
				}
			}
			b.pass(30 * time.Minute)
			if len(b.starts) != restartClients-restartSeats {
				t.Fatalf("%d started", len(b.starts))
			}
			got := inversions(b.starts[restartSeats:])
			t.Logf("%d pairs in the wrong order", got)
			if got < c.least || got > c.most {
				t.Errorf("starts in the order %v", b.starts)
			}
		})
	}
}
