package sim

import (
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
)

// watched is a machine whose every answer is held against a plain model: where each session stands follows from the
// effects alone, and the machine's counts must agree with that after every call (D-2.13).
type watched struct {
	t         *testing.T
	machine   Machine
	now       clock.Mono
	active    map[session.Key]bool
	waiting   map[session.Key]bool
	paused    map[session.Key]bool
	held      map[session.Key]int
	responses int
	starts    []session.Effect
}

func watch(t *testing.T, cfg Config) *watched {
	t.Helper()
	m, err := session.New(cfg.Policy(), cfg.Seed)
	if err != nil {
		t.Fatal(err)
	}
	set := func() map[session.Key]bool { return map[session.Key]bool{} }
	return &watched{t: t, machine: m, active: set(), waiting: set(), paused: set(), held: map[session.Key]int{}}
}

func (w *watched) Apply(now clock.Mono, e session.Event) []session.Effect {
	effects := w.machine.Apply(now, e)
	switch e.Kind {
	case session.Hold:
		w.held[e.Key]++
	case session.Unhold:
		w.held[e.Key] = max(0, w.held[e.Key]-1)
	case session.Cancel:
		delete(w.active, e.Key)
		delete(w.waiting, e.Key)
		delete(w.paused, e.Key)
	case session.Finish:
		w.responses--
	}
	w.follow(now, effects)
	return effects
}

func (w *watched) Tick(now clock.Mono) ([]session.Effect, time.Duration) {
	effects, next := w.machine.Tick(now)
	w.follow(now, effects)
	return effects, next
}

func (w *watched) Estimate(now clock.Mono, k session.Key) (session.Estimate, bool) {
	e, ok := w.machine.Estimate(now, k)
	w.sound(now, k, e, ok)
	return e, ok
}

func (w *watched) Answer(now clock.Mono, k session.Key) (session.Estimate, bool) {
	e, ok := w.machine.Answer(now, k)
	w.sound(now, k, e, ok)
	return e, ok
}

// sound checks what a client is told.
func (w *watched) sound(now clock.Mono, k session.Key, e session.Estimate, ok bool) {
	if ok != w.waiting[k] {
		w.t.Errorf("%s: an estimate is there: %t, the session waits: %t", time.Duration(now), ok, w.waiting[k])
	}
	if ok && e.Known && (e.Earliest > e.Start || e.Start > e.Latest || e.Earliest < now || e.Position < 1 || e.Position > len(w.waiting)) {
		w.t.Errorf("%s: estimate %+v with %d waiting", time.Duration(now), e, len(w.waiting))
	}
	if ok && e.Check <= now {
		w.t.Errorf("%s: the check time %s is not ahead", time.Duration(now), time.Duration(e.Check))
	}
}

func (w *watched) Yielding(k session.Key) bool { return w.machine.Yielding(k) }

func (w *watched) Counts() session.Counts { return w.machine.Counts() }

// follow moves the model and compares.
func (w *watched) follow(now clock.Mono, effects []session.Effect) {
	if now < w.now {
		w.t.Fatalf("time goes back from %s to %s", time.Duration(w.now), time.Duration(now))
	}
	w.now = now
	for _, e := range effects {
		switch e.Kind {
		case session.Serve:
			w.responses++
			if !w.active[e.Key] {
				w.t.Errorf("%s: a session without a seat is served", time.Duration(now))
			}
		case session.Wait:
			delete(w.paused, e.Key)
			w.waiting[e.Key] = true
		case session.Started:
			w.starts = append(w.starts, e)
			delete(w.waiting, e.Key)
			delete(w.paused, e.Key)
			delete(w.held, e.Key) // what is called to its seat counts as held no more
			w.active[e.Key] = true
		case session.Paused:
			delete(w.active, e.Key)
			w.paused[e.Key] = true
		case session.Yielded:
			delete(w.active, e.Key)
			w.waiting[e.Key] = true
		case session.Finished:
			delete(w.active, e.Key)
		case session.NoShow:
			delete(w.waiting, e.Key)
		case session.Forgot:
			delete(w.paused, e.Key)
		}
	}
	w.compare(now)
}

func (w *watched) compare(now clock.Mono) {
	counts, held := w.machine.Counts(), 0
	for _, n := range w.held {
		held += n
	}
	var got Left
	got.Responses = counts.Responses
	for _, c := range counts.Classes {
		got.Active += c.Active
		got.Waiting += c.Waiting
		got.Paused += c.Paused
		got.Held += c.Held
	}
	want := Left{Active: len(w.active), Waiting: len(w.waiting), Paused: len(w.paused), Held: held, Responses: w.responses}
	if got != want {
		w.t.Fatalf("%s: the machine counts %+v, its effects add up to %+v", time.Duration(now), got, want)
	}
}
