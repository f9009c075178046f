package sim

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// troubledReport is a report with something in every part.
func troubledReport(t *testing.T) Report {
	t.Helper()
	cfg := replayFleet(1)
	cfg.Clients = 40
	r, err := Run(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPageStandsAlone(t *testing.T) {
	shared := small()
	shared.Strategy = Shared
	even, err := Run(t.Context(), shared, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		report Report
		charts int
	}{"queue": {troubledReport(t), 3}, "sharing": {even, 2}, "nobody": {Report{Config: Default()}, 2}} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := tt.report.WriteHTML(&b); err != nil {
				t.Fatal(err)
			}
			page := b.String()
			if bad := regexp.MustCompile(`(?i)(src|href)=|url\(|@import|<script|NaN|Inf|ZgotmplZ`).FindString(page); bad != "" {
				t.Errorf("the page has %q", bad)
			}
			for _, part := range []string{"<svg ", `role="img"`, "<title id=", "<desc id="} {
				if got := strings.Count(page, part); got != tt.charts {
					t.Errorf("%d times %q, want %d", got, part, tt.charts)
				}
			}
			for _, ids := range regexp.MustCompile(`aria-labelledby="([^"]+)"`).FindAllStringSubmatch(page, -1) {
				for id := range strings.FieldsSeq(ids[1]) {
					if strings.Count(page, `id="`+id+`"`) != 1 {
						t.Errorf("nothing or too much is called %q", id)
					}
				}
			}
		})
	}
}

func TestMarksStayInThePlot(t *testing.T) {
	for _, c := range troubledReport(t).charts() {
		for _, d := range c.Dots {
			if d.X < plotLeft || d.X > plotRight || d.Y < plotTop || d.Y > plotBottom {
				t.Errorf("%s: a dot at %g, %g", c.ID, d.X, d.Y)
			}
		}
		if len(c.XTicks) < 2 || len(c.XTicks) > 8 || len(c.YTicks) < 2 || len(c.YTicks) > 8 {
			t.Errorf("%s: %d and %d ticks", c.ID, len(c.XTicks), len(c.YTicks))
		}
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	if err := troubledReport(t).WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"finished", "even sharing", "interactive", "started inside the interval", "hash"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("the table lacks %q:\n%s", part, b.String())
		}
	}
}

func TestReportAsJSON(t *testing.T) {
	text, err := json.Marshal(troubledReport(t))
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		Config struct{ Sizes, Link, Classes, Spread string }
		Waits  []struct{ Class string }
	}
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if c := back.Config; c.Sizes != "4GB-20GB" || c.Link != "125MB" || c.Spread != "10m0s" || len(back.Waits) != 4 {
		t.Errorf("read back as %+v", back)
	}
}

func TestSeconds(t *testing.T) {
	for in, want := range map[float64]string{0: "0s", 1.234: "1.23s", 75: "1m15s", 3600: "1h0m", 93784: "26h3m", -5: "-5s"} {
		if got := seconds(in); got != want {
			t.Errorf("%g s is written %q, want %q", in, got, want)
		}
	}
}
