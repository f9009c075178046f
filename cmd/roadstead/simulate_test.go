package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/sim"
)

// runSimulate runs the command and gives what it printed.
func runSimulate(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := rootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&bytes.Buffer{})
	root.SetArgs(append([]string{"simulate"}, args...))
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fleet.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Whatever is wrong is named with its flag, and the process ends with 2.
func TestSimulateNamesTheFlag(t *testing.T) {
	tests := []struct {
		args []string
		want []string
	}{
		{[]string{"--sizes", "large"}, []string{"--sizes", "8GB or 4GB-20GB"}},
		{[]string{"--link", "fast"}, []string{"--link", "1Gbit or 40MB"}},
		{[]string{"--classes", "people=1"}, []string{"--classes", "interactive=0.1,bulk=0.9"}},
		{[]string{"--clients", "many"}, []string{"--clients"}},
		{[]string{"--seats", "0"}, []string{"--seats", "between 1 and 65536"}},
		{[]string{"--per-principal", "9"}, []string{"--per-principal", "between 0 and 4"}},
		{[]string{"--reserve", "4"}, []string{"--reserve", "between -1 and 3"}},
		{[]string{"--strategy", "fair"}, []string{"--strategy", "ordered or shared"}},
		{[]string{"--spread", "-1s"}, []string{"--spread"}},
		{[]string{"--stall", "0.6", "--vanish", "0.6"}, []string{"--stall"}},
		{[]string{"--output", "xml"}, []string{"--output", "table or json"}},
		{[]string{"--gate", "--replay", "0"}, []string{"--replay"}},
		{[]string{"--seeds", "1-5"}, []string{"--seeds", "--faults"}},
		{[]string{"--speed", "9"}, []string{"--speed"}},
		{[]string{"fleet.json"}, []string{"fleet.json"}},
		{[]string{"--file", "/does/not/exist"}, []string{"--file", "/does/not/exist"}},
	}
	for _, tt := range tests {
		_, err := runSimulate(t, tt.args...)
		if !fault.Is(err, fault.InvalidInput) || exitCode(err) != 2 {
			t.Errorf("%v: error %v", tt.args, err)
			continue
		}
		for _, part := range tt.want {
			if !strings.Contains(describe(err), part) {
				t.Errorf("%v: %q lacks %q", tt.args, describe(err), part)
			}
		}
	}
}

func TestSimulateReadsAFile(t *testing.T) {
	path := writeFile(t, `{"clients": 30, "sizes": "40MB", "link": "40MB", "perPrincipal": 2, "spread": "1s", "stock": 0.1}`)
	out, err := runSimulate(t, "--file", path, "--clients", "20", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Config struct {
			Clients, PerPrincipal int
			Sizes, Spread         string
			Stock                 float64
		}
		Finished int
		Hash     string
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	c := report.Config
	if c.Clients != 20 || c.PerPrincipal != 2 || c.Sizes != "40MB" || c.Spread != "1s" || c.Stock != 0.1 || report.Finished != 20 || len(report.Hash) != 64 {
		t.Errorf("report %+v", report)
	}
}

// What a report says of its fleet makes the same run again.
func TestSimulateReportIsAFile(t *testing.T) {
	args := []string{"--clients", "20", "--sizes", "20MB-60MB", "--link", "40MB", "--classes", "interactive=0.5,bulk=0.5", "--stall", "0.2", "-o", "json"}
	var first, again struct {
		Config json.RawMessage
		Hash   string
	}
	out, err := runSimulate(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(out), &first); err != nil {
		t.Fatal(err)
	}
	if out, err = runSimulate(t, "--file", writeFile(t, string(first.Config)), "-o", "json"); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(out), &again); err != nil || again.Hash != first.Hash {
		t.Errorf("hash %s, then %s, error %v", first.Hash, again.Hash, err)
	}
}

func TestSimulateRefusesABadFile(t *testing.T) {
	for text, want := range map[string]string{
		`[1]`:               "not a JSON object",
		`{"clientz": 1}`:    `unknown field "clientz"`,
		`{"clients": "x"}`:  `"clients"`,
		`{"clients": true}`: "must be a string or a number",
		`{"file": "a"}`:     `unknown field "file"`,
		`{"sizes": "8"`:     "not a JSON object",
	} {
		if _, err := runSimulate(t, "--file", writeFile(t, text)); !fault.Is(err, fault.InvalidInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", text, err)
		}
	}
}

func TestSimulateWritesThePage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	out, err := runSimulate(t, "--clients", "20", "--sizes", "40MB", "--link", "40MB", "--html", path)
	if err != nil || !strings.Contains(out, "20 finished") {
		t.Fatalf("error %v, printed %s", err, out)
	}
	page, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(page, []byte("</html>")) {
		t.Errorf("the page: error %v", err)
	}
	if _, err := runSimulate(t, "--clients", "2", "--html", filepath.Join(path, "below")); err == nil || !strings.Contains(err.Error(), "write the page") {
		t.Errorf("error %v", err)
	}
}

func TestProgressLine(t *testing.T) {
	var out bytes.Buffer
	at := time.Unix(0, 0)
	watch, clear := progressLine(&out, func() time.Time { return at })
	for _, s := range []int64{0, 1, 2, 4, 7, 8} {
		at = time.Unix(s, 0)
		watch(time.Duration(s)*time.Hour, int(s), 10)
	}
	clear()
	if want := "simulating: 1h0m0s of fleet time, 1 of 10 clients through\nsimulating: 7h0m0s of fleet time, 7 of 10 clients through\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

func TestMeasureLine(t *testing.T) {
	m := sim.Measure{Name: "sim.uniform.mean_of_even", Value: 0.64578, Limit: 0.66, OK: true}
	if got, want := m.String(), "measure=sim.uniform.mean_of_even value=0.6458 limit=0.66 ok=true"; got != want {
		t.Errorf("line %q, want %q", got, want)
	}
}
