package session

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
)

// TestStories runs the scripts in testdata: a command on each line, and under ---- what the machine answered. While a
// story waits, everybody who waits polls when told and everybody with a seat receives bytes. UPDATE=1 writes the
// answers anew; never keep a difference that you cannot explain.
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
	t     *testing.T
	m     *Machine
	now   clock.Mono
	names map[Key]string
	cast  map[string]*actor
	order []string
	out   strings.Builder
}

type actor struct {
	event Event
	check clock.Mono
	begun bool
	rate  int64 // bytes per second that it takes
	held  bool  // the governor holds it back all the time
}

// tell runs the commands of a script and gives it back with the answers of this run.
func tell(t *testing.T, script string) string {
	s := &teller{t: t, now: clock.Mono(time.Hour), names: map[Key]string{}, cast: map[string]*actor{}}
	for _, block := range strings.Split(strings.TrimRight(script, "\n"), "\n\n") {
		commands, _, _ := strings.Cut(block, "\n----")
		s.out.WriteString(commands)
		var answers []string
		for _, line := range strings.Split(commands, "\n") {
			if !strings.HasPrefix(line, "#") && line != "" {
				answers = append(answers, s.command(strings.Fields(line))...)
			}
		}
		if len(answers) > 0 {
			s.out.WriteString("\n----\n" + strings.Join(answers, "\n"))
		}
		s.out.WriteString("\n\n")
	}
	return strings.TrimRight(s.out.String(), "\n") + "\n"
}

func (s *teller) command(w []string) []string {
	switch w[0] {
	case "policy":
		return s.policy(w[1:])
	case "wait":
		return s.wait(s.span(w[1]))
	case "window":
		return s.window(w[1:])
	}
	name, a := w[0], s.cast[w[0]]
	switch w[1] {
	case "asks":
		a = s.enter(name, w[2:])
		return s.ask(name, a)
	case "polls":
		return s.ask(name, a)
	case "ends":
		s.effects(s.m.Apply(s.now, Event{Kind: Progress, Key: a.event.Key, Bytes: a.event.Size}))
		return s.effects(s.m.Apply(s.now, Event{Kind: Finish, Key: a.event.Key, From: a.event.From, To: a.event.Size}))
	case "has": // received so many bytes
		n, _ := strconv.Atoi(strings.TrimSuffix(w[2], "MB"))
		s.m.Apply(s.now, Event{Kind: Progress, Key: a.event.Key, Bytes: int64(n) * mega})
		return nil
	case "reads": // at so many kB per second; held: the governor gives it no more
		n, _ := strconv.Atoi(strings.TrimSuffix(w[2], "kB"))
		a.rate, a.held = int64(n)<<10, len(w) > 3
		return nil
	case "breaks":
		return s.effects(s.m.Apply(s.now, Event{Kind: Finish, Key: a.event.Key}))
	case "why":
		return s.why(name, a)
	}
	s.t.Fatalf("no such command: %v", w)
	return nil
}

func (s *teller) span(v string) time.Duration {
	d, err := time.ParseDuration(v)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *teller) policy(w []string) []string {
	p := Default(4)
	if s.m != nil {
		p = s.m.Policy()
	}
	for _, pair := range w {
		k, v, _ := strings.Cut(pair, "=")
		n, _ := strconv.Atoi(strings.TrimSuffix(v, "MB"))
		switch k {
		case "seats":
			p.Sessions, p.PerPrincipal, p.Reserve = n, min(4, n), 0
		case "reserve":
			p.Reserve = n
		case "share":
			p.PerPrincipal = n
		case "aging":
			p.Aging = s.span(v)
		case "preempt":
			p.Preempt = v == "on"
		case "min":
			n, _ = strconv.Atoi(strings.TrimSuffix(v, "kB"))
			p.MinRate = int64(n) << 10
		case "link":
			p.LinkRate = int64(n) * mega
		case "strategy":
			p.Strategy = map[string]Strategy{"ordered": Ordered, "smallest-first": SmallestFirst}[v]
		default:
			s.t.Fatalf("no such policy: %s", pair)
		}
	}
	if s.m != nil {
		if err := s.m.Configure(s.now, p); err != nil {
			return []string{err.Error()}
		}
		return nil
	}
	m, err := New(p, 1)
	if err != nil {
		s.t.Fatal(err)
	}
	s.m = m
	return nil
}

// enter reads: CLASS SIZEMB [of PRINCIPAL] [tool]
func (s *teller) enter(name string, w []string) *actor {
	c, err := class.Parse("class", w[0])
	if err != nil {
		s.t.Fatal(err)
	}
	n, _ := strconv.Atoi(strings.TrimSuffix(w[1], "MB"))
	owner := name
	if i := slices.Index(w, "of"); i > 0 {
		owner = w[i+1]
	}
	size := int64(n) * mega
	a := &actor{rate: mega / 32, event: Event{
		Kind: Request, Key: nameKey("download " + name), Principal: nameKey(owner), Class: c, Size: size, To: size,
		Identified: !slices.Contains(w, "tool"),
	}}
	s.cast[name], s.names[a.event.Key] = a, name
	s.order = append(s.order, name)
	return a
}

