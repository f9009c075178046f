package schedules

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/fault"
)

var update = flag.Bool("update", false, "write the tables in testdata anew")

const stamp = "Mon 2006-01-02 15:04 -07:00"

// Changes of the clock in both directions, midnights and days that do not exist: the tables in testdata say when each
// rule fires. A head is zone | rule | from | how many; below it are local times, and the real time since the one before.
// The tables cover R07 and R08.
func TestTables(t *testing.T) {
	tables, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(tables) < 6 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	for _, table := range tables {
		t.Run(strings.TrimSuffix(filepath.Base(table), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(table)
			if err != nil {
				t.Fatal(err)
			}
			got := computed(t, string(want))
			if *update {
				if err := os.WriteFile(table, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("the rules make\n%s", got)
			}
		})
	}
}

// computed is a table with what the rules make under its heads; comments and heads stay.
func computed(t *testing.T, table string) string {
	var out strings.Builder
	lines := bufio.NewScanner(strings.NewReader(table))
	for lines.Scan() {
		line := lines.Text()
		head := strings.Split(line, "|")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			fmt.Fprintln(&out, line)
		case len(head) == 4:
			fmt.Fprintln(&out, line)
			fires(t, &out, head)
		}
	}
	return out.String()
}

func fires(t *testing.T, out *strings.Builder, head []string) {
	zone, rule := strings.TrimSpace(head[0]), strings.TrimSpace(head[1])
	r, err := ParseRule(rule, zone)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(head[2]))
	if err != nil {
		t.Fatal(err)
	}
	most, err := strconv.Atoi(strings.TrimSpace(head[3]))
	if err != nil {
		t.Fatal(err)
	}
	for range most {
		next := r.Next(at)
		fmt.Fprintf(out, "    %s  +%s\n", next.In(r.zone).Format(stamp), shortly(next.Sub(at)))
		at = next
	}
}

// shortly is a duration without the zeros at its end.
func shortly(d time.Duration) string {
	s := d.String()
	s = strings.TrimSuffix(s, "0s")
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func TestRulesThatAreRefused(t *testing.T) {
	for rule, want := range map[string]string{
		"":                        "five fields",
		"* * * *":                 "five fields",
		"* * * * * *":             "five fields",
		"@everysecond":            "five fields",
		"@often":                  "five fields",
		"60 * * * *":              `minute can't be "60"`,
		"-5 * * * *":              `minute can't be "-5"`,
		"1-2-3 * * * *":           `minute can't be "1-2-3"`,
		"*/0 * * * *":             `minute can't be "*/0"`,
		"5,99 * * * *":            `minute can't be "99"`,
		"*,99 * * * *":            `minute can't be "99"`,
		"70/5 * * * *":            `minute can't be "70/5"`,
		"10-5 * * * *":            `minute can't be "10-5"`,
		"MON * * * *":             `minute can't be "MON"`,
		"0 24 * * *":              `hour can't be "24"`,
		"0 0 0 * *":               `day of month can't be "0"`,
		"0 0 32 * *":              `day of month can't be "32"`,
		"0 0 32W * *":             `day of month can't be "32W"`,
		"0 0 * 13 *":              `month can't be "13"`,
		"0 0 * MONDAY *":          `month can't be "MONDAY"`,
		"0 0 * * 8":               `day of week can't be "8"`,
		"0 0 * * MON#6":           `day of week can't be "MON#6"`,
		"0 0 * * ,":               `day of week can't be ""`,
		strings.Repeat("1", 1000): "longer",
		"0 0 * * *; rm -rf":       "five fields",
	} {
		_, err := ParseRule(rule, "UTC")
		if !fault.Is(err, fault.InvalidInput) || fault.From(err).Details[0].Field != "rule" || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", rule, err)
		}
	}
	for _, zone := range []string{"", "Local", "Europe/Atlantis", "../etc/passwd"} {
		if _, err := ParseRule("@daily", zone); !fault.Is(err, fault.InvalidInput) || fault.From(err).Details[0].Field != "zone" {
			t.Errorf("zone %q: %v", zone, err)
		}
	}
}

