package roadstead_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	mdLink = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	mdPath = regexp.MustCompile("`((?:api|cmd|docs|internal|scripts|sdk|test|tools)/[A-Za-z0-9_./-]*)`")
)

// deadPaths lists what a text links to, or names as a path of the tree in backquotes, and that is not there. dir is the
// folder of the text, for its links; named paths are counted from root.
func deadPaths(root, dir, text string) (dead []string) {
	gone := func(p string) bool { _, err := os.Stat(p); return err != nil }
	for _, m := range mdLink.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(m[1], ":") && gone(filepath.Join(root, dir, m[1])) {
			dead = append(dead, m[1])
		}
	}
	for _, m := range mdPath.FindAllStringSubmatch(text, -1) {
		if gone(filepath.Join(root, m[1])) {
			dead = append(dead, m[1])
		}
	}
	return dead
}

// TestDocsPointAtWhatIsThere follows every relative link of the documents and every path of the tree they name.
func TestDocsPointAtWhatIsThere(t *testing.T) {
	texts := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (d.Name()[0] == '.' || slices.Contains([]string{"bin", "data", "out", "node_modules"}, d.Name())) {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		texts++
		for _, dead := range deadPaths(".", filepath.Dir(path), string(text)) {
			t.Errorf("%s names %s, which is not there: correct the text", path, dead)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if texts == 0 {
		t.Error("no document found")
	}
}

func TestDeadPathsCanFail(t *testing.T) {
	cases := []struct{ dir, text, want string }{
		{".", "[a](go.mod) [b](https://example.org/x) [c](#here) `internal/fault`", ""},
		{"docs", "[a](../go.mod)", ""},
		{".", "[a](gone.md)", "gone.md"},
		{"docs", "[a](go.mod#top)", "go.mod"},
		{".", "see `internal/gone/gone.go`", "internal/gone/gone.go"},
		{".", "`go test ./...`", ""},
	}
	for _, c := range cases {
		if got := strings.Join(deadPaths(".", c.dir, c.text), " "); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}
