package roadstead_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/roadstead/roadstead"

// strata says how high each room stands; a package imports its own stratum or lower ones.
var strata = map[string]int{
	"internal/fault": 0, "internal/clock": 0, "internal/class": 0, "internal/identity": 0, "internal/ticket": 0, "internal/audit": 0,
	"internal/core":      1,
	"internal/artifacts": 2, "internal/downloads": 2, "internal/settings": 2, "internal/forerun": 2, "internal/governor": 2, "internal/delivery": 2, "internal/sim": 2,
	"internal/catalog": 2, "internal/secrets": 2, "internal/schedules": 2, "internal/pools": 2, "internal/runs": 2, "internal/dispatcher": 2,
	"internal/attempts": 2, "internal/plan": 2, "internal/archive": 2,
	"internal/store": 3, "internal/blob": 3, "internal/serve": 3, "internal/executor": 3, "internal/runner": 3,
	"internal/app": 4, "internal/demo": 4,
	"cmd":  5,
	"test": 6, "examples": 6,
}

// apart lists rooms that never import each other, whichever way round.
var apart = [][]string{
	{"internal/downloads", "internal/runs"},
	{"internal/serve/api", "internal/serve/files", "internal/serve/oci", "internal/serve/npm", "internal/serve/lfs", "internal/serve/console"},
}

// coreImports is all that the core may import beside itself: nothing with a clock, a lock, input or output.
var coreImports = []string{
	"cmp", "container/heap", "encoding/binary", "errors", "fmt", "iter", "math", "math/bits", "math/rand/v2", "slices",
	"sort", "strconv", "strings", "time",
	module + "/internal/fault", module + "/internal/clock", module + "/internal/class",
}

// coreTime are the functions of package time that read or run a clock.
var coreTime = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// coreRand are the names of math/rand/v2 that need a seed; all others draw from the process-wide generator.
var coreRand = []string{"New", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "PCG", "ChaCha8", "Source", "Zipf"}

var bannedNames = []string{"util", "utils", "common", "helper", "helpers", "model", "models", "types", "pkg", "misc", "shared", "base", "lib"}

const (
	maxFile      = 500
	maxFunc      = 80
	maxInterface = 7
)

// pkg is one package as the rules see it. room is its path inside the module.
type pkg struct {
	room  string
	name  string
	files []*file
	info  *types.Info // of the files that are no tests; only the core's is needed
}

type file struct {
	path      string
	test      bool
	generated bool
	lines     int
	fset      *token.FileSet
	ast       *ast.File
}

func (p *pkg) inCore() bool { return within(p.room, "internal/core") }

// within reports whether room is parent or lies under it.
func within(room, parent string) bool { return room == parent || strings.HasPrefix(room, parent+"/") }

// code lists the files that are not tests.
func (p *pkg) code() (fs []*file) {
	for _, f := range p.files {
		if !f.test {
			fs = append(fs, f)
		}
	}
	return fs
}

// imports calls visit with each import of the files that are not tests.
func (p *pkg) imports(visit func(at, target string)) {
	for _, f := range p.code() {
		for _, i := range f.ast.Imports {
			target, _ := strconv.Unquote(i.Path.Value)
			visit(f.at(i), target)
		}
	}
}

func (f *file) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.path, f.fset.Position(n.Pos()).Line)
}

// uses calls visit with each mention of an exported name of the package imported as target.
func (f *file) uses(target string, visit func(at, name string)) {
	local := ""
	for _, i := range f.ast.Imports {
		if p, _ := strconv.Unquote(i.Path.Value); p == target {
			local = path.Base(strings.TrimSuffix(target, "/v2"))
			if i.Name != nil {
				local = i.Name.Name
			}
		}
	}
	if local == "" {
		return
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == local && x.Obj == nil {
				visit(f.at(s), s.Sel.Name)
			}
		}
		return true
	})
}

