package serve

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Who is told to come later must be told when (D-1.1): such faults are made by fault.Later, or name RetryAfter.
func TestEveryBusyFaultSaysWhen(t *testing.T) {
	forbidden := regexp.MustCompile(`fault\.(New|Wrap)\(\s*fault\.(Busy|RateLimited)\b`)
	literal := regexp.MustCompile(`(?s)fault\.Error\{[^}]*fault\.(Busy|RateLimited)[^}]*\}`)
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, m := range forbidden.FindAll(text, -1) {
			t.Errorf("%s: %s without RetryAfter; use fault.Later", name, m)
		}
		for _, m := range literal.FindAll(text, -1) {
			if !strings.Contains(string(m), "RetryAfter") {
				t.Errorf("%s: %s without RetryAfter", name, m)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
