package app

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/attempts"
	"github.com/roadstead/roadstead/internal/dispatcher"
	"github.com/roadstead/roadstead/internal/downloads"
)

func TestReadiness(t *testing.T) {
	var pingErr, diskErr error
	problem := "the stored record does not fit"
	h := &health{
		ping:     func(context.Context) error { return pingErr },
		free:     func() (int64, error) { return 5, diskErr },
		settings: func() string { return problem },
		pools:    func() []dispatcher.Figures { return nil },
		census:   func() (attempts.Census, bool) { return attempts.Census{}, false },
		journal:  func() downloads.JournalState { return downloads.JournalState{Used: true, Behind: time.Hour} },
		queue: func() api.Queue {
			return api.Queue{Seats: 4, TickSeconds: .25, Classes: []api.QueueClass{{Waiting: 2, Active: 1}, {Waiting: 3, Held: 1, Paused: 1}}}
		},
	}
	got := h.Ready(t.Context())
	if !got.Ready || got.Queue.Waiting != 5 || got.Queue.Active != 1 || got.Queue.Held != 1 || got.Queue.Paused != 1 || got.Queue.Seats != 4 || got.Queue.LastTickSeconds != .25 {
		t.Errorf("got %+v", got)
	}
	// Settings that do not fit are told, and the server serves on its environment (D-9.3).
	for _, c := range got.Checks {
		if c.Name == "settings" && (c.OK || c.Detail != problem) {
			t.Errorf("settings: %+v", c)
		}
	}
	for name, set := range map[string]func(){
		"database away": func() { pingErr = errors.New("away") },
		"disk away":     func() { diskErr = errors.New("away") },
		"stopping":      func() { h.stop.Store(true) },
	} {
		pingErr, diskErr = nil, nil
		h.stop.Store(false)
		set()
		if h.Ready(t.Context()).Ready {
			t.Errorf("%s, and yet ready", name)
		}
	}
}

// Readiness tells how start estimates hold, from a hundred starts on whether they do (D-6.3).
func TestReadinessOfEstimates(t *testing.T) {
	for _, c := range []struct {
		e  *api.QueueEstimates
		ok bool
	}{
		{nil, true},
		{&api.QueueEstimates{Starts: 50, Known: 1, Inside: 0.2}, true},
		{&api.QueueEstimates{Starts: 1000, Known: 0.05, Inside: 0.2}, true},
		{&api.QueueEstimates{Starts: 200, Known: 1, Inside: 0.95, UnderP10: 0.1, UnderP90: 0.9}, true},
		{&api.QueueEstimates{Starts: 200, Known: 1, Inside: 0.85}, false},
	} {
		if got := estimates(c.e); got.OK != c.ok || got.Name != "estimates" || got.Detail == "" {
			t.Errorf("%+v of %+v", got, c.e)
		}
	}
}
