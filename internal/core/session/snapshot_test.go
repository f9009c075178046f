package session

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/class"
)

// A snapshot holds everybody, in the order of the starts, as often as it is taken, and leaves the places as they are.
func TestSnapshot(t *testing.T) {
	p := Default(2)
	p.PerPrincipal = 2
	r := newRig(t, p)
	for n := range uint64(40) {
		r.ask(n, n%7, class.Class(n%class.Count))
	}
	r.pass(time.Second)
	before := places(r.m)
	seated, waiting, more := r.m.Snapshot(100)
	if len(seated) != 2 || len(waiting) != 38 || more != 0 {
		t.Fatalf("%d seated, %d waiting, %d more", len(seated), len(waiting), more)
	}
	var keys []Key
	for _, s := range waiting {
		keys = append(keys, s.Key)
	}
	if !slices.Equal(keys, before) {
		t.Errorf("the snapshot's order is not that of the places")
	}
	_, part, more := r.m.Snapshot(10)
	if !reflect.DeepEqual(part, waiting[:10]) || more != 28 {
		t.Errorf("a bounded snapshot holds other sessions than the first ones, or says that %d are missing", more)
	}
	if !slices.Equal(places(r.m), before) {
		t.Error("taking a snapshot changed the places")
	}
}

// Who is vouched for is no no-show, however long nobody asks.
func TestVouch(t *testing.T) {
	r := newRig(t, Default(1))
	r.ask(1, 1, class.Bulk)
	r.ask(2, 2, class.Bulk)
	r.m.Vouch(r.now, r.now.Add(24*time.Hour))
	r.send(Event{Kind: Hold, Key: key(2)})
	for range 40 {
		r.m.Apply(r.now, Event{Kind: Progress, Key: key(1), Bytes: 1})
		if slices.ContainsFunc(r.pass(20*time.Second), func(f Effect) bool { return f.Kind == NoShow }) {
			t.Fatal("dropped although vouched for")
		}
	}
	if r.m.Counts().Classes[class.Bulk].Waiting != 1 {
		t.Error("the waiting one is gone")
	}
}
