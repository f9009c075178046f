// Package pools keeps pools of runners: their rules of admission, the tenants' shares and budgets, and the runners
// themselves with their keys.
package pools

import (
	"encoding/json"
	"fmt"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
)

// Defaults are what a policy means where it says nothing.
func Defaults() api.PoolPolicy {
	return api.PoolPolicy{
		Excess: "queue", TenantSoftDepth: 1_000, TenantHardDepth: 10_000, SoftDepth: 10_000, HardDepth: 100_000, SoftAge: 3600, MaxAge: 7 * 24 * 3600,
		DefaultTimeout: 3600, MaxTimeout: 24 * 3600, DefaultMemory: 512 << 20, DefaultDisk: 1 << 30, DefaultMilliCPU: 1000, LogBytes: 16 << 20, Pids: 256,
	}
}

// Bounds of a policy. What costs more than a unit of the currency for a slot-second is a mistake.
const (
	maxPrice   = 1_000_000
	maxSeconds = 366 * 24 * 3600
	maxTimeout = 30 * 24 * 3600
)

// Fill gives a policy whole: where it says nothing, the default stands.
func Fill(p api.PoolPolicy) api.PoolPolicy {
	d := Defaults()
	if p.Excess == "" {
		p.Excess = d.Excess
	}
	for _, f := range []struct {
		value     *int
		otherwise int
	}{
		{&p.TenantSoftDepth, d.TenantSoftDepth}, {&p.TenantHardDepth, max(d.TenantHardDepth, p.TenantSoftDepth)},
		{&p.SoftDepth, d.SoftDepth}, {&p.HardDepth, max(d.HardDepth, p.SoftDepth)},
	} {
		if *f.value == 0 {
			*f.value = f.otherwise
		}
	}
	for _, f := range []struct {
		value     *int64
		otherwise int64
	}{
		{&p.SoftAge, d.SoftAge}, {&p.MaxAge, d.MaxAge}, {&p.MaxTimeout, max(d.MaxTimeout, p.DefaultTimeout)}, {&p.DefaultTimeout, d.DefaultTimeout},
		{&p.DefaultMemory, d.DefaultMemory}, {&p.DefaultDisk, d.DefaultDisk}, {&p.DefaultMilliCPU, d.DefaultMilliCPU}, {&p.LogBytes, d.LogBytes}, {&p.Pids, d.Pids},
	} {
		if *f.value == 0 {
			*f.value = f.otherwise
		}
	}
	p.DefaultTimeout = min(p.DefaultTimeout, p.MaxTimeout)
	return p
}

// Check refuses a policy that makes no sense, naming the field.
func Check(p api.PoolPolicy) error {
	p = Fill(p)
	switch {
	case p.Excess != "queue" && p.Excess != "reject":
		return fault.Invalid("policy.excess", "must be queue or reject, not %q", p.Excess)
	case p.TenantSoftDepth > p.TenantHardDepth:
		return fault.Invalid("policy.tenantSoftDepth", "must not be above tenantHardDepth, %d", p.TenantHardDepth)
	case p.SoftDepth > p.HardDepth:
		return fault.Invalid("policy.softDepth", "must not be above hardDepth, %d", p.HardDepth)
	}
	for _, f := range []struct {
		field    string
		value    int64
		min, max int64
	}{
		{"tenantSoftDepth", int64(p.TenantSoftDepth), 1, 10_000_000}, {"tenantHardDepth", int64(p.TenantHardDepth), 1, 10_000_000},
		{"softDepth", int64(p.SoftDepth), 1, 10_000_000}, {"hardDepth", int64(p.HardDepth), 1, 10_000_000},
		{"softAgeSeconds", p.SoftAge, 1, maxSeconds}, {"maxAgeSeconds", p.MaxAge, 1, maxSeconds}, {"priceMicroPerSlotSecond", p.PriceMicro, 0, maxPrice},
		{"defaultTimeoutSeconds", p.DefaultTimeout, 1, maxTimeout}, {"maxTimeoutSeconds", p.MaxTimeout, 1, maxTimeout},
		{"defaultMemoryBytes", p.DefaultMemory, 1 << 20, 1 << 44}, {"defaultDiskBytes", p.DefaultDisk, 1 << 20, 1 << 50},
		{"defaultMilliCpu", p.DefaultMilliCPU, 1, 10_000_000}, {"logBytes", p.LogBytes, 1 << 10, 1 << 32}, {"pids", p.Pids, 8, 1 << 22},
	} {
		if f.value < f.min || f.value > f.max {
			return fault.Invalid("policy."+f.field, "must be from %d to %d, not %d", f.min, f.max, f.value)
		}
	}
	return nil
}

// ParsePolicy reads a policy as it is stored and gives it whole.
func ParsePolicy(text string) (api.PoolPolicy, error) {
	var p api.PoolPolicy
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, fmt.Errorf("reading a pool's policy: %w", err)
	}
	return Fill(p), nil
}
