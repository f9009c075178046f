package runner

import (
	"maps"
	"slices"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
)

// worth is how long a lease is taken to hold: shorter than the server says, so that an Attempt is dead on this machine
// before anybody may believe so elsewhere.
func worth(lease time.Duration) time.Duration { return lease - min(lease/6, 5*time.Second) }

func (r *Runner) holds() []api.HeldLease {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []api.HeldLease{}
	for _, id := range slices.Sorted(maps.Keys(r.held)) {
		if h := r.held[id]; !h.lost {
			out = append(out, api.HeldLease{Attempt: id, Fence: h.assignment.Fence})
		}
	}
	return out
}

// renew lets what was renewed run on.
func (r *Runner) renew(holds []api.HeldLease, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range holds {
		if h := r.held[l.Attempt]; h != nil && !h.lost {
			r.renewLocked(h, until)
		}
	}
}

func (r *Runner) renewOne(h *held, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renewLocked(h, until)
}

func (r *Runner) renewLocked(h *held, until time.Time) {
	if !until.After(h.renewed) {
		return
	}
	h.renewed = until
	if h.attempt == nil {
		return
	}
	if err := h.attempt.Renew(until); err != nil {
		r.cfg.Log.Warn("a lease could not be passed on", "attempt", h.assignment.Attempt, "error", err)
	}
}

// obey ends an Attempt as the server orders, and says whether that was news.
func (r *Runner) obey(o api.Order) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.held[o.Attempt]
	switch {
	case h == nil:
	case o.Order == "lost" && !h.lost:
		r.loseLocked(h)
		return true
	case o.Order == "cancel" && !h.cancelled:
		h.cancelled = true
		r.endLocked(h, lifecycle.CancelRequested)
		return true
	}
	return false
}

// loseLocked kills an Attempt at once: it is somebody else's. Nothing is reported of it.
func (r *Runner) loseLocked(h *held) {
	h.lost = true
	if h.attempt != nil {
		if err := h.attempt.Renew(time.Now()); err != nil {
			r.cfg.Log.Warn("a lost Attempt could not be killed; it dies at the end of its lease", "attempt", h.assignment.Attempt, "error", err)
		}
	}
	h.stop()
}

func (r *Runner) endLocked(h *held, reason lifecycle.Reason) {
	if h.attempt == nil {
		return // it hears of it before it starts
	}
	if err := h.attempt.Cancel(reason); err != nil {
		r.cfg.Log.Warn("an Attempt could not be ended", "attempt", h.assignment.Attempt, "error", err)
	}
}