func nameKey(name string) (k Key) {
	copy(k[:], name)
	return k
}

func (s *teller) say(format string, args ...any) string {
	return fmt.Sprintf("%-9s ", time.Duration(s.now)-time.Hour) + fmt.Sprintf(format, args...)
}

// ask sends a request and says how it was answered.
func (s *teller) ask(name string, a *actor) []string {
	effects := slices.Clone(s.m.Apply(s.now, a.event))
	lines := s.effects(effects)
	for _, f := range effects {
		if f.Key != a.event.Key {
			continue
		}
		switch f.Kind {
		case Serve:
			a.begun = true
		case Wait:
			if e, _ := s.m.Estimate(s.now, a.event.Key); e.Called {
				a.event.Kind = Hold // at the door, until it starts
				s.m.Apply(s.now, a.event)
				a.event.Kind, a.check = Request, s.now.Add(Door)
				return append(lines, s.say("%s waits at the door", name))
			}
			e, _ := s.m.Answer(s.now, a.event.Key)
			a.check, a.begun = e.Check, false
			if e.Known {
				lines = append(lines, s.say("%s waits, place %d", name, e.Position))
			} else {
				lines = append(lines, s.say("%s waits", name))
			}
		case Surplus:
			lines = append(lines, s.say("%s is asked to come back in %s", name, f.RetryAfter))
		case Refuse:
			lines = append(lines, s.say("%s is refused: %s", name, f.Bound))
		}
	}
	return lines
}

// effects says what happened to whom.
func (s *teller) effects(all []Effect) (lines []string) {
	words := map[EffectKind]string{Started: "starts", Finished: "is through", Paused: "is paused", NoShow: "did not show up", Forgot: "is forgotten", Yielded: "yields its seat", MovedAside: "moves aside"}
	for _, f := range all {
		if w := words[f.Kind]; w != "" {
			lines = append(lines, s.say("%s %s", s.names[f.Key], w))
		}
	}
	return lines
}

// wait lets time go by; it tells of starts and other events, not of polls that only wait on.
func (s *teller) wait(d time.Duration) (lines []string) {
	for end := s.now.Add(d); s.now < end; {
		s.now = s.now.Add(TickEvery)
		for _, n := range s.order {
			a := s.cast[n]
			if a.begun {
				e := Event{Kind: Progress, Key: a.event.Key, Bytes: a.rate / 2}
				if a.held {
					e.Paced = TickEvery
				}
				lines = append(lines, s.effects(slices.Clone(s.m.Apply(s.now, e)))...)
			}
		}
		effects, _ := s.m.Tick(s.now)
		lines = append(lines, s.effects(slices.Clone(effects))...)
		for _, n := range s.order {
			a := s.cast[n]
			seated := s.m.Active(a.event.Key)
			if !a.begun && (a.check <= s.now || seated) {
				if r := s.m.records.at(s.m.index.find(&s.m.records, &a.event.Key)); r.held > 0 {
					s.m.Apply(s.now, Event{Kind: Unhold, Key: a.event.Key})
				}
				for _, l := range s.ask(n, a) {
					if !strings.Contains(l, "waits") {
						lines = append(lines, l)
					}
				}
			}
		}
	}
	return lines
}

// window reads: CLASS shut|open [outside] [for DURATION]
func (s *teller) window(w []string) []string {
	c, err := class.Parse("class", w[0])
	if err != nil {
		s.t.Fatal(err)
	}
	var changes []clock.Mono
	if i := slices.Index(w, "for"); i > 0 {
		changes = append(changes, s.now.Add(s.span(w[i+1])))
	}
	s.m.SetWindow(s.now, c, w[1] == "open", slices.Contains(w, "outside"), changes)
	return nil
}

func (s *teller) why(name string, a *actor) []string {
	w, ok := s.m.Why(s.now, a.event.Key)
	if !ok {
		return []string{s.say("%s does not wait", name)}
	}
	line := fmt.Sprintf("%s: ahead %v, seats %d of %d, own %d of %d", name, w.Ahead, w.Busy, w.Seats, w.Own, w.Share)
	if w.Closed {
		line += ", its window is closed"
		if w.Opens != 0 {
			line += " for " + w.Opens.Sub(s.now).String()
		}
	}
	if e, _ := s.m.Estimate(s.now, a.event.Key); e.Known {
		line += fmt.Sprintf(", starts in %s", e.Start.Sub(s.now).Round(time.Second))
	}
	return []string{s.say("%s", line)}
}
