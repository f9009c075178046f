// Command lint is a vet tool (go vet -vettool=bin/lint) for what go vet and staticcheck lack: errors that are dropped
// without saying so, and SQL rows and statements that are never closed. Deferred calls may drop their error: they
// clean up after what was read, and whoever writes closes in plain sight. Tests may: they look at what came of it.
package main

import (
	"go/ast"
	"go/token"
	"strings"

	"github.com/kisielk/errcheck/errcheck"
	"github.com/ryanrolds/sqlclosecheck/pkg/analyzer"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/unitchecker"
)

func main() { unitchecker.Main(droppedErrors(), analyzer.NewAnalyzer()) }

// droppedErrors is errcheck, less deferred calls and tests.
func droppedErrors() *analysis.Analyzer {
	a := *errcheck.Analyzer
	a.Run = func(pass *analysis.Pass) (any, error) {
		deferred := map[token.Pos]bool{}
		for _, f := range pass.Files {
			ast.Inspect(f, func(n ast.Node) bool {
				if d, ok := n.(*ast.DeferStmt); ok {
					deferred[d.Call.Lparen] = true
				}
				return true
			})
		}
		inner := *pass
		inner.Report = func(d analysis.Diagnostic) {
			if !deferred[d.Pos] && !strings.HasSuffix(pass.Fset.File(d.Pos).Name(), "_test.go") {
				pass.Report(d)
			}
		}
		return errcheck.Analyzer.Run(&inner)
	}
	return &a
}
