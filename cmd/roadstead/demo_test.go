package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/roadstead/roadstead/internal/fault"
)

func runDemoCommand(ctx context.Context, args ...string) (string, error) {
	root := rootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(append([]string{"demo"}, args...))
	err := root.ExecuteContext(ctx)
	return out.String(), err
}

func TestDemo(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("LC_ALL", "C")
	out, err := runDemoCommand(t.Context(), "--clients", "4", "--seats", "2", "--rate", "400KB", "--size", "30KB")
	if err != nil || !strings.Contains(out, "4 of 4 clients have the file") {
		t.Fatalf("%v after:\n%s", err, out)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestDemoNamesTheFlag(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"--clients 0 --seats 99", "--seats: must be between 1 and 64"},
		{"--clients -1", "--clients: must be between 1 and 500"},
		{"--rate 1KB", "--rate: must be at least 16 kB/s"},
		{"--rate fast", "--rate"},
		{"--size 1MB-2MB", "--size: must be one size"},
		{"--size 2TB", "--size: must be between 1 byte and 1 TiB"},
		{"/does/not/exist", "FILE: stat /does/not/exist"},
		{"one two", "takes one file"},
		{"--speed 9", "--speed"},
	} {
		_, err := runDemoCommand(t.Context(), strings.Fields(tt.args)...)
		if !fault.Is(err, fault.InvalidInput) || exitCode(err) != 2 || !strings.Contains(describe(err), tt.want) {
			t.Errorf("%s: error %v", tt.args, err)
		}
	}
}

func TestStoppedDemoEndsWith130(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := run(ctx, []string{"demo"}); code != 130 {
		t.Errorf("exit code %d", code)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestDemoScreen(t *testing.T) {
	for locale, want := range map[string]bool{"C": false, "C.UTF-8": true, "de_DE.utf8": true, "": false} {
		s := demoScreen(io.Discard, func(name string) string {
			return map[string]string{"LANG": locale, "LC_ALL": ""}[name]
		})
		if s.Unicode != want || s.Color || s.Size != nil {
			t.Errorf("%q: %+v", locale, s)
		}
	}
}
