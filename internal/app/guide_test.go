package app_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/roadstead/roadstead/internal/app"
)

// TestGuideListsEverySetting compares the table of docs/guide/configuration.md with the settings and their defaults.
func TestGuideListsEverySetting(t *testing.T) {
	text, err := os.ReadFile("../../docs/guide/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(ROADSTEAD_[A-Z_]+)` \\| (?:`([^`]*)` )?\\|").FindAllStringSubmatch(string(text), -1) {
		rows[m[1]] = m[2]
	}
	_, settings, err := app.Load(app.Inputs{Lookup: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range settings {
		got, listed := rows[s.Env()]
		switch {
		case !listed:
			t.Errorf("the guide has no row for %s", s.Env())
		case got != s.Value:
			t.Errorf("the guide says that %s is %q by default; it is %q", s.Env(), got, s.Value)
		}
		delete(rows, s.Env())
	}
	for env := range rows {
		t.Errorf("the guide lists %s, which is no setting", env)
	}
}
