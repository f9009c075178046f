// Package prices_test runs the example's scripts on its sample and checks their numbers against a computation of its own.
package prices_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/catalog"
)

// job is what a Run of a package finds: its folders, and the variables that name them.
type job struct{ inputs, outputs, progress string }

func newJob(t *testing.T, inputs map[string]string) job {
	t.Helper()
	dir := t.TempDir()
	j := job{filepath.Join(dir, "inputs"), filepath.Join(dir, "outputs"), filepath.Join(dir, "progress")}
	for name, text := range inputs {
		file := filepath.Join(j.inputs, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(j.outputs, 0o755); err != nil {
		t.Fatal(err)
	}
	return j
}

// run runs the package in the folder as its manifest says.
func (j job) run(t *testing.T, folder string, more ...string) (said string, err error) {
	t.Helper()
	m := manifest(t, folder)
	home, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(m.Entry[0], m.Entry[1:]...)
	cmd.Dir = home
	cmd.Env = append([]string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "ROADSTEAD_PACKAGE=" + home, "ROADSTEAD_INPUTS=" + j.inputs,
		"ROADSTEAD_OUTPUTS=" + j.outputs, "ROADSTEAD_PROGRESS=" + j.progress}, more...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func manifest(t *testing.T, folder string) catalog.Manifest {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, api.ManifestFile))
	if err != nil {
		t.Fatal(err)
	}
	m, err := catalog.ParseManifest(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// table is an output as rows of cells, without its head.
func (j job) table(t *testing.T, name string) [][]string {
	t.Helper()
	f, err := os.Open(filepath.Join(j.outputs, name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // only read
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) == 0 {
		t.Fatalf("%s: %v, %d rows", name, err, len(rows))
	}
	return rows[1:]
}

func sample(t *testing.T) (text string, dates []string, prices []float64) {
	t.Helper()
	raw, err := os.ReadFile("prices.csv")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		p, err := strconv.ParseFloat(row[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		dates, prices = append(dates, row[0]), append(prices, p)
	}
	return string(raw), dates, prices
}

// yearly is the volatility of log returns, by the textbook's formula of sums.
func yearly(prices []float64) float64 {
	n, sum, squares := float64(len(prices)-1), 0.0, 0.0
	for i := range len(prices) - 1 {
		r := math.Log(prices[i+1]) - math.Log(prices[i])
		sum, squares = sum+r, squares+r*r
	}
	return math.Sqrt((squares - sum*sum/n) / (n - 1) * 252)
}

func near(t *testing.T, what, cell string, want float64) {
	t.Helper()
	got, err := strconv.ParseFloat(cell, 64)
	if err != nil || math.Abs(got-want) > 1e-8 {
		t.Errorf("%s is %q, want %.10f", what, cell, want)
	}
}

// The report's numbers are those of an independent computation.
func TestReport(t *testing.T) {
	text, dates, prices := sample(t)
	const window = 30
	j := newJob(t, map[string]string{"prices": text, "window": "30", "windows": "5 10"})
	said, err := j.run(t, "report")
	if err != nil {
		t.Fatal(err, said)
	}
	rows := j.table(t, "table.csv")
	if len(rows) != len(prices) {
		t.Fatalf("%d rows of %d prices", len(rows), len(prices))
	}
	var rolling []float64
	for i, row := range rows {
		if row[0] != dates[i] {
			t.Fatalf("row %d is of %s", i, row[0])
		}
		near(t, "drawdown of "+row[0], row[4], prices[i]/slices.Max(prices[:i+1])-1)
		if i > 0 {
			near(t, "return of "+row[0], row[2], (prices[i]-prices[i-1])/prices[i-1])
		}
		if i < window {
			if row[3] != "" {
				t.Errorf("%s has a volatility of too few returns", row[0])
			}
			continue
		}
		v := yearly(prices[i-window : i+1])
		near(t, "volatility of "+row[0], row[3], v)
		rolling = append(rolling, v)
	}
	s, mean := j.table(t, "summary.csv")[0], 0.0
	for _, v := range rolling {
		mean += v / float64(len(rolling))
	}
	if s[0] != "30" || s[1] != strconv.Itoa(len(prices)) {
		t.Errorf("summary of %v", s)
	}
	for i, want := range []float64{prices[len(prices)-1]/prices[0] - 1, yearly(prices), mean, slices.Min(rolling), slices.Max(rolling), rolling[len(rolling)-1], deepest(dates, prices)[0].depth} {
		near(t, "column "+strconv.Itoa(i+2)+" of the summary", s[i+2], want)
	}
	checkFalls(t, j.table(t, "drawdowns.csv"), deepest(dates, prices))
	if points := polylines(t, filepath.Join(j.outputs, "chart.svg")); !slices.Equal(points, []int{len(prices), len(rolling), len(prices) + 2}) {
		t.Errorf("the chart's lines have %v points", points)
	}
	for _, out := range manifest(t, "report").Outputs {
		if _, err := os.Stat(filepath.Join(j.outputs, out.Name)); err != nil {
			t.Error(err)
		}
	}
	if p, err := os.ReadFile(j.progress); err != nil || !strings.HasSuffix(string(p), "1 done\n") {
		t.Errorf("progress %q, %v", p, err)
	}
}

// fall is a drawdown: from a peak over its trough to the day that reached the peak again.
type fall struct {
	peak, trough, recovered string
	depth                   float64
	days                    int
}

// deepest finds the falls peak by peak, the deepest first.
func deepest(dates []string, prices []float64) (all []fall) {
	for peak := 0; peak < len(prices); {
		next := peak + 1
		for next < len(prices) && prices[next] < prices[peak] {
			next++
		}
		if next > peak+1 {
			trough := peak + 1
			for i := peak + 1; i < next; i++ {
				if prices[i] < prices[trough] {
					trough = i
				}
			}
			f := fall{peak: dates[peak], trough: dates[trough], depth: prices[trough]/prices[peak] - 1, days: trough - peak}
			if next < len(prices) {
				f.recovered = dates[next]
			}
			all = append(all, f)
		}
		peak = next
	}
	slices.SortStableFunc(all, func(a, b fall) int {
		switch {
		case a.depth < b.depth:
			return -1
		case a.depth > b.depth:
			return 1
		}
		return 0
	})
	return all
}

func checkFalls(t *testing.T, rows [][]string, want []fall) {
	t.Helper()
	if len(rows) != 5 || len(want) < 5 {
		t.Fatalf("%d falls, %d by our count", len(rows), len(want))
	}
	for i, row := range rows {
		f := want[i]
		if row[0] != f.peak || row[1] != f.trough || row[2] != f.recovered || row[4] != strconv.Itoa(f.days) {
			t.Errorf("fall %d is %v, want %+v", i, row, f)
		}
		near(t, "depth of the fall from "+f.peak, row[3], f.depth)
	}
}

// polylines reads a chart, which must be whole XML, and counts the points of its lines.
func polylines(t *testing.T, file string) (points []int) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(raw)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return points
		}
		if err != nil {
			t.Fatal(file, err)
		}
		e, ok := token.(xml.StartElement)
		for _, a := range e.Attr {
			if ok && e.Name.Local == "polyline" && a.Name.Local == "points" {
				points = append(points, len(strings.Fields(a.Value)))
			}
		}
	}
}

// The elements of a sweep take one window each, and the join puts them together in the order of their indexes.
func TestSweepAndJoin(t *testing.T) {
	text, _, prices := sample(t)
	var batch api.RunBatch
	raw, err := os.ReadFile("sweep.json")
	if err == nil {
		err = json.Unmarshal(raw, &batch)
	}
	if err != nil {
		t.Fatal(err)
	}
	var windows string
	for _, in := range manifest(t, "report").Inputs {
		if in.Name == "windows" {
			if err := json.Unmarshal(in.Default, &windows); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := strings.Fields(windows)
	if a := batch.Runs[0].Run.Array; len(want) != a.Last-a.First+1 {
		t.Fatalf("%d elements for %d windows", a.Last-a.First+1, len(want))
	}
	summaries := map[string]string{}
	for i := range want {
		j := newJob(t, map[string]string{"prices": text, "window": "30", "windows": windows})
		if said, err := j.run(t, "report", "ROADSTEAD_ARRAY_INDEX="+strconv.Itoa(i)); err != nil {
			t.Fatal(err, said)
		}
		summary, err := os.ReadFile(filepath.Join(j.outputs, "summary.csv"))
		if err != nil {
			t.Fatal(err)
		}
		// More than ten elements, so that an order of text would show.
		summaries["summaries/"+strconv.Itoa(i*3)] = string(summary)
	}
	j := newJob(t, summaries)
	said, err := j.run(t, "join")
	if err != nil || said != strconv.Itoa(len(want))+" windows joined\n" {
		t.Fatal(err, said)
	}
	for i, row := range j.table(t, "sweep.csv") {
		if row[0] != want[i] {
			t.Errorf("row %d has the window %s, want %s", i, row[0], want[i])
		}
		n, _ := strconv.Atoi(want[i])
		near(t, "last volatility with "+want[i], row[7], yearly(prices[len(prices)-n-1:]))
	}
	polylines(t, filepath.Join(j.outputs, "sweep.svg")) // whole XML
	j = newJob(t, map[string]string{"prices": text, "window": "30", "windows": windows})
	if said, err := j.run(t, "report", "ROADSTEAD_ARRAY_INDEX=6"); err == nil || !strings.Contains(said, "none for the index 6") {
		t.Error(err, said)
	}
}

// What is wrong with the prices is said with the line, and nothing is drawn.
func TestBadPrices(t *testing.T) {
	for text, want := range map[string]string{
		"date,close\n2026-01-01,1\n2026-01-02\n":       "line 3: there are 1 columns",
		"date,close\n2026-01-01,1\n2026-01-02,x\n":     `line 3: "x" is no price`,
		"date,close\n2026-01-01,0\n":                   "is no price",
		"date,close\n01.02.2026,1\n":                   "is no date",
		"date,close\n2026-01-02,1\n2026-01-01,1\n":     "does not come after",
		"date,close\r\n2026-01-01,1\r\n2026-01-02,2\n": "2 prices are too few for a window of 30",
		"": "too few",
	} {
		j := newJob(t, map[string]string{"prices": text, "window": "30", "windows": "5"})
		said, err := j.run(t, "report")
		if _, serr := os.Stat(filepath.Join(j.outputs, "chart.svg")); err == nil || !strings.Contains(said, want) || serr == nil {
			t.Errorf("%q: %v\n%s", text, err, said)
		}
	}
}

// The sample is what its generator makes of its seed.
func TestSampleIsMadeBySeed(t *testing.T) {
	text, _, _ := sample(t)
	made, err := exec.Command("sh", "make-prices.sh").Output()
	if err != nil || string(made) != text {
		t.Errorf("%v: make-prices.sh gives other prices than prices.csv has", err)
	}
	if other, err := exec.Command("sh", "make-prices.sh", "8").Output(); err != nil || string(other) == text {
		t.Errorf("%v: another seed gives the same", err)
	}
}
