package serve

import (
	"context"
	"encoding/json"
	"net/http"
)

// Health tells whether the server can do its work.
type Health interface {
	// Ready reports the checks of everything the server depends on. It does not block for more than a few seconds.
	Ready(ctx context.Context) Readiness
}

// Readiness is the body of /readyz: sums and lengths, never an id.
type Readiness struct {
	Ready  bool    `json:"ready"`
	Checks []Check `json:"checks"`
	Queue  Sums    `json:"queue"`
}

// Check is one dependency.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"` // with ?verbose
}

// Sums are the queue's counts over all classes (D-11.3).
type Sums struct {
	Waiting         int     `json:"waiting"`
	Active          int     `json:"active"`
	Paused          int     `json:"paused"`
	Held            int     `json:"held"`
	Seats           int     `json:"seats"`
	LastTickSeconds float64 `json:"lastTickSeconds"`
}

// ready answers 200 when every check passes, 503 otherwise.
func ready(h Health) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		state := h.Ready(r.Context())
		if _, verbose := r.URL.Query()["verbose"]; !verbose {
			for i := range state.Checks {
				state.Checks[i].Detail = ""
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if !state.Ready {
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return json.NewEncoder(w).Encode(state)
	}
}
