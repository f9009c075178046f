package app

import (
	"context"

	"github.com/roadstead/roadstead/internal/attempts"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/plan"
)

// openWatch makes what looks at Runs without deciding anything of them.
func (a *App) openWatch(_ context.Context, clk clock.Clock) (err error) {
	a.run.auditor = attempts.NewAuditor(a.store, 2*(a.cfg.RunnerLease+a.cfg.leaseGrace()), clk, a.options.Log)
	a.run.planner, err = plan.NewPlanner(a.store, clk)
	return err
}

// objects are where results are kept.
func (a *App) objects() attempts.Objects {
	if a.options.WrapResults == nil {
		return blobObjects{a.blobs}
	}
	return a.options.WrapResults(blobObjects{a.blobs})
}
