// Command tally reads the output of `go test -json` and prints what a person wants of it: a line per package, the
// output of what failed, and a closing count. It fails when a test failed, when a test was skipped (in the gate a
// required thing that is missing is a failure, not a skip), and when no test ran at all.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	c, err := tally(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
	fmt.Println(c)
	if !c.good() {
		os.Exit(1)
	}
}

// event is one line of go test -json.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
}

// counts are of tests, subtests included, and of packages that failed outside any test (a build, a panic in TestMain).
type counts struct {
	passed, failed, skipped, broken int
}

func (c counts) good() bool { return c.failed == 0 && c.skipped == 0 && c.broken == 0 && c.passed > 0 }

func (c counts) String() string {
	s := fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed+c.broken, c.skipped)
	if c.passed+c.failed == 0 {
		s = "no test ran\n" + s
	}
	return s
}

// tally copies what matters from r to w and counts.
func tally(r io.Reader, w io.Writer) (counts, error) {
	var c counts
	pending := map[string][]string{} // package/test -> its output, until it is known whether it matters
	failures := map[string]int{}     // package -> failed tests in it
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				fmt.Fprint(w, line) // go itself speaking, for example about a package it cannot load
			} else {
				c.take(e, pending, failures, w)
			}
		}
		if err == io.EOF {
			return c, nil
		}
		if err != nil {
			return c, fmt.Errorf("reading the test output: %w", err)
		}
	}
}

func (c *counts) take(e event, pending map[string][]string, failures map[string]int, w io.Writer) {
	key := e.Package + "/" + e.Test
	tell := func() {
		for _, s := range pending[key] {
			fmt.Fprint(w, s)
		}
		delete(pending, key)
	}
	switch {
	case e.Action == "build-output":
		fmt.Fprint(w, e.Output)
	case e.Action == "output" && e.Test != "":
		pending[key] = append(pending[key], e.Output)
	case e.Action == "output":
		if e.Output != "PASS\n" && !strings.HasSuffix(e.Output, "[no test files]\n") {
			fmt.Fprint(w, e.Output)
		}
	case e.Action == "pass" && e.Test != "":
		c.passed++
		delete(pending, key)
	case e.Action == "fail" && e.Test != "":
		c.failed++
		failures[e.Package]++
		tell()
	case e.Action == "skip" && e.Test != "":
		// A fuzz target may skip an input that is no valid one; that is how such an input is passed over.
		if strings.HasPrefix(e.Test, "Fuzz") && strings.Contains(e.Test, "/") {
			delete(pending, key)
			return
		}
		c.skipped++
		tell()
	case e.Action == "fail":
		if failures[e.Package] == 0 {
			c.broken++
			for k, lines := range pending { // a test that ended the process never got its own verdict
				if strings.HasPrefix(k, e.Package+"/") {
					fmt.Fprint(w, strings.Join(lines, ""))
				}
			}
		}
	}
}
