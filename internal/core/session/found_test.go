package session

import (
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/class"
)

// D-7.3: a process that stood still for an hour heard nobody; those who waited keep their places and those who read keep
// their seats when it goes on.
func TestStandingStillDropsNobody(t *testing.T) {
	r := newRig(t, Default(1))
	r.want("reads", r.ask(1, 1, class.Bulk), Serve)
	r.want("waits", r.ask(2, 2, class.Bulk), Wait)
	r.pass(10 * time.Second)
	r.ask(2, 2, class.Bulk)
	r.now = r.now.Add(time.Hour)
	for range 60 {
		for _, e := range r.pass(time.Second) {
			t.Errorf("effect %d for download %d", e.Kind, e.Key[8])
		}
		r.m.Apply(r.now, Event{Kind: Progress, Key: key(1), Bytes: 1})
	}
	if e, ok := r.m.Estimate(r.now, key(2)); !ok || e.Arrival > r.now.Add(-time.Hour) {
		t.Errorf("the one who waited is there: %t, arrived at %s", ok, time.Duration(e.Arrival))
	}
	// It is dropped after all when it stays away.
	gone := false
	for _, e := range r.pass(time.Minute) {
		gone = gone || e.Kind == NoShow && e.Key == key(2)
	}
	if !gone {
		t.Error("who stays away past the grace is still there (D-2.11)")
	}
}
