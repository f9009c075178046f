package demo

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/roadstead/roadstead/sdk"
)

var update = flag.Bool("update", false, "write the golden files anew")

// instant is a number of seconds after the first request of the fixed board.
func instant(seconds float64) time.Time {
	return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

// fixed is a board in which every state occurs, in the order of the queue.
func fixed() []row {
	const size = 30_000_000
	told := func(at float64) sdk.Waiting {
		return sdk.Waiting{Known: true, StartsAt: instant(at), Earliest: instant(at - 1), Latest: instant(at + 1)}
	}
	return []row{
		{name: "ana", class: "interactive", state: finished, offset: size, size: size, asked: instant(0), began: instant(0.1), ended: instant(7.5)},
		{name: "ci-01", class: "release", state: failed, offset: size / 3, size: size, asked: instant(0.2), began: instant(0.4), ended: instant(8), err: sdk.ErrNetwork},
		{name: "ci-02", class: "release", state: loading, offset: size * 62 / 100, size: size, rate: 4_012_345, asked: instant(0.1), told: told(7.5), began: instant(7.6)},
		{name: "site-01", class: "bulk", state: loading, offset: size / 10, size: size, asked: instant(0.1), told: told(7.7), began: instant(8)},
		{name: "site-02", class: "bulk", state: waiting, place: 1, size: size, starts: instant(10.1), asked: instant(0.1), told: told(9.9)},
		{name: "site-03", class: "bulk", state: waiting, place: 12, offset: size / 2, size: size, starts: instant(191), asked: instant(0.1), told: told(190)},
		{name: "mirror-1", class: "background", state: asking, size: size, asked: instant(9.9)},
		{name: "mirror-2", class: "background", size: size},
	}
}

func fixedLink() (l link) {
	l.limit = 16_000_000
	l.at(instant(7), 100_000_000)
	l.at(instant(10), 147_700_000)
	return l
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", name, got)
	}
}

func TestTableLayout(t *testing.T) {
	for name, v := range map[string]view{
		"wide.txt":   {columns: 110, unicode: true},
		"usual.txt":  {columns: 80},
		"narrow.txt": {columns: 50, lines: 10},
	} {
		golden(t, name, strings.Join(table(fixed(), fixedLink(), instant(10), v), "\n")+"\n")
	}
}

var escape = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

// No line is ever wider than the screen, nor are there more lines than it has, and colours change nothing but colour.
func TestTableFits(t *testing.T) {
	for columns := leastColumns; columns <= 140; columns++ {
		for _, lines := range []int{0, 1, 6, 8, 9, 24} {
			plain := table(fixed(), fixedLink(), instant(10), view{columns: columns, lines: lines})
			colored := table(fixed(), fixedLink(), instant(10), view{columns: columns, lines: lines, color: true})
			if lines >= 8 && len(plain) >= lines {
				t.Fatalf("%d lines on a screen of %d", len(plain), lines)
			}
			for i, l := range plain {
				if n := utf8.RuneCountInString(l); n > columns {
					t.Fatalf("a line of %d on a screen of %d: %q", n, columns, l)
				}
				if got := escape.ReplaceAllString(colored[i], ""); strings.TrimRight(got, " ") != strings.TrimRight(l, " ") {
					t.Fatalf("coloured %q, plain %q", got, l)
				}
			}
		}
	}
}

func TestWindow(t *testing.T) {
	rows := make([]row, 10)
	for i := range 6 {
		rows[i].state = finished
	}
	for i, c := range []struct{ lines, above, shown, below int }{
		{-1, 0, 10, 0}, {10, 0, 10, 0}, {9, 2, 8, 0}, {5, 6, 4, 0}, {4, 6, 2, 2}, {3, 6, 1, 3}, {0, 6, 1, 3},
	} {
		above, shown, below := window(rows, c.lines)
		if above != c.above || len(shown) != c.shown || below != c.below {
			t.Errorf("case %d: %d above, %d shown, %d below", i, above, len(shown), below)
		}
	}
	_, shown, below := window(make([]row, 10), 4) // nobody has ended
	if len(shown)+below != 10 || len(shown) > 3 {
		t.Errorf("%d shown, %d below", len(shown), below)
	}
}

func TestPlainLine(t *testing.T) {
	const want = "10.0 s  link 15.9 MB/s of 16 MB/s  done 1 of 8  loading 2  waiting 3  failed 1  next site-02 (bulk) in 0 s"
	if got := line(fixed(), fixedLink(), instant(10)); got != want {
		t.Errorf("line %q", got)
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		got, want string
	}{
		{amount(0), "0 B"}, {amount(999), "999 B"}, {amount(1000), "1 kB"}, {amount(30e6), "30 MB"}, {amount(15.94e6), "15.9 MB"},
		{amount(999.9e3), "1 MB"}, {amount(123.4e6), "123 MB"}, {amount(4e12), "4 TB"},
		{steady(0), "0.0 kB/s"}, {steady(999_960), "1.0 MB/s"}, {steady(15.9e6), "15.9 MB/s"}, {steady(2e12), "2000.0 GB/s"},
		{span(-time.Second), "0 s"}, {span(119 * time.Second), "119 s"}, {span(121 * time.Second), "2 min 1 s"}, {span(2 * time.Hour), "2 h 0 min"},
		{brief(time.Second), "1 s"}, {brief(191 * time.Second), "3 min"}, {brief(2 * time.Hour), "2 h"}, {exact(7340 * time.Millisecond), "7.3 s"},
		{count(1, "client", "clients"), "1 client"}, {count(2, "client", "clients"), "2 clients"},
		{faster(time.Second, 6*time.Second), "6.0 times as fast"}, {faster(time.Second, time.Second), "the same"}, {faster(3*time.Second, time.Second), "2.0 s later"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
