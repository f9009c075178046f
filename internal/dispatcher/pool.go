package dispatcher

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/dispatch"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
)

// pool is one pool with its machine. The service's one goroutine alone changes it; others read under the lock, which
// is never held over the database.
type pool struct {
	name  string
	dirty map[string]bool // Runs that changed; guarded by the service's lock

	mu       sync.Mutex
	state    PoolState
	owner    Owner
	loaded   bool
	machine  *dispatch.Machine
	runs     map[string]*tracked
	leases   map[string]*lease // by attempt
	runners  map[string]*runner
	shares   map[string]ShareRow
	lanes    map[string]*gate
	arrays   map[string]*gate
	budget   map[string][]string // by tenant: Runs parked for lack of money, in their order
	due      []string            // Runs of gates that have to wait for an instant first
	learnt   *durations
	snapshot *dispatch.Snapshot
	overdue  int // leases past lease and grace that could not be ended yet

	ownerBeats   int64
	ownerSince   clock.Mono // when the other owner's renewals were last seen to grow
	keptAt       clock.Mono
	expiredAt    clock.Mono
	newestAt     time.Time // when new rows were looked for last
	trailedAt    clock.Mono
	forecastAt   clock.Mono
	outage       bool          // the last look at the rows failed
	forecastCost time.Duration // of the last one
	sinceChange  bool          // something changed since the last forecast
}

// tracked is a Run that the machine has.
type tracked struct {
	row      RunRow
	active   bool
	released bool // the machine has let it go: its process is gone, its results are being verified
	attempt  string
	started  clock.Mono
	lane     string
	array    string

	// Both by this process's own clock, as read once with the row: whatever the clock on the wall does then, the Run waits
	// as long as it was to (R26).
	eligible clock.Mono // when it came to wait for its turn; its age counts from it
	due      clock.Mono // not before; 0: at once
}

func newPool(name string) *pool {
	p := &pool{name: name, dirty: map[string]bool{}}
	p.reset()
	return p
}

// reset forgets everything that comes from rows.
func (p *pool) reset() {
	p.loaded, p.machine, p.snapshot = false, nil, nil
	p.runs, p.leases, p.runners = map[string]*tracked{}, map[string]*lease{}, map[string]*runner{}
	p.lanes, p.arrays, p.budget, p.due = map[string]*gate{}, map[string]*gate{}, map[string][]string{}, nil
	p.shares = map[string]ShareRow{}
}

// call marks Runs as changed. The caller holds the service's lock.
func (p *pool) call(runs []string) {
	for _, id := range runs {
		p.dirty[id] = true
	}
}

func (s *Service) takeDirty(p *pool) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := sortedKeys(p.dirty)
	p.dirty = map[string]bool{}
	return ids
}

// configure takes up a pool's state as stored.
func (p *pool) configure(s *Service, state PoolState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := p.state.Draining != state.Draining
	p.state = state
	if p.owner.ID != "" && (state.Owner != p.owner.ID || state.Epoch != p.owner.Epoch) {
		s.cfg.Log.Warn("the pool has another owner now", "pool", p.name, "owner", state.Owner)
		p.owner = Owner{}
		p.reset()
	}
	if changed && p.machine != nil {
		for _, id := range sortedKeys(p.runners) {
			s.setRunner(p, p.runners[id], s.clock.Now())
		}
	}
}

// step does all there is to do for a pool: own it, load it, hear the news, decide.
func (s *Service) step(ctx context.Context, p *pool, polled bool) {
	limited, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	dirty := s.takeDirty(p)
	err := s.advance(limited, p, polled, dirty)
	switch {
	case err == nil:
		p.outage = false
	case ctx.Err() != nil:
	default:
		if !p.outage {
			s.cfg.Log.Warn("a pool stands still until its rows can be read and written again", "pool", p.name, "error", err)
		}
		p.outage = true
		p.mu.Lock()
		if deposed(err) {
			p.owner = Owner{}
		}
		p.reset() // whatever the failed call did or did not do, the rows say it
		p.mu.Unlock()
	}
}