// stratum finds how high a room stands by the longest prefix of it in strata.
func stratum(room string) (level int, known bool) {
	for r := room; r != "." && r != ""; r = path.Dir(r) {
		if level, known = strata[r]; known {
			return level, true
		}
	}
	return 0, false
}

// external reports whether an import path is neither of this module nor of the standard library.
func external(target string) bool {
	first, _, _ := strings.Cut(target, "/")
	return strings.Contains(first, ".") && !within(target, module)
}

func checkStrata(p *pkg) (bad []string) {
	level, known := stratum(p.room)
	switch {
	case within(p.room, "api"), within(p.room, "sdk"), p.room == "":
		return nil // these have a rule of their own
	case !known:
		return []string{fmt.Sprintf("%s has no stratum: give the room one in strata (arch_rules_test.go), and in ARCHITECTURE.md", p.room)}
	}
	p.imports(func(at, target string) {
		if external(target) {
			if level == 0 {
				bad = append(bad, fmt.Sprintf("%s: %s is in stratum 0, which imports the standard library only; move what needs %s up", at, p.room, target))
			}
			return
		}
		if !within(target, module) {
			return
		}
		room := strings.TrimPrefix(target, module+"/")
		needs := 0
		switch other, ok := stratum(room); {
		case within(room, "api"):
			needs = 2
		case within(room, "sdk"):
			needs = 4
		case ok:
			needs = other
		}
		if level < needs {
			bad = append(bad, fmt.Sprintf("%s: %s (stratum %d) imports %s (stratum %d): declare a port in %s and let a higher package connect the two", at, p.room, level, room, needs, p.room))
		}
	})
	return bad
}

func checkApart(p *pkg) (bad []string) {
	p.imports(func(at, target string) {
		for _, group := range apart {
			for _, a := range group {
				for _, b := range group {
					if a != b && within(p.room, a) && within(target, module+"/"+b) {
						bad = append(bad, fmt.Sprintf("%s: %s and %s never import each other: move what both need to a room below them", at, a, b))
					}
				}
			}
		}
	})
	return bad
}

// checkNarrow holds the rooms whose imports are a short list: api, sdk and the simulators.
func checkNarrow(p *pkg) (bad []string) {
	p.imports(func(at, target string) {
		room, own := strings.CutPrefix(target, module+"/")
		level, _ := stratum(room)
		switch {
		case within(p.room, "api") && (own || external(target)):
			bad = append(bad, fmt.Sprintf("%s: api is the wire contract and imports the standard library only, not %s", at, target))
		case within(p.room, "sdk") && (external(target) || own && !within(room, "api") && !within(room, "sdk")):
			bad = append(bad, fmt.Sprintf("%s: sdk imports api and the standard library only, not %s: whoever embeds it gets nothing else", at, target))
		case (within(p.room, "internal/sim") || within(p.room, "internal/forerun") || within(p.room, "internal/plan")) && own && (level > 1 || within(room, "api") || within(room, "sdk")) && !within(room, p.room):
			bad = append(bad, fmt.Sprintf("%s: %s runs on strata 0 and 1 only, not %s: if it needs a service, the core is not pure", at, p.room, room))
		}
	})
	return bad
}

func checkCoreImports(p *pkg) (bad []string) {
	if !p.inCore() {
		return nil
	}
	p.imports(func(at, target string) {
		if !slices.Contains(coreImports, target) && !within(target, module+"/internal/core") {
			bad = append(bad, fmt.Sprintf("%s: the core may not import %s: pass in what it gives, or extend coreImports if it has no clock, lock, input or output", at, target))
		}
	})
	return bad
}

