package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// builder turns requests into records: it resolves what they name and fills in every default, so that nothing later
// depends on what was changed meanwhile.
type builder struct {
	s       *Service
	caller  identity.Principal
	tenant  string
	at      time.Time
	request Request

	names   map[string]string // of a batch: name -> run or array id
	pools   map[string]Pool
	order   []string // pools as they came
	records []NewRecord
	prefix  string   // of field names
	waiting []string // what the request being built waits for
}

func (b *builder) field(name string) string { return b.prefix + name }

// build makes the records of all requests, those that are waited for before those that wait.
func (b *builder) build(ctx context.Context, all []api.BatchRun) error {
	for _, i := range sorted(all) {
		if len(all) > 1 || all[i].Name != "" {
			b.prefix = fmt.Sprintf("runs[%d].run.", i)
		}
		if err := b.one(ctx, all[i].Name, all[i].Run); err != nil {
			return err
		}
	}
	return nil
}

// sorted gives the indexes in an order in which nobody comes before what it waits for. checkGraph refused circles.
func sorted(all []api.BatchRun) []int {
	var order []int
	placed := map[string]bool{}
	for len(order) < len(all) {
		for i, one := range all {
			waits := slices.ContainsFunc(one.Run.After, func(a api.After) bool { return a.Run != "" && a.Run[0] == '@' && !placed[a.Run[1:]] })
			if !slices.Contains(order, i) && !waits {
				order, placed[one.Name] = append(order, i), true
			}
		}
	}
	return order
}

func (b *builder) one(ctx context.Context, name string, n api.NewRun) error {
	if err := checkRequest(n, b.s.cfg.MaxElements); err != nil {
		return prefixed(err, b.prefix)
	}
	pool, err := b.pool(ctx, n.Pool)
	if err != nil {
		return err
	}
	needs, err := b.needs(n)
	if err != nil {
		return err
	}
	spec, pkg, err := b.spec(ctx, n, pool)
	if err != nil {
		return err
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("writing the Run's specification: %w", err)
	}
	if len(text) > b.s.cfg.MaxSpec {
		return fault.Invalid(b.field("inputs"), "the Run's specification has %d bytes, more than the %d allowed: put large inputs into the store and name them as file", len(text), b.s.cfg.MaxSpec)
	}
	record := NewRecord{Spec: spec, After: needs, Run: Run{
		Tenant: b.tenant, Pool: pool.Name, State: lifecycle.Queued, Version: 1, CreatedAt: b.at, CreatedBy: b.caller.ID, CreatedName: b.caller.Name,
		NextEligible: b.at, EligibleAt: b.at, Priority: n.Priority, Class: n.Class, Lane: spec.Lane, Inserted: b.at.UnixMilli(),
	}}
	if n.NotBefore != nil && n.NotBefore.After(b.at) {
		record.Run.NextEligible = n.NotBefore.UTC().Truncate(time.Millisecond)
		record.Run.EligibleAt = record.Run.NextEligible
	}
	if pkg != nil {
		record.Run.Package = pkg.Name + "@" + pkg.Version
		if record.Run.Class == "" {
			record.Run.Class = pkg.Class
		}
	}
	if record.Run.Class == "" {
		record.Run.Class = "background"
	}
	if n.Concurrency != nil {
		record.LanePolicy = or(n.Concurrency.Policy, "queue")
	}
	b.elements(name, record, n.Array)
	return nil
}

// elements adds the record, or one for each element of its array.
func (b *builder) elements(name string, record NewRecord, array *api.Array) {
	if array == nil {
		record.Run.ID = "run_" + b.s.cfg.NewID()
		b.names[name] = record.Run.ID
		b.records = append(b.records, record)
		return
	}
	id := "arr_" + b.s.cfg.NewID()
	b.names[name] = id
	for i := array.First; i <= array.Last; i++ {
		one := record
		one.Run.ID, one.Run.Array, one.Run.Index = "run_"+b.s.cfg.NewID(), id, i
		b.records = append(b.records, one)
	}
}

// pool finds the pool once per submit.
func (b *builder) pool(ctx context.Context, name string) (Pool, error) {
	name = or(name, "default")
	if p, known := b.pools[name]; known {
		return p, nil
	}
	p, err := b.s.ports.Pools.ForSubmit(ctx, b.caller, name)
	if fault.Is(err, fault.NotFound) {
		return p, fault.Invalid(b.field("pool"), "there is no pool named %q for you", name)
	}
	if err == nil {
		b.pools[name], b.order = p, append(b.order, name)
	}
	return p, err
}

// needs turns after into what has to end first.
func (b *builder) needs(n api.NewRun) (needs []Need, err error) {
	b.waiting = nil
	for i, a := range n.After {
		need := Need{Field: b.field(fmt.Sprintf("after[%d].run", i)), On: b.local(a.Run), When: or(a.When, "ok")}
		if need.On == "" {
			return nil, fault.Invalid(need.Field, "no Run of the batch is named %q", a.Run)
		}
		needs, b.waiting = append(needs, need), append(b.waiting, need.On)
	}
	return needs, nil
}

// local gives the id behind @name; ids stay as they are.
func (b *builder) local(ref string) string {
	if len(ref) > 0 && ref[0] == '@' {
		return b.names[ref[1:]]
	}
	return ref
}

// bounds is what each pool's policy allows to be queued.
func (b *builder) bounds() (all []Bounds) {
	for _, name := range b.order {
		p := b.pools[name].Policy
		bound := Bounds{Pool: name, TenantDepth: p.TenantHardDepth, Depth: p.HardDepth}
		if p.Excess == "reject" {
			bound.TenantDepth, bound.Depth = min(p.TenantSoftDepth, p.TenantHardDepth), min(p.SoftDepth, p.HardDepth)
			if p.SoftAge > 0 {
				bound.OldestAt = b.at.Add(-time.Duration(p.SoftAge) * time.Second)
			}
		}
		all = append(all, bound)
	}
	return all
}

func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}
