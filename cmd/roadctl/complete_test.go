package main

import (
	"strings"
	"testing"
)

func TestCompletions(t *testing.T) {
	for line, want := range map[string]string{
		"download --class ":            "interactive\nrelease\nbulk\nbackground\n:4\n",
		"download ":                    ":4\n",
		"ls -o ":                       "table\njson\n:4\n",
		"repo grant fleet anna ":       "read\nwrite\nadmin\n:4\n",
		"repo grant fleet ":            ":4\n",
		"account set-class agent ":     "interactive\nrelease\nbulk\nbackground\n:4\n",
		"settings reset ":              strings.Join(settingKeys(), "\n") + "\n:4\n",
		"settings set ":                strings.Join(settingKeys(), "=\n") + "=\n:6\n",
		"upload ":                      ":0\n",
		"account create-user --class ": "interactive\nrelease\nbulk\nbackground\n:4\n",
	} {
		args := append([]string{"__complete"}, strings.Split(line, " ")...)
		if code, stdout, _ := (command{args: args}).run(t); code != 0 || stdout != want {
			t.Errorf("%q: code %d, %q, want %q", line, code, stdout, want)
		}
	}
}