func (s *Service) advance(ctx context.Context, p *pool, polled bool, dirty []string) error {
	if p.owner.ID == "" {
		if took, err := s.take(ctx, p); err != nil || !took {
			return err
		}
	}
	if !p.loaded {
		if err := s.load(ctx, p); err != nil {
			return err
		}
	} else if polled {
		if err := s.refresh(ctx, p); err != nil {
			return err
		}
	}
	if err := s.reconcile(ctx, p, dirty); err != nil {
		return err
	}
	if err := s.decide(ctx, p); err != nil {
		return err
	}
	s.forecast(p)
	return s.keep(ctx, p)
}

// take makes this process the pool's owner when nobody is, or when the owner shows no sign of life for a lease, as
// this process's own clock measures it.
func (s *Service) take(ctx context.Context, p *pool) (bool, error) {
	now := s.clock.Now()
	if p.state.Owner != "" && p.state.Owner != s.cfg.Owner && !s.cfg.Alone {
		if p.ownerSince == 0 || p.state.Beats != p.ownerBeats {
			p.ownerBeats, p.ownerSince = p.state.Beats, now
			return false, nil
		}
		if now.Sub(p.ownerSince) < ownerLease {
			return false, nil
		}
	}
	o, err := s.records.TakePool(ctx, p.name, s.cfg.Owner, p.state.Epoch)
	if err != nil {
		return false, fmt.Errorf("taking pool %s over: %w", p.name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owner, p.state.Owner, p.state.Epoch = o, o.ID, o.Epoch
	return true, nil
}

// ownerLease is how long an owner that shows no sign of life keeps its pools; it shows one each second.
const ownerLease = 10 * time.Second

// keep shows that the owner lives and stores the virtual times, at most once a second.
func (s *Service) keep(ctx context.Context, p *pool) error {
	now := s.clock.Now()
	if p.keptAt != 0 && now.Sub(p.keptAt) < time.Second {
		return nil
	}
	p.keptAt = now
	text, err := json.Marshal(p.machine.Tags())
	if err != nil {
		return fmt.Errorf("writing virtual times: %w", err)
	}
	return s.records.KeepPool(ctx, p.owner, string(text))
}

// flush stores the virtual times at an orderly end.
func (s *Service) flush(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for _, p := range s.owned() {
		if p.loaded {
			p.keptAt = 0
			if err := s.keep(limited, p); err != nil {
				s.cfg.Log.Warn("the virtual times could not be stored; at most a second of them is lost", "pool", p.name, "error", err)
			}
		}
	}
}

// mono places a wall time on this process's own clock.
func (s *Service) mono(t time.Time) clock.Mono {
	return s.clock.Now().Add(t.Sub(s.clock.Wall()))
}

func (s *Service) wall(m clock.Mono) time.Time {
	return s.clock.Wall().Add(m.Sub(s.clock.Now())).UTC().Truncate(time.Millisecond)
}

// notBefore is when a Run may start at the earliest, on this process's own clock; 0: at once. An instant that nobody asked
// for can only be a retry's: further ahead than those are, it was written when the clock on the wall stood elsewhere (R26).
func (s *Service) notBefore(row RunRow) clock.Mono {
	ahead := row.Run.NextEligible.Sub(s.clock.Wall())
	if row.Spec.Request.NotBefore == nil {
		most := time.Duration(0)
		if row.Run.Failures+row.Run.Losses > 0 {
			most = lifecycle.MaxBackoff
		}
		ahead = min(ahead, most)
	}
	if ahead <= 0 {
		return 0
	}
	return s.clock.Now().Add(ahead)
}

// past places a wall time of something that has happened on this process's own clock.
func (s *Service) past(t time.Time) clock.Mono { return min(s.mono(t), s.clock.Now()) }

func (s *Service) now() time.Time { return s.clock.Wall().UTC().Truncate(time.Millisecond) }
