package dispatcher

import (
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/dispatch"
	"github.com/roadstead/roadstead/internal/runs"
)

// fresh is how old a forecast may be, while it costs less than a tenth of that.
const fresh = time.Second

// forecast plays the pool forward when something changed and the last forecast is old. With a hundred thousand Runs
// it takes a tenth of a second: then it is made less often, so that it takes a tenth of the time at most.
func (s *Service) forecast(p *pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sinceChange && s.clock.Now().Sub(p.forecastAt) >= max(fresh, 10*p.forecastCost) {
		s.play(p)
	}
}

func (s *Service) play(p *pool) {
	now := s.clock.Now()
	p.snapshot, p.forecastAt, p.sinceChange = p.machine.Forecast(now, dispatch.Limits{}), now, false
	p.forecastCost = s.clock.Now().Sub(now)
}

// Place tells where a queued Run stands: by the last forecast, or by a new one when the Run came after it.
func (s *Service) Place(r runs.Run) api.Place {
	s.mu.Lock()
	p := s.pools[r.Pool]
	s.mu.Unlock()
	if p == nil {
		return api.Place{Reason: "pool_offline", Detail: "no dispatcher has the pool"}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.machine == nil {
		return api.Place{Reason: "pool_offline", Detail: "the pool is being loaded"}
	}
	now := s.clock.Now()
	outlook, known := dispatch.Outlook{}, false
	if p.snapshot != nil {
		outlook, known = p.snapshot.Of(r.ID)
	}
	if !known && p.runs[r.ID] != nil && now.Sub(p.forecastAt) > max(fresh/10, 10*p.forecastCost) {
		s.play(p)
		outlook, known = p.snapshot.Of(r.ID)
	}
	place := s.place(p, outlook, known, now)
	if why := p.machine.Why(now, r.ID); len(why) > 0 {
		s.explain(p, &place, why[0])
	}
	if place.Reason == "" {
		place.Reason = string(dispatch.ReasonTurn)
	}
	return place
}

func (s *Service) place(p *pool, o dispatch.Outlook, known bool, now clock.Mono) api.Place {
	place := api.Place{Reason: string(o.Reason)}
	if p.snapshot != nil {
		asOf := s.wall(p.snapshot.AsOf)
		place.AsOf = &asOf
	}
	if !known || !o.Known {
		return place
	}
	position := o.Place
	p10, p50, p90 := s.wall(max(o.P10, now)), s.wall(max(o.P50, now)), s.wall(max(o.P90, now))
	place.Known, place.Position, place.StartP10, place.StartP50, place.StartP90 = true, &position, &p10, &p50, &p90
	return place
}

// explain says the reason in words.
func (s *Service) explain(p *pool, place *api.Place, why dispatch.Why) {
	place.Reason = string(why.Reason)
	if p.state.Draining {
		place.Reason, place.Detail = "pool_draining", "the pool is being drained and starts nothing new"
		return
	}
	if why.Until != 0 {
		until := s.wall(why.Until)
		place.Until = &until
	}
	place.Detail = details[why.Reason]
}

// details are the reasons in words; nothing changes them.
var details = map[dispatch.Reason]string{
	dispatch.ReasonBudget:         "your budget has less left than this Run may cost; it starts when money is settled or added",
	dispatch.ReasonDependency:     "it waits for other Runs to end",
	dispatch.ReasonConcurrencyKey: "another Run of its concurrency key is active or before it",
	dispatch.ReasonArrayLimit:     "as many elements of its array are active as the array allows",
	dispatch.ReasonHold:           "it is on hold",
	dispatch.ReasonQuota:          "an external limit has nothing left for it until then",
	dispatch.ReasonNotBefore:      "it was asked not to start before",
	dispatch.ReasonNeverFits:      "it is larger than every runner of the pool that has its labels, or than a cap: ask for less, or add a runner",
	dispatch.ReasonPoolOffline:    "no runner of the pool that it could use was heard of lately",
	dispatch.ReasonTenantCap:      "your tenant has as much of the pool as it may",
	dispatch.ReasonPoolCap:        "the pool has as much running as it may",
	dispatch.ReasonReserved:       "it would fit, but the place is reserved for a larger Run before it",
	dispatch.ReasonTurn:           "others come first by weight, or its runners are busy",
}

// Preview tells where such a Run would stand, and what would block it now.
func (s *Service) Preview(r runs.Run, spec runs.Spec) (api.Place, []api.Blocker) {
	s.mu.Lock()
	p := s.pools[r.Pool]
	s.mu.Unlock()
	if p == nil {
		return api.Place{Reason: "pool_offline"}, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.machine == nil {
		return api.Place{Reason: "pool_offline"}, nil
	}
	now := s.clock.Now()
	t := &tracked{row: RunRow{Run: r, Spec: spec}}
	s.instants(t)
	outlook, whys, err := p.machine.Preview(now, s.machineRun(p, t), dispatch.Limits{})
	if err != nil {
		return api.Place{}, []api.Blocker{{Reason: "invalid", Detail: err.Error()}}
	}
	place := s.place(p, outlook, true, now)
	place.Reason = ""
	var blockers []api.Blocker
	for _, why := range whys {
		if why.Reason == dispatch.ReasonTurn {
			continue // to wait one's turn is no obstacle
		}
		one := api.Place{}
		s.explain(p, &one, why)
		blockers = append(blockers, api.Blocker{Reason: one.Reason, Detail: one.Detail, Until: one.Until})
	}
	if len(blockers) > 0 {
		place.Reason, place.Detail = blockers[0].Reason, blockers[0].Detail
	}
	return place, blockers
}

// Back is when a tenant that was refused may come back: when its pool has started some of what waits, by the forecast
// of the one that starts first, and within a minute.
func (s *Service) Back(pool, _ string) time.Duration {
	s.mu.Lock()
	p := s.pools[pool]
	s.mu.Unlock()
	if p == nil {
		return 30 * time.Second
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	wait := 30 * time.Second
	if p.snapshot != nil {
		if first := p.snapshot.Next(1); len(first) > 0 {
			if o, known := p.snapshot.Of(first[0]); known && o.Known {
				wait = o.P50.Sub(s.clock.Now())
			}
		}
	}
	return min(max(wait, 2*time.Second), time.Minute).Round(time.Second)
}

// Fairness tells how fairly the pool's tenants were served, against the bound of the order.
func (s *Service) Fairness(pool string) []api.TenantShare {
	s.mu.Lock()
	p := s.pools[pool]
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.machine == nil {
		return nil
	}
	var out []api.TenantShare
	for _, f := range p.machine.Fairness() {
		out = append(out, api.TenantShare{
			Tenant: f.Tenant, Weight: int64(f.Weight), Served: f.Served.Seconds(), Error: f.Worst.Seconds(), Bound: f.Bound.Seconds(), Formula: dispatch.BoundFormula,
		})
	}
	return out
}

// Figures are what a pool's metrics and readiness show.
type Figures struct {
	Pool          string
	Owned, Loaded bool
	Counts        dispatch.Counts
	OldestAge     time.Duration // of the eligible Runs
	Overdue       int           // leases past twice lease and grace
	Unfair        float64       // largest error of a tenant, in parts of its bound
}

// Figures lists the pools' figures by name.
func (s *Service) Figures() (all []Figures) {
	now := s.clock.Wall()
	for _, p := range s.owned() {
		p.mu.Lock()
		f := Figures{Pool: p.name, Owned: p.owner.ID != "", Loaded: p.loaded, Overdue: p.overdue}
		if p.machine != nil {
			f.Counts, f.Unfair = p.machine.Counts(), p.unfair()
		}
		for _, t := range p.runs {
			if t.waitsForTurn(now) {
				f.OldestAge = max(f.OldestAge, now.Sub(t.row.Run.EligibleAt))
			}
		}
		p.mu.Unlock()
		all = append(all, f)
	}
	return all
}
