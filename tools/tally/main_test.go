package main

import (
	"strings"
	"testing"
)

func TestTally(t *testing.T) {
	cases := []struct {
		name   string
		events []string
		want   string
		good   bool
		shown  []string
		hidden []string
	}{
		{
			name: "passes are counted and their output dropped",
			events: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"chatter\n"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Output":"PASS\n"}`,
				`{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			want: "1 passed, 0 failed, 0 skipped", good: true,
			shown: []string{"ok  \tp"}, hidden: []string{"chatter", "PASS"},
		},
		{
			name: "a failure shows its output",
			events: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"got 1, want 2\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestA"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: "0 passed, 1 failed, 0 skipped", shown: []string{"got 1, want 2"},
		},
		{
			name: "a skip is not good enough",
			events: []string{
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestB","Output":"no database\n"}`,
				`{"Action":"skip","Package":"p","Test":"TestB"}`,
			},
			want: "1 passed, 0 failed, 1 skipped", shown: []string{"no database"},
		},
		{
			name: "a fuzz target may pass over an input, and a package without tests is no skip",
			events: []string{
				`{"Action":"skip","Package":"p","Test":"FuzzA/seed#0"}`,
				`{"Action":"pass","Package":"p","Test":"FuzzA"}`,
				`{"Action":"skip","Package":"q"}`,
			},
			want: "1 passed, 0 failed, 0 skipped", good: true,
		},
		{
			name: "a package that does not build is a failure",
			events: []string{
				`{"Action":"pass","Package":"q","Test":"TestA"}`,
				`{"Action":"build-output","ImportPath":"p","Output":"p.go:1: undefined: x\n"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: "1 passed, 1 failed, 0 skipped", shown: []string{"undefined: x"},
		},
		{
			name: "a test that ends the process is a failure and is shown",
			events: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"panic: timed out\n"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: "0 passed, 1 failed, 0 skipped", shown: []string{"panic: timed out"},
		},
		{name: "nothing at all is not good", want: "0 passed, 0 failed, 0 skipped"},
		{name: "what is not an event is passed on", events: []string{"go: no such package"}, want: "0 passed, 0 failed, 0 skipped", shown: []string{"no such package"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			c, err := tally(strings.NewReader(strings.Join(tc.events, "\n")), &out)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.String(); !strings.HasSuffix(got, tc.want) {
				t.Errorf("counts: got %q, want %q", got, tc.want)
			}
			if c.good() != tc.good {
				t.Errorf("good: got %v, want %v", c.good(), tc.good)
			}
			for _, s := range tc.shown {
				if !strings.Contains(out.String(), s) {
					t.Errorf("%q should be shown, got:\n%s", s, &out)
				}
			}
			for _, s := range tc.hidden {
				if strings.Contains(out.String(), s) {
					t.Errorf("%q should not be shown, got:\n%s", s, &out)
				}
			}
		})
	}
}
