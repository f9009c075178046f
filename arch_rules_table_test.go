package roadstead_test

import (
	"fmt"
	"go/token"
	"path"
	"strings"
	"testing"
)

// source is a package written for a test: file name -> text.
func source(t *testing.T, room string, files map[string]string) *pkg {
	t.Helper()
	p := &pkg{room: room}
	fset := token.NewFileSet()
	for name, text := range files {
		f := parse(t, fset, path.Join(room, name), []byte(text))
		p.name = f.ast.Name.Name
		p.files = append(p.files, f)
	}
	return p
}

// TestRulesCanFail shows for each rule what it refuses and, beside it, the nearest thing that it lets through.
func TestRulesCanFail(t *testing.T) {
	const m = module + "/internal/"
	importing := func(target string) string { return "package x\nimport _ \"" + target + "\"\n" }
	cases := []struct {
		rule  func(*pkg) []string
		room  string
		file  string // x.go when empty
		text  string
		wants string // part of the message; empty: the rule is content
	}{
		{checkStrata, "internal/fault", "", importing("os"), ""},
		{checkStrata, "internal/fault", "", importing("github.com/google/uuid"), "stratum 0"},
		{checkStrata, "internal/fault", "", importing(m + "core/fair"), "declare a port"},
		{checkStrata, "internal/core/fair", "", importing(m + "fault"), ""},
		{checkStrata, "internal/core/fair", "", importing(m + "downloads"), "declare a port"},
		{checkStrata, "internal/downloads", "", importing(m + "core/session"), ""},
		{checkStrata, "internal/downloads", "", importing(m + "store"), "declare a port"},
		{checkStrata, "internal/downloads", "x_test.go", importing(m + "store"), ""},
		{checkStrata, "internal/store", "", importing(m + "artifacts"), ""},
		{checkStrata, "internal/store/storetest", "", importing(m + "app"), "declare a port"},
		{checkStrata, "internal/downloads", "", importing(module + "/api"), ""},
		{checkStrata, "internal/core/session", "", importing(module + "/api"), "declare a port"},
		{checkStrata, "internal/serve", "", importing(module + "/sdk"), "declare a port"},
		{checkStrata, "internal/app", "", importing(module + "/sdk"), ""},
		{checkStrata, "internal/newroom", "", "package x", "no stratum"},
		{checkStrata, "internal/faulty", "", "package x", "no stratum"},

		{checkApart, "internal/downloads", "", importing(m + "runs"), "never import each other"},
		{checkApart, "internal/runs/dispatch", "", importing(m + "downloads"), "never import each other"},
		{checkApart, "internal/downloads", "", importing(m + "artifacts"), ""},
		{checkApart, "internal/serve/files", "", importing(m + "serve/oci"), "never import each other"},
		{checkApart, "internal/serve/files", "", importing(m + "serve/problem"), ""},
		{checkApart, "internal/serve/files", "", importing(m + "serve/files/span"), ""},

		{checkNarrow, "api", "", importing("time"), ""},
		{checkNarrow, "api", "", importing(m + "fault"), "wire contract"},
		{checkNarrow, "api", "", importing("github.com/google/uuid"), "wire contract"},
		{checkNarrow, "sdk", "", importing(module + "/api"), ""},
		{checkNarrow, "sdk", "", importing(m + "fault"), "sdk imports api"},
		{checkNarrow, "sdk", "", importing("github.com/google/uuid"), "sdk imports api"},
		{checkNarrow, "internal/sim", "", importing(m + "core/session"), ""},
		{checkNarrow, "internal/sim", "", importing(m + "downloads"), "the core is not pure"},
		{checkNarrow, "internal/forerun", "", importing(m + "downloads"), "the core is not pure"},
		{checkNarrow, "internal/sim", "", importing(m + "artifacts"), "the core is not pure"},
		{checkNarrow, "internal/sim", "", importing(module + "/api"), "the core is not pure"},

		{checkCoreImports, "internal/core/fair", "", importing("slices"), ""},
		{checkCoreImports, "internal/core/fair", "", importing("sync"), "may not import sync"},
		{checkCoreImports, "internal/core/fair", "", importing("context"), "may not import context"},
		{checkCoreImports, "internal/core/fair", "", importing("log/slog"), "may not import log/slog"},
		{checkCoreImports, "internal/core/fair", "", importing("github.com/tidwall/btree"), "may not import"},
		{checkCoreImports, "internal/core/fair", "x_test.go", importing("sync"), ""},
		{checkCoreImports, "internal/downloads", "", importing("sync"), ""},

		{checkCorePure, "internal/core/fair", "", "package x\nimport \"time\"\nvar _ = time.Second", ""},
		{checkCorePure, "internal/core/fair", "", "package x\nimport \"time\"\nvar _ = time.Now", "no time.Now"},
		{checkCorePure, "internal/core/fair", "", "package x\nimport w \"time\"\nvar _ = w.Since", "no time.Since"},
		{checkCorePure, "internal/core/fair", "", "package x\nimport \"time\"\nfunc f() { time.NewTimer(1) }", "no time.NewTimer"},
		{checkCorePure, "internal/core/fair", "x_test.go", "package x\nimport \"time\"\nvar _ = time.Now", ""},
		{checkCorePure, "internal/downloads", "", "package x\nimport \"time\"\nvar _ = time.Now", ""},
		{checkCorePure, "internal/core/fair", "", "package x\nimport \"math/rand/v2\"\nvar _ = rand.New(rand.NewPCG(1, 2))", ""},
		{checkCorePure, "internal/core/fair", "", "package x\nimport \"math/rand/v2\"\nvar _ = rand.IntN(3)", "process-wide"},
		{checkCorePure, "internal/core/fair", "", "package x\nfunc f() { go f() }", "no goroutine"},
		{checkCorePure, "internal/core/fair", "", "package x\nvar c chan int", "no channel"},
		{checkCorePure, "internal/core/fair", "", "package x\nfunc f(m map[int]int) { for range m {} }", "order of a map"},
		{checkCorePure, "internal/core/fair", "", "package x\ntype set map[int]bool\nfunc f(s struct{ in set }) { for k := range s.in { _ = k } }", "order of a map"},
		{checkCorePure, "internal/core/fair", "", "package x\nfunc f(m []int) { for range m {} }", ""},

		{checkDoc, "internal/x", "", "// Package x is the unknown.\npackage x", ""},
		{checkDoc, "internal/x", "", "package x", "no package comment"},
		{checkDoc, "internal/x", "", "// This is the unknown.\npackage x", "no package comment"},
		{checkDoc, "internal/x", "x_test.go", "package x", ""},
		{checkDoc, "cmd/roadctl", "", "// Command roadctl talks to a server.\npackage main", ""},
		{checkDoc, "cmd/roadctl", "", "package main", "no package comment"},

		{checkName, "internal/fault", "", "package fault", ""},
		{checkName, "internal/util", "", "package util", "named after what it is"},
		{checkName, "internal/common", "", "package x", "named after what it is"},

		{checkNoSleep, "internal/x", "x_test.go", "package x\nimport \"time\"\nfunc f() { time.Sleep(1) }", "a test that sleeps"},
		{checkNoSleep, "internal/x", "x_test.go", "package x\nimport nap \"time\"\nfunc f() { nap.Sleep(1) }", "a test that sleeps"},
		{checkNoSleep, "internal/x", "x_test.go", "package x\n// time.Sleep is not used.\n", ""},
		{checkNoSleep, "internal/x", "", "package x\nimport \"time\"\nfunc f() { time.Sleep(1) }", ""},

		{checkFinished, "internal/x", "", "package x\n// TO" + "DO: more\n", "finish it"},
		{checkFinished, "internal/x", "x_test.go", "package x\nfunc f() { /* FIX" + "ME */ }\n", "finish it"},
		{checkFinished, "internal/x", "", "package x\nconst s = \"TO" + "DO\"\n", ""},

		{checkStyle, "internal/x", "", "package x\nfunc init() {}", "no init"},
		{checkStyle, "internal/x", "", "package x\ntype t struct{}\nfunc (t) init() {}", ""},
		{checkStyle, "internal/x", "", "package x\nimport \"context\"\ntype t struct{ ctx context.Context }", "never kept"},
		{checkStyle, "internal/x", "", "package x\nimport \"context\"\nfunc f(ctx context.Context) {}", ""},
		{checkStyle, "internal/x", "", "package x\ntype p interface{ A(); B(); C(); D(); E(); F(); G() }", ""},
		{checkStyle, "internal/x", "", "package x\ntype p interface{ A(); B(); C(); D(); E(); F(); G(); H() }", "interface of 8 methods"},
	}
	for i, c := range cases {
		name := c.file
		if name == "" {
			name = "x.go"
		}
		p := source(t, c.room, map[string]string{name: c.text})
		if p.inCore() && len(p.code()) > 0 && !strings.Contains(c.text, "import") {
			if err := p.check(nil); err != nil {
				t.Fatal(err)
			}
		}
		got := strings.Join(c.rule(p), "\n")
		switch {
		case c.wants == "" && got != "":
			t.Errorf("case %d, %s in %s: should pass, says %q", i, c.text, c.room, got)
		case !strings.Contains(got, c.wants):
			t.Errorf("case %d, %s in %s: should be refused with %q, says %q", i, c.text, c.room, c.wants, got)
		}
	}
}

func TestSizeRuleCanFail(t *testing.T) {
	lines := func(n int) string { return strings.Repeat("\n", n) }
	cases := []struct {
		file, text string
		want       []string
	}{
		{"x.go", "package x\n" + lines(maxFile-1), nil},
		{"x.go", "package x\n" + lines(maxFile), []string{"internal/x/x.go"}},
		{"x_test.go", "package x\n" + lines(maxFile), nil},
		{"x.go", "// Code generated by hand. DO NOT EDIT.\npackage x\n" + lines(maxFile), nil},
		{"x.go", "package x\nfunc f() {" + lines(maxFunc-1) + "}\n", nil},
		{"x.go", "package x\nfunc f() {" + lines(maxFunc) + "}\n", []string{"internal/x/x.go f"}},
	}
	for i, c := range cases {
		var got []string
		for _, s := range checkSize(source(t, "internal/x", map[string]string{c.file: c.text})) {
			got = append(got, s.key)
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("case %d: got %v, want %v", i, got, c.want)
		}
	}
}
