package roadstead_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tooLong names the files ("path") and functions ("path Func") that may be over the bounds, each with its reason.
var tooLong = map[string]string{}

// TestArchitecture holds the tree to the rules of ARCHITECTURE.md. Each rule's failure says what to do;
// arch_rules_table_test.go shows that each rule fails when it should.
func TestArchitecture(t *testing.T) {
	packages := load(t)
	rules := []struct {
		name  string
		check func(*pkg) []string
	}{
		{"arrows point down", checkStrata},
		{"rooms that stay apart", checkApart},
		{"narrow imports", checkNarrow},
		{"core imports", checkCoreImports},
		{"core is pure", checkCorePure},
		{"package comments", checkDoc},
		{"package names", checkName},
		{"tests do not sleep", checkNoSleep},
		{"nothing unfinished", checkFinished},
		{"declarations", checkStyle},
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, p := range packages {
				for _, b := range r.check(p) {
					t.Error(b)
				}
			}
		})
	}
	t.Run("sizes", func(t *testing.T) {
		used := map[string]bool{}
		for _, p := range packages {
			for _, s := range checkSize(p) {
				used[s.key] = true
				if tooLong[s.key] == "" {
					t.Errorf("%s (or give a reason in tooLong, arch_test.go)", s.problem)
				}
			}
		}
		for key := range tooLong {
			if !used[key] {
				t.Errorf("tooLong[%q] is not needed any more: delete it", key)
			}
		}
	})
}

// listed is what go list says of a package.
type listed struct {
	Dir, ImportPath, Name, Export     string
	GoFiles, CgoFiles, IgnoredGoFiles []string
	TestGoFiles, XTestGoFiles         []string
}

func golist(t *testing.T, args ...string) (all []listed) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("reading go list: %v", err)
		}
		all = append(all, l)
	}
}

// load parses every package of the module, and finds the types of the core's.
func load(t *testing.T) (packages []*pkg) {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	noticeFolders(t, root)
	for _, l := range golist(t, "-e", "-json=Dir,ImportPath,Name,GoFiles,CgoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles", "./...") {
		p := &pkg{room: strings.TrimPrefix(strings.TrimPrefix(l.ImportPath, module), "/"), name: l.Name}
		fset := token.NewFileSet()
		for _, name := range slices.Concat(l.GoFiles, l.CgoFiles, l.IgnoredGoFiles, l.TestGoFiles, l.XTestGoFiles) {
			full := filepath.Join(l.Dir, name)
			src, err := os.ReadFile(full)
			if err != nil {
				t.Fatal(err)
			}
			rel, err := filepath.Rel(root, full)
			if err != nil {
				t.Fatal(err)
			}
			p.files = append(p.files, parse(t, fset, rel, src))
		}
		packages = append(packages, p)
	}
	findTypes(t, packages)
	return packages
}

// noticeFolders reads every folder of source, so that go test knows that a new file is a reason to run this test again
// (it sees what the test opens, not what go list does).
func noticeFolders(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && (d.Name()[0] == '.' || slices.Contains([]string{"bin", "data", "out"}, d.Name())) {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func parse(t *testing.T, fset *token.FileSet, name string, src []byte) *file {
	t.Helper()
	tree, err := parser.ParseFile(fset, name, src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return &file{
		path: name, test: strings.HasSuffix(name, "_test.go"), generated: ast.IsGenerated(tree),
		lines: bytes.Count(src, []byte("\n")), fset: fset, ast: tree,
	}
}

// findTypes fills in the types of the core's packages, from what the compiler exports of their imports.
func findTypes(t *testing.T, packages []*pkg) {
	t.Helper()
	exports := map[string]string{}
	for _, l := range golist(t, "-export", "-deps", "-json=ImportPath,Export", "./internal/core/...") {
		exports[l.ImportPath] = l.Export
	}
	for _, p := range packages {
		if p.inCore() && len(p.code()) > 0 {
			if err := p.check(exports); err != nil {
				t.Errorf("types of %s: %v", p.room, err)
			}
		}
	}
}

// check finds the types of p; exports says where the compiled form of each import lies.
func (p *pkg) check(exports map[string]string) error {
	var trees []*ast.File
	for _, f := range p.code() {
		trees = append(trees, f.ast)
	}
	fset := p.code()[0].fset
	lookup := func(target string) (io.ReadCloser, error) { return os.Open(exports[target]) }
	p.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", lookup)}
	_, err := conf.Check(module+"/"+p.room, fset, trees, p.info)
	return err
}
