package runs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
)

// spec resolves what a request names. pkg is nil for a command or an image.
func (b *builder) spec(ctx context.Context, n api.NewRun, pool Pool) (spec Spec, pkg *Package, err error) {
	policy := pool.Policy
	spec = Spec{
		Request: n, Command: n.Command, Resources: n.Resources, Placement: n.Placement, Timeout: n.Timeout, Grace: n.Grace, Expected: n.Expected,
		LogBytes: policy.LogBytes, Pids: policy.Pids, Network: policy.Network, Outputs: n.Outputs, Secrets: n.Secrets, Env: n.Env,
		Traceparent: b.request.Traceparent,
	}
	inputs := n.Inputs
	if n.Package != "" {
		if pkg, err = b.resolve(ctx, &spec, n); err != nil {
			return spec, nil, err
		}
		inputs = pkg.Inputs
	}
	if n.Image != "" {
		image, err := b.object(ctx, "image", n.Image)
		if err != nil {
			return spec, nil, err
		}
		spec.Image = &image
	}
	if n.Retry != nil {
		spec.Retry = *n.Retry
	}
	if spec.Retry.BackoffSeconds == 0 {
		spec.Retry.BackoffSeconds = 5
	}
	spec.Grace = or(spec.Grace, 10)
	fill(&spec.Resources, api.Resources{Slots: 1, MilliCPU: policy.DefaultMilliCPU, MemoryBytes: policy.DefaultMemory, DiskBytes: policy.DefaultDisk})
	spec.Timeout = or(spec.Timeout, policy.DefaultTimeout)
	if spec.Timeout > policy.MaxTimeout {
		return spec, nil, fault.Invalid(b.field("timeoutSeconds"), "pool %s allows at most %d, not %d", pool.Name, policy.MaxTimeout, spec.Timeout)
	}
	spec.Expected = min(spec.Expected, spec.Timeout)
	spec.PriceMicro = policy.PriceMicro
	spec.HoldMicro = policy.PriceMicro * spec.Timeout * spec.Resources.Slots
	if n.Concurrency != nil {
		spec.Lane = n.Concurrency.Key
	}
	if n.Array != nil {
		spec.ArrayLimit = n.Array.Limit
	}
	if spec.Inputs, err = b.inputs(ctx, inputs); err != nil {
		return spec, nil, err
	}
	if err := b.affordable(ctx, spec); err != nil {
		return spec, nil, err
	}
	err = b.s.ports.Secrets.Check(ctx, b.tenant, spec.PackageName, spec.Secrets)
	return spec, pkg, err
}

// resolve fills the specification from the package's version; what the request says goes before.
func (b *builder) resolve(ctx context.Context, spec *Spec, n api.NewRun) (*Package, error) {
	pkg, err := b.s.ports.Packages.Resolve(ctx, b.caller, n.Package, n.Inputs)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.Invalid(b.field("package"), "there is no package %q for you", n.Package)
	}
	if err != nil {
		return nil, prefixed(err, b.prefix)
	}
	if spec.Timeout == 0 {
		spec.Timeout = pkg.Timeout
	}
	if pkg.MaxTimeout > 0 && spec.Timeout > pkg.MaxTimeout {
		return nil, fault.Invalid(b.field("timeoutSeconds"), "package %s allows at most %d, not %d", pkg.Name, pkg.MaxTimeout, spec.Timeout)
	}
	spec.PackageName = pkg.Name
	if pkg.Image {
		spec.Image = &pkg.Object
	} else {
		spec.Package = &pkg.Object
	}
	spec.Command = append(slices.Clone(pkg.Command), n.Command...)
	spec.Grace = or(spec.Grace, pkg.Grace)
	spec.Network = spec.Network && pkg.Network
	spec.Outputs = pkg.Outputs
	fill(&spec.Resources, pkg.Resources)
	if pkg.Retry != nil {
		spec.Retry = *pkg.Retry
	}
	for _, name := range pkg.Secrets {
		if !slices.Contains(spec.Secrets, name) {
			spec.Secrets = append(spec.Secrets, name)
		}
	}
	return &pkg, nil
}

// inputs fixes where each input comes from.
func (b *builder) inputs(ctx context.Context, all map[string]api.Input) (map[string]BoundInput, error) {
	out := map[string]BoundInput{}
	for _, name := range sortedKeys(all) {
		in, field := all[name], b.field("inputs."+name)
		switch {
		case in.Result != nil:
			of := api.ResultOf{Run: b.local(in.Result.Run), Output: in.Result.Output}
			if of.Run == "" || !slices.Contains(b.waiting, of.Run) {
				return nil, fault.Invalid(field, "name the Run it takes a result of in after as well")
			}
			out[name] = BoundInput{Result: &of}
		case in.File != "":
			object, err := b.object(ctx, "inputs."+name, in.File)
			if err != nil {
				return nil, err
			}
			out[name] = BoundInput{Object: &object}
		default:
			out[name] = BoundInput{Value: text(in.Value)}
		}
	}
	return out, nil
}

// object finds repository/path in the store.
func (b *builder) object(ctx context.Context, field, ref string) (Object, error) {
	repository, path, found := strings.Cut(ref, "/")
	if !found || repository == "" || path == "" {
		return Object{}, fault.Invalid(b.field(field), "must be repository/path, not %q", ref)
	}
	object, err := b.s.ports.Objects.File(ctx, b.caller, repository, path)
	if fault.Is(err, fault.NotFound) {
		return Object{}, fault.Invalid(b.field(field), "there is no file %q for you", ref)
	}
	return object, err
}

// affordable refuses what costs more than the whole budget: it could never start.
func (b *builder) affordable(ctx context.Context, spec Spec) error {
	if spec.HoldMicro == 0 {
		return nil
	}
	left, limited, err := b.s.ports.Pools.MoneyLeft(ctx, b.tenant)
	if err == nil && limited && spec.HoldMicro > left {
		return fault.Invalid(b.field("timeoutSeconds"), "%d s cost up to %s, and your budget has %s left in all: ask for less time, or for a larger budget",
			spec.Timeout, money(spec.HoldMicro), money(left))
	}
	return err
}

func money(micro int64) string { return fmt.Sprintf("%d.%06d", micro/1e6, micro%1e6) }

// fill sets what is absent.
func fill(r *api.Resources, from api.Resources) {
	r.Slots = or(r.Slots, from.Slots)
	r.MilliCPU = or(r.MilliCPU, from.MilliCPU)
	r.MemoryBytes = or(r.MemoryBytes, from.MemoryBytes)
	r.DiskBytes = or(r.DiskBytes, from.DiskBytes)
}

// prefixed names the fields of a refusal as they stand in a batch.
func prefixed(err error, prefix string) error {
	f := fault.From(err)
	if prefix == "" || len(f.Details) == 0 {
		return err
	}
	named := *f
	named.Details = nil
	for _, d := range f.Details {
		named.Details = append(named.Details, fault.Detail{Field: prefix + d.Field, Problem: d.Problem})
	}
	named.Message = prefix + f.Message
	return &named
}
