package roadstead_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var updateProof = flag.Bool("update-proof", false, "write docs/proof.md anew")

// promised lists the statements of the requirements, on downloads (D) and on Runs (R), that are kept today: those of a
// chapter from one to another.
var promised = []struct {
	part                 string
	chapter, first, last int
}{
	{"D", 1, 1, 5}, {"D", 2, 1, 14}, {"D", 3, 1, 3}, {"D", 4, 1, 5}, {"D", 5, 1, 2}, {"D", 6, 1, 3}, {"D", 7, 1, 4}, {"D", 8, 1, 5}, {"D", 9, 1, 5}, {"D", 13, 1, 3},
	{"R", 1, 1, 2}, {"R", 2, 1, 5}, {"R", 4, 2, 3}, {"R", 5, 2, 3}, {"R", 6, 1, 7}, {"R", 8, 2, 3}, {"R", 9, 1, 6},
}

var tag = regexp.MustCompile(`[DR]-\d+\.\d+`)

// TestEveryPromiseHasATest holds docs/proof.md to the tags in the tests: which test proves which numbered statement. A
// tag is a number in a test's doc comment, or at the top of a story. A number without a test fails.
func TestEveryPromiseHasATest(t *testing.T) {
	proofs := map[string][]string{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && file != ".":
			return fs.SkipDir
		case strings.HasSuffix(file, "_test.go"):
			return testTags(file, proofs)
		case strings.HasSuffix(file, ".txt") && strings.Contains(file, "testdata"):
			return storyTags(file, proofs)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	page := proofPage(t, proofs)
	if *updateProof {
		if err := os.WriteFile("docs/proof.md", []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile("docs/proof.md"); err != nil || string(have) != page {
		t.Errorf("docs/proof.md is not what the tags say: run go test -run TestEveryPromise . -update-proof (%v)", err)
	}
}

// testTags collects the tags in the doc comments of a file's tests.
func testTags(file string, proofs map[string][]string) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Doc == nil || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") && !strings.HasPrefix(f.Name.Name, "Fuzz") {
			continue
		}
		for _, n := range tag.FindAllString(f.Doc.Text(), -1) {
			proofs[n] = append(proofs[n], fmt.Sprintf("`%s` in %s", f.Name.Name, filepath.ToSlash(filepath.Dir(file))))
		}
	}
	return nil
}

// storyTags collects the tags in the comments of a script.
func storyTags(file string, proofs map[string][]string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		for _, n := range tag.FindAllString(line, -1) {
			proofs[n] = append(proofs[n], "story `"+filepath.ToSlash(file)+"`")
		}
	}
	return nil
}

// proofPage is the table, and says which numbers have no test.
func proofPage(t *testing.T, proofs map[string][]string) string {
	var b strings.Builder
	b.WriteString("# What proves each promise\n\nMade from the tags in the tests by `go test -run TestEveryPromise . -update-proof`; the gate fails when it differs, or when a number has\nno test.\n\n| number | proved by |\n|---|---|\n")
	for _, c := range promised {
		for s := c.first; s <= c.last; s++ {
			n := fmt.Sprintf("%s-%d.%d", c.part, c.chapter, s)
			tests := proofs[n]
			if len(tests) == 0 {
				t.Errorf("no test is tagged with %s", n)
			}
			slices.Sort(tests)
			fmt.Fprintf(&b, "| %s | %s |\n", n, strings.Join(slices.Compact(tests), "<br>"))
		}
	}
	return b.String()
}
