package main

import (
	"context"
	"fmt"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/dispatch"
)

const (
	waiting     = 40_000 // Runs that wait, however many tenants there are
	lives       = 5000   // timed together
	coreRounds  = 15
	manyTenants = 10_000
	fewTenants  = 100
)

// core is a full pool of 500 slots in which as many Runs wait, of so many tenants.
type core struct {
	m       *dispatch.Machine
	tenants int
	now     clock.Mono
	n       int
	running []string
}

func newCore(tenants int) (*core, error) {
	m, err := dispatch.New(dispatch.Default())
	if err != nil {
		return nil, err
	}
	c := &core{m: m, tenants: tenants, now: clock.Mono(time.Hour)}
	for i := range 50 {
		if err := m.SetRunner(c.now, dispatch.Runner{ID: fmt.Sprintf("r%02d", i), Capacity: dispatch.Vector{dispatch.Slots: 10}}); err != nil {
			return nil, err
		}
	}
	for i := range tenants {
		if err := m.SetTenant(c.now, dispatch.Tenant{ID: tenantName(i), Weight: 1 + i%4}); err != nil {
			return nil, err
		}
	}
	for i := range waiting {
		if err := m.Submit(c.now, c.run(i%tenants)); err != nil {
			return nil, err
		}
	}
	for _, d := range m.Decide(c.now, 500) {
		c.running = append(c.running, d.Run)
	}
	return c, nil
}

func tenantName(i int) string { return fmt.Sprintf("t%05d", i) }

func (c *core) run(tenant int) dispatch.Run {
	c.n++
	return dispatch.Run{
		ID: fmt.Sprintf("run_%08d", c.n), Tenant: tenantName(tenant), Need: dispatch.Vector{dispatch.Slots: 1}, Timeout: time.Minute, Expected: 10 * time.Second,
	}
}

// live submits, settles and decides Runs of the tenants in turn, one after the other.
func (c *core) live() (time.Duration, error) {
	all := make([]dispatch.Run, lives)
	for i := range all {
		all[i] = c.run(c.n * 7919 % c.tenants)
	}
	return timed(func() error {
		for i, r := range all {
			if err := c.m.Submit(c.now, r); err != nil {
				return err
			}
			seat := i % len(c.running)
			c.m.Finish(c.now, c.running[seat], 11*time.Second)
			started := c.m.Decide(c.now, 10)
			if len(started) != 1 {
				return fmt.Errorf("%d decisions", len(started))
			}
			c.running[seat] = started[0].Run
			c.now += clock.Mono(time.Millisecond)
		}
		return nil
	})
}

// tenants measures what a Run costs the machine, submitted, decided and settled, with few tenants and with many, while as
// many Runs wait.
func (b *bench) tenants(context.Context) error {
	few, err := newCore(fewTenants)
	if err != nil {
		return err
	}
	many, err := newCore(manyTenants)
	if err != nil {
		return err
	}
	var r ratios
	var own, base []time.Duration
	for range coreRounds {
		lo, err := few.live()
		if err != nil {
			return err
		}
		hi, err := many.live()
		if err != nil {
			return err
		}
		r.add(hi, lo)
		own, base = append(own, hi), append(base, lo)
	}
	b.atMost("runs_core_cost_10000_vs_100_tenants", r.median(), 4)
	fmt.Printf("# a Run costs the machine %v with %d tenants, %v with %d\n", median(own)/lives, manyTenants, median(base)/lives, fewTenants)
	return nil
}
