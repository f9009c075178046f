package downloads

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/ticket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a State that remembers in memory.
type memory struct {
	mu    sync.Mutex
	value bool
}

func (m *memory) QueueMark(context.Context) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.value, nil
}

func (m *memory) SetQueueMark(_ context.Context, v bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.value = v
	return nil
}

const size = 100 << 20

func person(id string) identity.Principal {
	return identity.Principal{ID: id, Kind: identity.User, Ceiling: class.Interactive}
}

func whole(who, download string) Request {
	return Request{Principal: person(who), ObjectID: "repo/big@1", Size: size, DownloadID: download, ClientAddr: "192.0.2.1", To: size}
}

// run gives a running queue with a number of seats inside a bubble of virtual time, started later than others.
func run(t *testing.T, seats int, state State, later time.Duration, test func(ctx context.Context, s *Service)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		<-time.After(later)
		conf := Default(seats)
		conf.Policy.LinkRate = 10 << 20
		s, err := New(t.Context(), conf, clock.NewSystem(), state, ticket.New([]byte("a key of the installation")))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		test(ctx, s)
		synctest.Wait()
		if n := s.passes + s.holding + s.atDoor + len(s.held); n != 0 {
			t.Errorf("%d passes and holds are left", n)
		}
		if c := s.machine.Counts(); c.Responses != 0 {
			t.Errorf("%d responses are left open", c.Responses)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func mustWait(t *testing.T, s *Service, ctx context.Context, r Request) *Waiting {
	t.Helper()
	_, err := s.Admit(ctx, r)
	w, ok := errors.AsType[*Waiting](err)
	if !ok {
		t.Fatalf("admitted with %v, want a wait", err)
	}
	if w.Fault.RetryAfter <= 0 || w.Ticket == "" {
		t.Fatalf("a wait of %v with ticket %q", w.Fault.RetryAfter, w.Ticket)
	}
	return w
}

func mustServe(t *testing.T, s *Service, ctx context.Context, r Request) *Pass {
	t.Helper()
	p, err := s.Admit(ctx, r)
	if err != nil {
		t.Fatalf("not admitted: %v", err)
	}
	return p
}

// An identified client is answered at once, learns its place after a tick, and starts when its seat comes (D-2.3).
func TestWaitThenStart(t *testing.T) {
	run(t, 1, &memory{}, 0, func(ctx context.Context, s *Service) {
		first := mustServe(t, s, ctx, whole("ann", "a"))
		w := mustWait(t, s, ctx, whole("bob", "b"))
		if w.Wait.Known || w.Fault.RetryAfter != 2*time.Second {
			t.Errorf("a newcomer hears %+v in %v, want nothing known for two seconds", w.Wait, w.Fault.RetryAfter)
		}
		<-time.After(2 * time.Second)
		w = mustWait(t, s, ctx, whole("bob", "b"))
		h := http.Header{}
		w.Header(h)
		if !w.Wait.Known || h.Get(api.HeaderQueuePosition) != "1" || h.Get(api.HeaderStartsAt) == "" || h.Get(api.HeaderDownloadClass) != "interactive" {
			t.Errorf("place %+v, headers %v", w.Wait, h)
		}
		first.Sent(size, 0)
		first.Close(0, size, true)
		second := mustServe(t, s, ctx, whole("bob", "b"))
		second.Header(h)
		if h.Get(api.HeaderQueueTicket) == "" {
			t.Error("no ticket on the answer with bytes")
		}
		second.Close(0, 0, false)
	})
}

// A tool without an id is held until its seat comes, and answered busy when the hold is over (D-2.4).
func TestHold(t *testing.T) {
	run(t, 1, &memory{}, 0, func(ctx context.Context, s *Service) {
		first := mustServe(t, s, ctx, whole("ann", "a"))
		tool, began := whole("bob", ""), time.Now()
		go func() {
			<-time.After(5 * time.Second)
			first.Sent(size, 0)
			first.Close(0, size, true)
		}()
		second := mustServe(t, s, ctx, tool)
		if held := time.Since(began); held < 5*time.Second || held > 6*time.Second {
			t.Errorf("held for %v, want until the seat came", held)
		}
		other := tool
		other.Principal, began = person("cid"), time.Now()
		mustWait(t, s, ctx, other)
		if held := time.Since(began); held != 20*time.Second {
			t.Errorf("answered busy after %v, want the hold's 20 s", held)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := s.Admit(short, other); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a client that went away: %v", err)
		}
		second.Close(0, size, true)
	})
}

// No more requests are held than allowed; the others are answered at once.
func TestHoldLimit(t *testing.T) {
	run(t, 1, &memory{}, 0, func(ctx context.Context, s *Service) {
		s.conf.HoldLimit = 1
		first := mustServe(t, s, ctx, whole("ann", "a"))
		done := make(chan error, 1)
		go func() {
			_, err := s.Admit(ctx, whole("bob", ""))
			done <- err
		}()
		synctest.Wait()
		began := time.Now()
		mustWait(t, s, ctx, whole("cid", ""))
		if time.Since(began) != 0 {
			t.Error("a second request was held")
		}
		s.Drain()
		if w, ok := errors.AsType[*Waiting](<-done); !ok || w.Fault.Reason != api.ReasonDraining {
			t.Errorf("a held request at the drain: %v", w)
		}
		first.Close(0, 0, false)
	})
}

// A surplus range of a tool waits for one of its own to end; an identified client is told to come back (D-2.10).
func TestSurplus(t *testing.T) {
	run(t, 2, &memory{}, 0, func(ctx context.Context, s *Service) {
		var open []*Pass
		for range 4 {
			open = append(open, mustServe(t, s, ctx, whole("ann", "a")))
		}
		_, err := s.Admit(ctx, whole("ann", "a"))
		if f := fault.From(err); f.Reason != api.ReasonRanges || f.RetryAfter != time.Second {
			t.Errorf("surplus of a client with an id: %v", err)
		}
		for range 4 {
			open = append(open, mustServe(t, s, ctx, whole("bob", "")))
		}
		go func() {
			<-time.After(3 * time.Second)
			open[7].Close(0, 0, false)
		}()
		began := time.Now()
		open = append(open, mustServe(t, s, ctx, whole("bob", "")))
		if time.Since(began) != 3*time.Second {
			t.Errorf("the surplus range of a tool went on after %v", time.Since(began))
		}
		for _, p := range open {
			p.Close(0, 0, false)
		}
	})
}

// A restart keeps places by tickets: those who waited come back in any order and start by arrival (D-2.12, D-8).
func TestRestartKeepsPlaces(t *testing.T) {
	state := &memory{}
	tickets := map[string]string{}
	names := []string{"bob", "cid", "dan", "eve"}
	run(t, 1, state, 0, func(ctx context.Context, s *Service) {
		first := mustServe(t, s, ctx, whole("ann", "a"))
		for _, n := range names {
			tickets[n] = mustWait(t, s, ctx, whole(n, n)).Ticket
			<-time.After(time.Second)
		}
		first.Close(0, 0, false)
	})
	if !state.value {
		t.Fatal("the database does not know that downloads waited")
	}
	run(t, 1, state, time.Minute, func(ctx context.Context, s *Service) {
		again := func(n string) (*Pass, error) {
			r := whole(n, n)
			r.Ticket = tickets[n]
			return s.Admit(ctx, r)
		}
		for i := len(names) - 1; i >= 0; i-- {
			if _, err := again(names[i]); !fault.Is(err, fault.Busy) {
				t.Fatalf("%s started before the others could come back: %v", names[i], err)
			}
		}
		<-time.After(3 * time.Second)
		for _, n := range names[1:] {
			if _, err := again(n); err == nil {
				t.Fatalf("%s started before %s", n, names[0])
			}
		}
		p, err := again(names[0])
		if err != nil {
			t.Fatalf("%s did not start at its turn: %v", names[0], err)
		}
		p.Sent(size, 0)
		p.Close(0, size, true)
	})
}

// A draining service turns waiting clients away with their place, and lets active ones go on (D-7.4).
func TestDrain(t *testing.T) {
	run(t, 1, &memory{}, 0, func(ctx context.Context, s *Service) {
		first := mustServe(t, s, ctx, whole("ann", "a"))
		mustWait(t, s, ctx, whole("bob", "b"))
		s.Drain()
		for _, r := range []Request{whole("bob", "b"), whole("new", "n")} {
			if w := mustWait(t, s, ctx, r); w.Fault.Reason != api.ReasonDraining {
				t.Errorf("turned away with %v", w.Fault)
			}
		}
		mustServe(t, s, ctx, whole("ann", "a")).Close(0, 0, false)
		first.Close(0, size, true)
	})
}

// A client may lower its class, not raise it; a word that is no class is an error with the field (D-4.3).
func TestAppliedClass(t *testing.T) {
	for _, c := range []struct {
		asked   string
		ceiling class.Class
		want    string
	}{{"", class.Release, "release"}, {"bulk", class.Release, "bulk"}, {"interactive", class.Release, "release"}, {"urgent", class.Release, ""}} {
		got, err := Request{Class: c.asked, Principal: identity.Principal{Ceiling: c.ceiling}}.class()
		if c.want == "" {
			if f := fault.From(err); f.Code != fault.InvalidInput || f.Details[0].Field != api.HeaderDownloadClass {
				t.Errorf("class %q: %v", c.asked, err)
			}
		} else if err != nil || got.String() != c.want {
			t.Errorf("class %q under %v is %v (%v), want %s", c.asked, c.ceiling, got, err, c.want)
		}
	}
}

// Keys part what must be parted, and no part can imitate another (D-2.2).
func TestKeys(t *testing.T) {
	seen := map[session.Key]Request{}
	for _, r := range []Request{
		whole("ann", "a"), whole("bob", "a"), whole("ann", "b"), whole("ann", ""), whole("ann", "192.0.2.1"),
		{Principal: person("ann"), ObjectID: "repo/big@2", DownloadID: "a"},
		{Principal: person("annrepo"), ObjectID: "/big@1", DownloadID: "a"},
	} {
		if o, ok := seen[r.Key()]; ok {
			t.Errorf("%+v and %+v share a session", o, r)
		}
		seen[r.Key()] = r
	}
}

// Small objects take the per-request queue: bounded, fair to other principals, with an honest time to come back
// (D-2.5).
func TestSmallRequests(t *testing.T) {
	run(t, 1, &memory{}, 0, func(ctx context.Context, s *Service) {
		little := func(who string) Request {
			return Request{Principal: person(who), ObjectID: "repo/small@1", Size: 1 << 20, To: 1 << 20}
		}
		var open []*Pass
		for range 4 {
			open = append(open, mustServe(t, s, ctx, little("ann")))
		}
		type answer struct {
			pass *Pass
			err  error
		}
		answers := make(chan answer, 16)
		for range 8 {
			go func() {
				p, err := s.Admit(ctx, little("ann"))
				answers <- answer{p, err}
			}()
		}
		synctest.Wait()
		if _, err := s.Admit(ctx, little("ann")); fault.From(err).Reason != api.ReasonPending || fault.From(err).RetryAfter <= 0 {
			t.Errorf("the ninth waiting request of a principal: %v", err)
		}
		mustServe(t, s, ctx, little("bob")).Close(0, 0, false)
		open[0].Close(0, 1<<20, true)
		a := <-answers
		if a.err != nil {
			t.Fatal(a.err)
		}
		a.pass.Close(0, 0, false)
		(<-answers).pass.Close(0, 0, false)
		began := time.Now()
		// of the other six one takes the free place, five give up after the longest wait
		refused := 0
		for range 6 {
			if a := <-answers; a.err != nil {
				refused++
			} else {
				defer a.pass.Close(0, 0, false)
			}
		}
		if refused != 5 || time.Since(began) != 20*time.Second {
			t.Errorf("%d refused after %v, want 5 after 20 s", refused, time.Since(began))
		}
		for _, p := range open {
			p.Close(0, 0, false)
		}
	})
}

// The queue's numbers as an operator sees them (D-11.2).
func TestQueueView(t *testing.T) {
	run(t, 1, &memory{}, 0, func(ctx context.Context, s *Service) {
		first := mustServe(t, s, ctx, whole("ann", "a"))
		mustWait(t, s, ctx, whole("bob", "b"))
		<-time.After(time.Second)
		q := s.Queue()
		row := q.Classes[0]
		if q.SeatsInUse != 1 || row.Waiting != 1 || row.WaitingBytes != size || row.HeadWaitSeconds < 1 || q.DrainsAt == nil {
			t.Errorf("queue %+v", q)
		}
		if d := q.DrainsAt.Sub(q.AsOf); d < 9*time.Second || d > 10*time.Second {
			t.Errorf("the queue drains in %v, want when the first is through, 10 s after it began", d)
		}
		first.Close(0, 0, false)
	})
}
