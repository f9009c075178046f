// Command faults plants the faults of a list into copies of the tree, one at a time, and fails unless the test that is
// tagged with the broken requirement fails for each: it proves the tests, not the code.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// fault is one small mutation of a file: old must stand there exactly once.
type fault struct {
	rule string // the requirement it breaks
	what string // in words
	file string
	old  string
	new  string
	test string // fails for it, as TestX or TestX/part; its doc comment, or its story, names the rule
}

func main() {
	only := flag.String("only", "", "plant only the faults whose `words` contain this")
	workers := flag.Int("workers", 2, "faults at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *only, *workers); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

// errSurvived says that a fault went unnoticed; the lines before it say which.
var errSurvived = errors.New("not every fault was caught")

func run(ctx context.Context, only string, workers int) error {
	list := chosen(only)
	for _, f := range list {
		if err := f.tagged(); err != nil {
			return err
		}
	}
	temp, err := os.MkdirTemp("", "faults-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	begun, caught := time.Now(), 0
	next, said := make(chan fault), make(chan string)
	var running sync.WaitGroup
	for i := range workers {
		tree := filepath.Join(temp, fmt.Sprint(i))
		if err := copyTree(tree); err != nil {
			return err
		}
		running.Go(func() {
			for f := range next {
				said <- f.plant(ctx, tree)
			}
		})
	}
	go func() {
		for _, f := range list {
			next <- f
		}
		close(next)
		running.Wait()
		close(said)
	}()
	for line := range said {
		fmt.Println(line)
		if strings.HasPrefix(line, "caught ") {
			caught++
		}
	}
	fmt.Printf("%d of %d faults caught in %s\n", caught, len(list), time.Since(begun).Round(time.Second))
	if caught < len(list) || len(list) == 0 {
		return errSurvived
	}
	return nil
}

func chosen(only string) (list []fault) {
	for _, f := range faults() {
		if strings.Contains(f.rule+" "+f.what+" "+f.file, only) {
			list = append(list, f)
		}
	}
	return list
}

// copyTree copies what git knows of the working tree, and what is new in it, as it is now.
func copyTree(to string) error {
	files, err := exec.Command("git", "ls-files", "-co", "--exclude-standard").Output()
	if err != nil {
		return fmt.Errorf("list the tree: %w", err)
	}
	for name := range strings.Lines(string(files)) {
		name = strings.TrimSuffix(name, "\n")
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted and not committed yet
		} else if err != nil {
			return fmt.Errorf("copy the tree: %w", err)
		}
		target := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return fmt.Errorf("copy the tree: %w", err)
		}
		if err := os.WriteFile(target, text, 0o644); err != nil {
			return fmt.Errorf("copy the tree: %w", err)
		}
	}
	return nil
}

// plant puts the fault into a copy, runs the test that must fail, and takes the fault out again.
func (f fault) plant(ctx context.Context, tree string) string {
	path := filepath.Join(tree, f.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return f.line("broken  ", err.Error())
	}
	if n := bytes.Count(text, []byte(f.old)); n != 1 {
		return f.line("broken  ", fmt.Sprintf("the text to change stands %d times in %s", n, f.file))
	}
	if err := f.test1(ctx, tree); err != nil {
		return f.line("broken  ", "fails without the fault: "+err.Error())
	}
	if err := os.WriteFile(path, bytes.Replace(text, []byte(f.old), []byte(f.new), 1), 0o644); err != nil {
		return f.line("broken  ", err.Error())
	}
	err = f.test1(ctx, tree)
	if back := os.WriteFile(path, text, 0o644); back != nil {
		return f.line("broken  ", back.Error())
	}
	switch {
	case err == nil:
		return f.line("survived", "")
	case strings.Contains(err.Error(), "build failed") || strings.Contains(err.Error(), "setup failed"):
		return f.line("broken  ", "does not compile:\n"+err.Error())
	}
	return f.line("caught  ", "by "+f.test)
}

func (f fault) line(outcome, more string) string {
	return strings.TrimSpace(fmt.Sprintf("%s %-6s %s (%s) %s", outcome, f.rule, f.what, f.file, more))
}

var ran = regexp.MustCompile(`(?m)^--- (PASS|FAIL)`)

// test1 runs the one test.
func (f fault) test1(ctx context.Context, tree string) error {
	var pattern []string
	for part := range strings.SplitSeq(f.test, "/") {
		pattern = append(pattern, "^"+part+"$")
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-v", "-timeout", "60s", "-run", strings.Join(pattern, "/"), "./"+filepath.Dir(f.file))
	cmd.Dir = tree
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		return fmt.Errorf("%w\n%s", err, out[:min(len(out), 2000)])
	case !ran.Match(out):
		return fmt.Errorf("there is no %s in %s", f.test, filepath.Dir(f.file))
	}
	return nil
}

// tagged checks that the test is tagged with the rule: in its doc comment, or at the top of its story.
func (f fault) tagged() error {
	name, story, _ := strings.Cut(f.test, "/")
	if name == "TestStories" {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(f.file), "testdata", story+".txt"))
		if err == nil && !strings.Contains(string(text), f.rule) {
			err = fmt.Errorf("the story %s does not name %s", story, f.rule)
		}
		return err
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(f.file), "*_test.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return fmt.Errorf("read the tests of %s: %w", f.file, err)
		}
		for _, d := range parsed.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == name {
				if strings.Contains(fn.Doc.Text(), f.rule) {
					return nil
				}
				return fmt.Errorf("%s is not tagged with %s", name, f.rule)
			}
		}
	}
	return fmt.Errorf("there is no %s beside %s", name, f.file)
}
