package attempts

import (
	"context"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/fault"
)

// pollEvery is how often a waiting exchange looks by itself: what happens in other processes is told by nobody.
const pollEvery = time.Second

// CheckProtocol refuses runners that speak another version: this server speaks its own and the one before.
func CheckProtocol(protocol int) error {
	if protocol == api.RunnerProtocol || protocol == api.RunnerProtocol-1 && protocol > 0 {
		return nil
	}
	return fault.Invalid("protocol", "the runner speaks version %d, this server %d: update the older of the two", protocol, api.RunnerProtocol)
}

// Exchange renews the runner's leases, takes its acknowledgement and answers with what is new: at once if something
// is, otherwise after the wait it asked for.
func (s *Service) Exchange(ctx context.Context, c Caller, in api.Exchange) (api.Exchanged, error) {
	if err := CheckProtocol(in.Protocol); err != nil {
		return api.Exchanged{}, err
	}
	news, done := s.wait(c.Runner)
	defer done()
	at := s.now()
	held, err := s.ports.Records.Beat(ctx, Beat{
		Runner: c.Runner, Acknowledged: in.Acknowledged, Holds: in.Holds, Capacity: in.Capacity, At: at, LeaseUntil: at.Add(s.cfg.Lease),
	})
	if err != nil {
		return api.Exchanged{}, err
	}
	s.countStrays(c, held.Lost)
	s.ports.News.Changed(c.Pool)
	until := time.NewTimer(min(time.Duration(in.WaitSeconds)*time.Second, s.cfg.Heartbeat))
	defer until.Stop()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		out := s.answer(c, in, held)
		if len(out.Assignments) > 0 || len(out.Orders) > 0 || out.Drain && !in.Draining {
			return out, nil
		}
		select {
		case <-until.C:
			return out, nil
		case <-s.draining:
			return out, nil
		case <-ctx.Done():
			return out, nil // the runner went; it has renewed
		case <-news:
		case <-poll.C:
		}
		if held, err = s.ports.Records.Held(ctx, c.Runner, in.Holds); err != nil {
			return api.Exchanged{}, err
		}
	}
}

// answer is what the runner has to know of what the server has.
func (s *Service) answer(c Caller, in api.Exchange, held Held) api.Exchanged {
	out := api.Exchanged{
		Sequence: held.Latest, Assignments: []api.Assignment{}, Orders: []api.Order{}, LeaseSeconds: int64(s.cfg.Lease / time.Second), Drain: c.Draining,
	}
	if c.Draining && !c.DrainBy.IsZero() {
		out.DrainSeconds = max(1, int64(c.DrainBy.Sub(s.now()).Seconds()))
	}
	has := map[string]bool{}
	for _, h := range in.Holds {
		has[h.Attempt] = true
	}
	for _, l := range held.Live {
		a := l.Attempt
		// One that was begun is never sent again: a runner that has lost it can't know whether it started it.
		if !has[a.ID] && a.State == lifecycle.Assigned && a.Sequence > in.Acknowledged {
			out.Assignments = append(out.Assignments, api.Assignment{
				Attempt: a.ID, Run: a.Run, Fence: a.Fence, Sequence: a.Sequence, Resources: a.Resources,
			})
		}
		if l.Cancel && has[a.ID] {
			out.Orders = append(out.Orders, api.Order{Attempt: a.ID, Order: "cancel"})
		}
	}
	for _, attempt := range held.Lost {
		out.Orders = append(out.Orders, api.Order{Attempt: attempt, Order: "lost"})
	}
	return out
}

// wait registers the runner's exchange for news. A runner has one at a time: a later one takes the place.
func (s *Service) wait(runner string) (news chan struct{}, done func()) {
	news = make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[runner] = news
	return news, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.waiting[runner] == news {
			delete(s.waiting, runner)
		}
	}
}

// Wake makes the runners look now: there is work for them, or an order.
func (s *Service) Wake(runners ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, runner := range runners {
		if news := s.waiting[runner]; news != nil {
			select {
			case news <- struct{}{}:
			default: // one call that was not heard yet is enough
			}
		}
	}
}
