package app

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/attempts"
	"github.com/roadstead/roadstead/internal/dispatcher"
	"github.com/roadstead/roadstead/internal/downloads"
	"github.com/roadstead/roadstead/internal/serve"
)

// health checks what the server depends on.
type health struct {
	ping     func(ctx context.Context) error
	free     func() (bytes int64, err error) // of disk
	reserve  int64
	queue    func() api.Queue
	settings func() (problem string) // of the stored download settings
	journal  func() downloads.JournalState
	pools    func() []dispatcher.Figures
	census   func() (attempts.Census, bool)
	stop     atomic.Bool // the server is stopping: send new work elsewhere
}

// pingLimit is how long a probe waits for the database.
const pingLimit = 2 * time.Second

// Ready runs the checks. Details name no path, address or id: anybody may ask.
func (h *health) Ready(ctx context.Context) serve.Readiness {
	ctx, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	queue := h.queue()
	out := serve.Readiness{Ready: true, Queue: sums(queue)}
	add := func(name string, ok bool, detail string) {
		out.Checks = append(out.Checks, serve.Check{Name: name, OK: ok, Detail: detail})
		out.Ready = out.Ready && ok
	}
	if err := h.ping(ctx); err != nil {
		add("database", false, "does not answer")
	} else {
		add("database", true, "answers")
	}
	if free, err := h.free(); err != nil {
		add("disk", false, "cannot be asked")
	} else {
		// A full disk refuses uploads only; downloads go on, so it does not make the server unready.
		add("disk", true, fmt.Sprintf("%d bytes free, %d kept in reserve", free, h.reserve))
	}
	// The queue runs whatever the record of settings says, so that does not make the server unready (D-9.3).
	problem := h.settings()
	out.Checks = append(out.Checks, serve.Check{Name: "settings", OK: problem == "", Detail: problem})
	// Neither does a journal that is behind: downloads go on, and only a crash would miss it.
	j := h.journal()
	out.Checks = append(out.Checks, serve.Check{Name: "journal", OK: !j.Late(), Detail: fmt.Sprintf("%d places not written down, behind by %d seconds", j.Unsaved, int(j.Behind.Seconds()))})
	out.Checks = append(out.Checks, estimates(queue.Estimates))
	census, _ := h.census()
	out.Checks = append(out.Checks, runsChecks(h.pools(), census)...)
	if h.stop.Load() {
		add("running", false, "stopping")
	} else {
		add("running", true, "")
	}
	return out
}

// What is promised of the interval told first, and how many starts it takes to say so (D-6.3).
const (
	insideLeast  = 0.9
	insideStarts = 100
)

// estimates says whether start estimates hold; wrong ones make nobody unready.
func estimates(e *api.QueueEstimates) serve.Check {
	c := serve.Check{Name: "estimates", OK: true, Detail: "nobody has waited yet"}
	if e != nil {
		told := e.Known * float64(e.Starts)
		c.OK = told < insideStarts || e.Inside >= insideLeast
		c.Detail = fmt.Sprintf("of the last %d starts %.0f %% were told before; of these %.0f %% came inside the interval, %.0f %% before p10, %.0f %% before p90",
			e.Starts, 100*e.Known, 100*e.Inside, 100*e.UnderP10, 100*e.UnderP90)
	}
	return c
}

func sums(q api.Queue) serve.Sums {
	out := serve.Sums{Seats: q.Seats, LastTickSeconds: q.TickSeconds}
	for _, c := range q.Classes {
		out.Waiting += c.Waiting
		out.Active += c.Active
		out.Paused += c.Paused
		out.Held += c.Held
	}
	return out
}
