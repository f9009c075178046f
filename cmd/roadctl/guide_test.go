package main

import (
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/roadstead/roadstead/internal/core/lifecycle"
)

func guide(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/guide/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The guide draws every state and names every reason that the machine knows.
func TestGuideNamesEveryState(t *testing.T) {
	text := guide(t, "runs.md")
	words := map[string]bool{}
	for _, w := range regexp.MustCompile(`[a-z_]+`).FindAllString(text, -1) {
		words[w] = true
	}
	for _, s := range lifecycle.Runs() {
		if !words[string(s)] {
			t.Errorf("runs.md doesn't draw a Run that is %s", s)
		}
	}
	for _, s := range lifecycle.Attempts() {
		if !words[string(s)] {
			t.Errorf("runs.md doesn't draw an Attempt that is %s", s)
		}
	}
	source, err := os.ReadFile("../../internal/core/lifecycle/ending.go")
	if err != nil {
		t.Fatal(err)
	}
	reasons := regexp.MustCompile(`Reason += "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(reasons) < 20 {
		t.Fatalf("only %d reasons found", len(reasons))
	}
	for _, r := range reasons {
		if !words[r[1]] {
			t.Errorf("runs.md doesn't name the reason %s", r[1])
		}
	}
}

// The guide names every variable that a job finds, and no other.
func TestGuideNamesEveryVariable(t *testing.T) {
	variable := regexp.MustCompile(`ROADSTEAD_[A-Z]+(?:_[A-Z]+)*`)
	set := map[string]bool{}
	for _, file := range []string{"executor/supervisor/plan.go", "runner/attempt.go", "attempts/job.go"} {
		source, err := os.ReadFile("../../internal/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range variable.FindAllString(string(source), -1) {
			set[name] = true
		}
	}
	told := map[string]bool{}
	for _, name := range variable.FindAllString(guide(t, "jobs.md"), -1) {
		told[name] = true
	}
	for name := range set {
		if !told[name] {
			t.Errorf("jobs.md doesn't tell of %s", name)
		}
	}
	for name := range told {
		if !set[name] {
			t.Errorf("jobs.md tells of %s, which is never set", name)
		}
	}
}

// Every command of the guides is one that this program has, with flags that it knows.
func TestGuideCommandsExist(t *testing.T) {
	for _, name := range []string{"runs.md", "jobs.md", "../../examples/prices/README.md"} {
		lines := regexp.MustCompile(`(?m)^    roadctl (.*)$`).FindAllStringSubmatch(guide(t, name), -1)
		if len(lines) == 0 {
			t.Errorf("%s shows no command", name)
		}
		for _, m := range lines {
			line, _, _ := strings.Cut(m[1], " -- ")
			line, _, _ = strings.Cut(line, "#")
			root := newRoot(&app{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
			cmd, rest, err := root.Find(strings.Fields(line))
			if err != nil || cmd == root {
				t.Errorf("%s: %s: %v", name, m[0], err)
				continue
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%s: %s: %v", name, m[0], err)
			}
		}
	}
}