func checkCorePure(p *pkg) (bad []string) {
	if !p.inCore() {
		return nil
	}
	for _, f := range p.code() {
		f.uses("time", func(at, name string) {
			if slices.Contains(coreTime, name) {
				bad = append(bad, fmt.Sprintf("%s: the core has no clock, so no time.%s: take the instant as an argument", at, name))
			}
		})
		f.uses("math/rand/v2", func(at, name string) {
			if !slices.Contains(coreRand, name) {
				bad = append(bad, fmt.Sprintf("%s: rand.%s draws from the process-wide generator: use a seeded one that is passed in", at, name))
			}
		})
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt, *ast.SelectStmt, *ast.ChanType:
				bad = append(bad, fmt.Sprintf("%s: the core has no goroutine and no channel: return a decision and let the caller act", f.at(n)))
			case *ast.RangeStmt:
				if p.info == nil {
					break
				}
				if t := p.info.TypeOf(n.X); t != nil {
					if _, ok := t.Underlying().(*types.Map); ok {
						bad = append(bad, fmt.Sprintf("%s: the order of a map is chance, and the core decides by no chance: range over a slice", f.at(n)))
					}
				}
			}
			return true
		})
	}
	return bad
}

func checkDoc(p *pkg) []string {
	code := p.code()
	if len(code) == 0 {
		return nil
	}
	want := "Package " + p.name + " "
	if p.name == "main" {
		want = "Command " + path.Base(p.room) + " "
	}
	for _, f := range code {
		if strings.HasPrefix(f.ast.Doc.Text(), want) {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s: no package comment: say in one sentence what it is, beginning %q", p.room, want)}
}

func checkName(p *pkg) []string {
	if slices.Contains(bannedNames, strings.TrimSuffix(p.name, "_test")) || slices.Contains(bannedNames, path.Base(p.room)) {
		return []string{fmt.Sprintf("%s: a package is named after what it is, not %q: name the one thing it holds", p.room, p.name)}
	}
	return nil
}

func checkNoSleep(p *pkg) (bad []string) {
	for _, f := range p.files {
		if f.test {
			f.uses("time", func(at, name string) {
				if name == "Sleep" {
					bad = append(bad, at+": a test that sleeps is slow or wrong: wait for the event on a channel, or use testing/synctest")
				}
			})
		}
	}
	return bad
}

// size is something over its bound. key is what tooLong, the list of exceptions, names it by.
type size struct{ key, problem string }

func checkSize(p *pkg) (over []size) {
	for _, f := range p.code() {
		if f.generated {
			continue
		}
		if f.lines > maxFile {
			over = append(over, size{f.path, fmt.Sprintf("%s has %d lines, over %d: split it by concept", f.path, f.lines, maxFile)})
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := f.fset.Position(fn.End()).Line - f.fset.Position(fn.Pos()).Line + 1; n > maxFunc {
				over = append(over, size{f.path + " " + fn.Name.Name, fmt.Sprintf("%s: %s has %d lines, over %d: name its steps", f.at(fn), fn.Name.Name, n, maxFunc)})
			}
		}
	}
	return over
}

var unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`)

func checkFinished(p *pkg) (bad []string) {
	for _, f := range p.files {
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				if word := unfinished.FindString(c.Text); word != "" {
					bad = append(bad, fmt.Sprintf("%s: %s: finish it, or delete the comment and file it as work", f.at(c), word))
				}
			}
		}
	}
	return bad
}

// checkStyle holds what the house style says of declarations: no init, no context kept in a struct, small ports.
func checkStyle(p *pkg) (bad []string) {
	for _, f := range p.code() {
		if f.generated {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && n.Name.Name == "init" {
					bad = append(bad, f.at(n)+": no init: what a program does is said in its composition root")
				}
			case *ast.StructType:
				for _, field := range n.Fields.List {
					if types.ExprString(field.Type) == "context.Context" {
						bad = append(bad, f.at(field)+": a context is passed, never kept: make it the first argument")
					}
				}
			case *ast.InterfaceType:
				if len(n.Methods.List) > maxInterface {
					bad = append(bad, fmt.Sprintf("%s: an interface of %d methods, over %d: split it by what its consumers need", f.at(n), len(n.Methods.List), maxInterface))
				}
			}
			return true
		})
	}
	return bad
}
