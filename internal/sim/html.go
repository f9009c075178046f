package sim

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed report.html.tmpl
var page string

// WriteHTML writes the report as one page with its charts, without anything from outside.
func (r Report) WriteHTML(w io.Writer) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"seconds": seconds,
		"percent": func(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) },
		"ratio":   func(v float64) string { return fmt.Sprintf("%.3f", v) },
		"tera":    func(n int64) string { return fmt.Sprintf("%.3g TB", float64(n)/1e12) },
		"mid":     func(a, b float64) float64 { return (a + b) / 2 },
	}).Parse(page)
	if err != nil {
		return fmt.Errorf("read the report's page: %w", err)
	}
	view := struct {
		Report
		Charts                   []chart
		Width, Height            float64
		Left, Right, Top, Bottom float64
	}{r, r.charts(), chartWidth, chartHeight, plotLeft, plotRight, plotTop, plotBottom}
	if err := t.Execute(w, view); err != nil {
		return fmt.Errorf("write the report's page: %w", err)
	}
	return nil
}
