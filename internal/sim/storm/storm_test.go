package storm

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/core/session"
)

// Generated fleets in trouble break no rule, and every trouble there is happens (D-13.1). A seed that fails here replays
// with: roadstead simulate --faults --seed N --hours 2.
func TestStorm(t *testing.T) {
	all, err := Many(t.Context(), 0, 23, 2*time.Hour, 2, func(v *Violation) { t.Errorf("%v\n%s", v, v.Story) })
	if err != nil {
		t.Fatal(err)
	}
	if all.Waiting < all.Time/2 {
		t.Errorf("clients waited in %s of %s", all.Waiting, all.Time)
	}
	if all.Crashes == 0 || all.Freezes == 0 || all.NoShows == 0 || all.Yielded == 0 || all.Aside == 0 || all.Refused == 0 || all.Paused == 0 || all.Promised == 0 {
		t.Errorf("a trouble did not come: %+v", all)
	}
}

// A seed gives the same run every time (D-13.1).
func TestStormReplays(t *testing.T) {
	first, err := Run(t.Context(), 3, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if again, err := Run(t.Context(), 3, time.Hour); err != nil || again != first {
			t.Fatalf("seed 3 gave %+v, then %+v, error %v", first, again, err)
		}
	}
}

// A rule that is broken is told with its seed and with the story of the session at fault.
func TestViolationTellsItsStory(t *testing.T) {
	sc := newScenario(5, time.Hour)
	w, err := newWorld(&sc)
	if err != nil {
		t.Fatal(err)
	}
	w.policy.Sessions = 0 // the book believes in fewer seats than the machine
	if err := w.run(t.Context()); err == nil || !strings.Contains(err.Error(), "seats taken of 0") {
		t.Fatalf("error %v", err)
	}
	story := w.story.tell(w.victim)
	if !strings.Contains(story, "begins a download") || !strings.Contains(story, "* download") {
		t.Errorf("the story:\n%s", story)
	}
	v := &Violation{Seed: 5, Scenario: sc.String(), At: time.Minute, Rule: errors.New("a rule"), Story: story}
	if !strings.HasPrefix(v.Error(), "seed 5, 1m0s into storm: ") {
		t.Errorf("error %v", v)
	}
}

// The book catches a machine whose counts and effects part (D-2.13).
func TestBookCatchesALostEffect(t *testing.T) {
	sc := newScenario(5, time.Hour)
	w, err := newWorld(&sc)
	if err != nil {
		t.Fatal(err)
	}
	e := session.Event{Kind: session.Request, Key: keyOf(1), Principal: principalKey(0), Size: 1 << 30, To: 1 << 30}
	w.machine.Apply(w.mono(), e) // nobody told the book
	if w.book.compare(); w.broken == nil {
		t.Error("nothing was noticed")
	}
}