// The search ends for rules that never fire, in every zone with a gap at midnight too, and finds the rarest that does (R08).
func TestSearchEnds(t *testing.T) {
	from := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, zone := range []string{"UTC", "America/Sao_Paulo", "Asia/Beirut", "Pacific/Apia", "Australia/Lord_Howe", "Antarctica/Troll", "America/St_Johns"} {
		for rule, want := range map[string]string{
			"0 0 31 2 *":         "0001-01-01",
			"0 0 30 FEB *":       "0001-01-01",
			"0 0 31 4,6,9,11 *":  "0001-01-01",
			"0 12 29 2 *":        "2028-02-29",
			"0 12 29 2 */7":      "2032-02-29", // in February, on Sundays that are the 29th
			"0 12 L 2 *":         "2027-02-28",
			"0 12 31W 12 *":      "2026-12-31",
			"0 12 * 12 FRI#1":    "2026-12-04",
			"0 12 * 12 FRIL":     "2026-12-25",
			"0 12 13 * FRI":      "2026-12-04", // both days of the month and of the week
			"*/5 * 1 1 *":        "2027-01-01",
			"@yearly":            "2027-01-01",
			"59 23 31 12 *":      "2026-12-31",
			"0 12 1-31/30 1-3 *": "2027-01-01",
		} {
			r, err := ParseRule(rule, zone)
			if err != nil {
				t.Fatal(rule, err)
			}
			if got := r.Next(from); got.In(r.zone).Format(time.DateOnly) != want && !(got.IsZero() && strings.HasPrefix(want, "0001")) {
				t.Errorf("%s in %s: %s, want %s", rule, zone, got.In(r.zone), want)
			}
		}
	}
}

// Within a year of each of many zones: instants go up, a rule that goes by elapsed time keeps its rhythm within the day,
// and a fixed one fires once on each day that exists (R07).
func TestRhythm(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Asia/Beirut", "Africa/Cairo", "Africa/Casablanca",
		"Australia/Lord_Howe", "Antarctica/Troll", "America/St_Johns", "America/Havana", "Pacific/Apia", "Pacific/Chatham", "Asia/Kathmandu"}
	for _, zone := range zones {
		for _, year := range []int{2006, 2011, 2018, 2026} {
			from := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
			to := from.AddDate(1, 0, 0)
			hourly, daily := parsed(t, "0 * * * *", zone), parsed(t, "30 2 * * *", zone)
			last := from
			for at := range hourly.Between(from, to) {
				if d := at.Sub(last); d <= 0 || d > time.Hour {
					t.Errorf("%s: %s after %s", zone, at.In(hourly.zone), d)
				}
				last = at
			}
			days := map[string]int{}
			for at := range daily.Between(from, to) {
				days[at.In(daily.zone).Format(time.DateOnly)]++
			}
			for day := from.AddDate(0, 0, 1); day.Before(to.AddDate(0, 0, -1)); day = day.AddDate(0, 0, 1) {
				want := 1
				if zone == "Pacific/Apia" && day.Format(time.DateOnly) == "2011-12-30" {
					want = 0
				}
				if days[day.Format(time.DateOnly)] != want {
					t.Errorf("%s: %d fires on %s", zone, days[day.Format(time.DateOnly)], day.Format(time.DateOnly))
				}
			}
		}
	}
}

func parsed(t *testing.T, rule, zone string) Rule {
	t.Helper()
	r, err := ParseRule(rule, zone)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// FuzzRule finds no text that makes the parser or the search fail, or the search run back.
func FuzzRule(f *testing.F) {
	for _, rule := range []string{"*/5 * * * *", "0 1 4 11 *", "30 2 L * MON#1", "@weekly", "0 0-23/7 1W,15W JAN-MAR 5L"} {
		f.Add(rule, int64(1541300400))
	}
	f.Fuzz(func(t *testing.T, rule string, unix int64) {
		r, err := ParseRule(rule, "America/Sao_Paulo")
		if err != nil {
			return
		}
		from := time.Unix(unix%(1<<33), 0)
		last, count := from, 0
		for at := range r.Between(from, from.AddDate(0, 0, 3)) {
			if !at.After(last) {
				t.Fatalf("%s: %s after %s", rule, at, last)
			}
			last = at
			count++
		}
		if count > 4*24*60 {
			t.Fatalf("%s: %d fires in three days", rule, count)
		}
	})
}
