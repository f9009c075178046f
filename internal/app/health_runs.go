package app

import (
	"fmt"

	"github.com/roadstead/roadstead/internal/attempts"
	"github.com/roadstead/roadstead/internal/dispatcher"
	"github.com/roadstead/roadstead/internal/serve"
)

// runsChecks say how Runs fare. None of them makes the server unready: what it serves besides goes on, and a Run that
// waits is told why.
func runsChecks(pools []dispatcher.Figures, census attempts.Census) []serve.Check {
	loaded, manned, idle := 0, 0, 0 // idle: pools with Runs and nobody to run them
	overdue := int(census.Overdue)
	for _, p := range pools {
		if p.Owned && p.Loaded {
			loaded++
		}
		overdue = max(overdue, p.Overdue)
		switch {
		case p.Counts.Online > 0:
			manned++
		case p.Counts.Queued > 0:
			idle++
		}
	}
	return []serve.Check{
		{Name: "pools", OK: loaded == len(pools), Detail: fmt.Sprintf("%d of %d pools are loaded and decided here", loaded, len(pools))},
		{Name: "runners", OK: idle == 0, Detail: fmt.Sprintf("%d of %d pools have a runner; in %d Runs wait for one", manned, len(pools), idle)},
		{Name: "leases", OK: overdue == 0, Detail: fmt.Sprintf("%d are overdue", overdue)},
		{Name: "holds", OK: census.Drifted() == 0, Detail: fmt.Sprintf("%d differ from living Attempts", census.Drifted())},
	}
}
