package runs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// Request is what comes with a submit beside the Runs themselves.
type Request struct {
	Key         string // Idempotency-Key; empty for none
	Route       string // the route it holds for
	Body        []byte // as it came; a repeat must be the same
	Traceparent string
	Tenant      string // for whom, when the server itself submits; otherwise the caller's
}

// Submit makes the Run, or the Runs of an array, that a tenant asks for. A dry run stores nothing.
func (s *Service) Submit(ctx context.Context, p identity.Principal, r Request, n api.NewRun) (api.Submitted, error) {
	if n.DryRun {
		return s.dryRun(ctx, p, r, n)
	}
	return s.submit(ctx, p, r, []api.BatchRun{{Run: n}})
}

// SubmitBatch makes all Runs of a batch or none; they may follow each other by their names.
func (s *Service) SubmitBatch(ctx context.Context, p identity.Principal, r Request, b api.RunBatch) (api.Submitted, error) {
	if err := checkGraph(b.Runs); err != nil {
		return api.Submitted{}, err
	}
	for i, one := range b.Runs {
		if one.Run.DryRun {
			return api.Submitted{}, fault.Invalid(fmt.Sprintf("runs[%d].run.dryRun", i), "a batch has no dry run; try its Runs one by one")
		}
	}
	return s.submit(ctx, p, r, b.Runs)
}

func (s *Service) submit(ctx context.Context, p identity.Principal, r Request, all []api.BatchRun) (api.Submitted, error) {
	if p.Kind == identity.Link {
		return api.Submitted{}, fault.New(fault.Forbidden, "a link can't submit Runs")
	}
	tenant := p.Tenant
	if r.Tenant != "" {
		tenant = r.Tenant
	}
	sub := Submission{Tenant: tenant, At: s.now()}
	if r.Key != "" {
		if err := checkKey(r.Key); err != nil {
			return api.Submitted{}, err
		}
		sum := sha256.Sum256(r.Body)
		sub.Key = &Key{Principal: p.ID, Route: r.Route, Name: r.Key, Body: hex.EncodeToString(sum[:])}
	}
	b := builder{s: s, caller: p, tenant: tenant, at: sub.At, request: r, names: map[string]string{}, pools: map[string]Pool{}}
	if err := b.build(ctx, all); err != nil {
		// What can't be resolved any more is no reason to hide an answer that was given before.
		if earlier, found := s.earlier(ctx, sub); found {
			return earlier, nil
		}
		return api.Submitted{}, err
	}
	sub.Runs, sub.Bounds = b.records, b.bounds()
	out, err := s.ports.Records.SubmitRuns(ctx, sub)
	if err != nil {
		return api.Submitted{}, err
	}
	if out.Refused != "" {
		return api.Submitted{}, s.refusal(out, tenant)
	}
	s.announce(out)
	return s.submitted(out), nil
}

// earlier is the answer to an earlier submit with the same key and body.
func (s *Service) earlier(ctx context.Context, sub Submission) (api.Submitted, bool) {
	if sub.Key == nil {
		return api.Submitted{}, false
	}
	sub.Runs, sub.Bounds = nil, nil
	out, err := s.ports.Records.SubmitRuns(ctx, sub)
	if err != nil || !out.Repeat {
		return api.Submitted{}, false
	}
	return s.submitted(out), true
}

// announce tells those who wait that there are new Runs, and that others changed with them.
func (s *Service) announce(out Outcome) {
	if out.Repeat {
		return
	}
	pools := map[string][]string{}
	var order []string
	for _, r := range out.Runs {
		if _, known := pools[r.Pool]; !known {
			order = append(order, r.Pool)
		}
		pools[r.Pool] = append(pools[r.Pool], r.ID)
	}
	for _, pool := range order {
		s.ports.Places.Wake(pool, pools[pool]...)
	}
	if len(out.Touched) > 0 {
		s.ports.Places.Wake("", out.Touched...)
		s.Changed(out.Touched...)
	}
}

const shownElements = 100

func (s *Service) submitted(out Outcome) api.Submitted {
	answer := api.Submitted{Runs: []api.Run{}, Count: len(out.Runs), Repeat: out.Repeat}
	for i, r := range out.Runs {
		if i == shownElements {
			break
		}
		one := s.wire(r)
		s.addPlace(&one, r)
		answer.Runs = append(answer.Runs, one)
	}
	if len(out.Runs) > 0 && out.Runs[0].Array != "" && out.Runs[len(out.Runs)-1].Array == out.Runs[0].Array {
		answer.Array = out.Runs[0].Array
	}
	return answer
}

