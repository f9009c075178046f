package dispatcher

import (
	"fmt"
	"testing"
	"time"
)

// hear lets the dispatcher take up what it was called for.
func (r *rig) hear() {
	r.t.Helper()
	for _, p := range r.s.owned() {
		r.s.step(r.t.Context(), p, false)
	}
}

// Runs that another process queued are found without a call: new ones at the next look, and one whose transaction took
// long within ten seconds. A look reads no row that is known as it is, however many wait.
func TestNewRunsAreFound(t *testing.T) {
	r := newRig(t, 1)
	r.step()
	for i := range marksPage + 500 {
		r.submit(fmt.Sprintf("known-%05d", i), "a")
	}
	r.hear()
	r.pass(time.Second, true)
	r.rows.read = 0
	r.pass(15*time.Second, true)
	if r.rows.read > 0 {
		t.Errorf("%d rows were read again of Runs that wait", r.rows.read)
	}

	quiet := func(id string, age time.Duration) {
		r.submit(id, "b", func(row *RunRow) { row.Run.Inserted = r.clock.wall.Add(-age).UnixMilli() })
		r.s.takeDirty(r.s.owned()[0]) // nobody calls
	}
	knows := func(id string) bool { return r.s.owned()[0].runs[id] != nil }
	quiet("new", 0)
	r.pass(time.Second, true)
	if !knows("new") {
		t.Error("a new Run was not found at the next look")
	}
	quiet("late", 15*time.Second)
	r.pass(10*time.Second, true)
	if !knows("late") {
		t.Error("a Run whose transaction took 15 s was not found within 10 s")
	}
}
