package dispatch

import (
	"container/heap"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

// TestStories runs the scripts in testdata: a command on each line, and under ---- what the machine answered. While a
// story waits, Attempts end when their time is over. UPDATE=1 writes the answers anew; never keep a difference that you
// cannot explain.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d stories found: %v", len(files), err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			got := tell(t, string(text))
			if os.Getenv("UPDATE") != "" {
				if err := os.WriteFile(f, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got != string(text) {
				t.Errorf("the story went otherwise:\n%s", got)
			}
		})
	}
}

// teller plays one story.
type teller struct {
	*rig
	decisions map[string]Decision
	lines     []string
}

// tell runs the commands of a script and gives it back with the answers of this run.
func tell(t *testing.T, script string) string {
	s := &teller{rig: newRig(t, Default()), decisions: map[string]Decision{}}
	s.started = func(d Decision, _ time.Duration) {
		s.decisions[d.Run] = d
		s.say("%s starts on %s", d.Run, d.Runner)
	}
	s.finished = func(string, Share, time.Duration) {}
	var out strings.Builder
	for _, block := range strings.Split(strings.TrimRight(script, "\n"), "\n\n") {
		commands, _, _ := strings.Cut(block, "\n----")
		out.WriteString(commands)
		s.lines = nil
		for _, line := range strings.Split(commands, "\n") {
			if !strings.HasPrefix(line, "#") && line != "" {
				s.command(strings.Fields(line))
			}
		}
		if len(s.lines) > 0 {
			out.WriteString("\n----\n" + strings.Join(s.lines, "\n"))
		}
		out.WriteString("\n\n")
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

func (s *teller) say(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf("%-8s ", s.now.Sub(clock.Mono(time.Hour)))+fmt.Sprintf(format, args...))
}

func (s *teller) command(w []string) {
	switch w[0] {
	case "wait":
		s.wait(s.span(w[1]))
	case "decide":
		s.decide()
	case "runner":
		s.ok(s.m.SetRunner(s.now, Runner{ID: w[1], Capacity: s.vector(w[2:]), Labels: s.labels(w[2:]), State: s.state(w[2:])}))
	case "drop":
		for _, id := range s.m.DropRunner(s.now, w[1]) {
			s.say("%s is on no runner", id)
		}
	case "tenant":
		n, err := strconv.Atoi(strings.TrimPrefix(w[2], "weight="))
		s.ok(err)
		s.ok(s.m.SetTenant(s.now, Tenant{ID: w[1], Weight: n, Cap: s.vector(w[3:])}))
	case "fairness":
		for _, f := range s.m.Fairness() {
			s.say("%s: W %s, error %s, bound %s", f.Tenant, f.Served, f.Error, f.Bound)
		}
	default:
		s.about(w[0], w[1:])
	}
}

// about is what is done to a Run, and asked of it.
func (s *teller) about(id string, w []string) {
	switch w[0] {
	case "of": // TENANT, how long, and what else
		s.enter(id, w[1], w[2], w[3:])
	case "why":
		for _, y := range s.m.Why(s.now, id) {
			line := fmt.Sprintf("%s: %s", id, y.Reason)
			if y.Until != 0 {
				line += " until " + y.Until.Sub(clock.Mono(time.Hour)).String()
			}
			s.say("%s", line)
		}
	case "place":
		if o, ok := s.m.Forecast(s.now, Limits{}).Of(id); !ok || !o.Known {
			s.say("%s: place not known, %s", id, o.Reason)
		} else {
			s.say("%s: place %d, starts in %s, %s", id, o.Place, o.Start.Sub(s.now), o.Reason)
		}
	case "blocked":
		s.m.Block(s.now, id, Budget)
	case "free":
		s.m.Unblock(s.now, id, Budget|Hold|Dependency)
	case "cancel":
		s.say("%s cancelled: %v", id, s.m.Cancel(s.now, id))
	case "undo":
		s.say("%s undone: %v", id, s.m.Undo(s.now, s.decisions[id]))
		s.gone(id)
	case "retry": // after a pause
		s.m.Requeue(s.now, id, s.now.Sub(s.decisions[id].At), s.now.Add(s.span(w[1])))
		s.gone(id)
	default:
		s.t.Fatalf("no such command: %s %v", id, w)
	}
}

// gone takes an Attempt from those that will end.
func (s *teller) gone(id string) {
	for i := range s.ends {
		if s.ends[i].d.Run == id {
			heap.Remove(&s.ends, i)
			return
		}
	}
}

func (s *teller) enter(id, tenant, took string, w []string) {
	d := s.span(took)
	r := Run{ID: id, Tenant: tenant, Need: s.vector(w), Labels: s.labels(w), Timeout: d, Expected: d, Fast: d, Slow: d}
	if r.Need == (Vector{}) {
		r.Need[Slots] = 1
	}
	for _, pair := range w {
		k, v, _ := strings.Cut(pair, "=")
		switch k {
		case "timeout":
			r.Timeout = s.span(v)
		case "expected":
			r.Expected = s.span(v)
			r.Timeout = max(r.Timeout, r.Expected)
		case "priority":
			n, err := strconv.Atoi(v)
			s.ok(err)
			r.Priority = n
		case "after":
			r.NotBefore = s.now.Add(s.span(v))
		case "blocked":
			r.Blockers = map[string]Blocker{"budget": Budget, "hold": Hold, "dependency": Dependency}[v]
		}
	}
	s.ok(s.m.Submit(s.now, r))
	s.took[id], s.came[id] = d, s.now
}

func (s *teller) span(v string) time.Duration {
	d, err := time.ParseDuration(v)
	s.ok(err)
	return d
}

func (s *teller) vector(w []string) (v Vector) {
	for _, pair := range w {
		k, n, _ := strings.Cut(pair, "=")
		for i, name := range []string{"slots", "cpu", "memory", "disk", "gpu"} {
			if k == name {
				v[i], _ = strconv.ParseInt(n, 10, 64)
			}
		}
	}
	return v
}

func (s *teller) labels(w []string) (all []Label) {
	for _, pair := range w {
		if k, v, ok := strings.Cut(pair, ":"); ok {
			all = append(all, Label{k, v})
		}
	}
	return all
}

func (s *teller) state(w []string) RunnerState {
	for _, word := range w {
		switch word {
		case "draining":
			return Draining
		case "lost":
			return Lost
		}
	}
	return Active
}

// wait lets time go by, and tells what ends and starts.
func (s *teller) wait(d time.Duration) {
	until := s.now.Add(d)
	for {
		s.decide()
		at, more := s.m.Next()
		if len(s.ends) > 0 && (!more || s.ends[0].at <= at) {
			at, more = s.ends[0].at, true
		}
		if !more || at > until {
			s.now = until
			return
		}
		for s.now = at; len(s.ends) > 0 && s.ends[0].at <= at; {
			if e, ok := s.next(); ok {
				s.say("%s ends", e.d.Run)
			}
		}
	}
}