// refusal says that a bound of the queue is reached and when to come back.
func (s *Service) refusal(out Outcome, tenant string) error {
	wait := max(time.Second, s.ports.Places.Back(out.Pool, tenant))
	switch out.Refused {
	case "tenant_depth":
		return fault.Later(fault.RateLimited, "queue_full", wait, "pool %s: your tenant has %d Runs queued there, as many as the pool allows", out.Pool, out.Queued)
	case "age":
		return fault.Later(fault.RateLimited, "queue_too_old", wait, "pool %s: your tenant's oldest Run there waits longer than the pool allows new ones to be added", out.Pool)
	}
	return fault.Later(fault.RateLimited, "queue_full", wait, "pool %s: %d Runs are queued there, as many as it allows", out.Pool, out.Queued)
}

// CheckRequest refuses what the tenant could not submit now, as a submit would, and says what one Run of it takes.
// Unknown: expected is 0.
func (s *Service) CheckRequest(ctx context.Context, p identity.Principal, n api.NewRun) (pool string, slots int64, expected time.Duration, err error) {
	b := builder{s: s, caller: p, tenant: p.Tenant, at: s.now(), names: map[string]string{}, pools: map[string]Pool{}}
	if err := b.build(ctx, []api.BatchRun{{Run: n}}); err != nil {
		return "", 0, 0, err
	}
	first := b.records[0]
	return first.Run.Pool, first.Spec.Resources.Slots * int64(len(b.records)), time.Duration(first.Spec.Expected) * time.Second, nil
}

// dryRun says where such a Run would stand, what it would cost, what blocks it.
func (s *Service) dryRun(ctx context.Context, p identity.Principal, r Request, n api.NewRun) (api.Submitted, error) {
	b := builder{s: s, caller: p, tenant: p.Tenant, at: s.now(), request: r, names: map[string]string{}, pools: map[string]Pool{}}
	if err := b.build(ctx, []api.BatchRun{{Run: n}}); err != nil {
		return api.Submitted{}, err
	}
	first := b.records[0]
	first.Run.WaitsFor = len(first.After)
	place, blockers := s.ports.Places.Preview(first.Run, first.Spec)
	if first.Spec.HoldMicro > 0 {
		left, limited, err := s.ports.Pools.MoneyLeft(ctx, p.Tenant)
		if err != nil {
			return api.Submitted{}, err
		}
		if limited && left < first.Spec.HoldMicro {
			blockers = append(blockers, api.Blocker{Reason: "budget", Detail: "the budget has less left than the pool's price times the time limit"})
		}
	}
	place.CostMicro = first.Spec.HoldMicro
	one := s.wire(first.Run)
	one.ID, one.Array, one.Index = "", "", nil
	one.Place, one.Spec = &place, &first.Spec.Request
	return api.Submitted{Runs: []api.Run{one}, Count: len(b.records), DryRun: true, Blocked: blockers}, nil
}

func checkKey(key string) error {
	if len(key) > 200 || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return fault.Invalid("Idempotency-Key", "must be at most 200 printable ASCII characters")
	}
	return nil
}

// checkGraph refuses names that are there twice and Runs that wait for each other in a circle.
func checkGraph(all []api.BatchRun) error {
	at := map[string]int{}
	for i, one := range all {
		if _, twice := at[one.Name]; twice {
			return fault.Invalid(fmt.Sprintf("runs[%d].name", i), "%q is there twice", one.Name)
		}
		at[one.Name] = i
	}
	const fresh, open, done = 0, 1, 2
	state := make([]int, len(all))
	var visit func(i int) error
	visit = func(i int) error {
		state[i] = open
		for j, a := range all[i].Run.After {
			name, local := strings.CutPrefix(a.Run, "@")
			if !local {
				continue
			}
			field := fmt.Sprintf("runs[%d].run.after[%d].run", i, j)
			next, known := at[name]
			switch {
			case !known:
				return fault.Invalid(field, "no Run of the batch is named %q", name)
			case state[next] == open:
				return fault.Invalid(field, "%q waits for itself, over %q: dependencies must not form a circle", all[i].Name, name)
			case state[next] == fresh:
				if err := visit(next); err != nil {
					return err
				}
			}
		}
		state[i] = done
		return nil
	}
	for i := range all {
		if state[i] == fresh {
			if err := visit(i); err != nil {
				return err
			}
		}
	}
	return nil
}
