package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// A word that is no command is a mistake in use, at every level; no word is a call for help.
func TestUnknownCommand(t *testing.T) {
	for line, want := range map[string]int{"serv": 2, "config prin": 2, "completion nosh": 2, "serve extra": 2, "": 0, "config": 0, "completion": 0} {
		root := rootCommand()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(io.Discard)
		root.SetArgs(strings.Fields(line))
		if err := root.ExecuteContext(t.Context()); want == 2 && (err == nil || exitCode(err) != want) || want == 0 && (err != nil || !strings.Contains(out.String(), "Usage:")) {
			t.Errorf("%q: %v\n%s", line, err, out.String())
		}
	}
}
