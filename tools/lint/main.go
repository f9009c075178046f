// Command lint is a vet tool (go vet -vettool=bin/lint) for what go vet and staticcheck lack: errors that are dropped
// without saying so, and SQL rows and statements that are never closed.
package main

import (
	"github.com/kisielk/errcheck/errcheck"
	"github.com/ryanrolds/sqlclosecheck/pkg/analyzer"
	"golang.org/x/tools/go/analysis/unitchecker"
)

func main() { unitchecker.Main(errcheck.Analyzer, analyzer.NewAnalyzer()) }
