package sim

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteTable prints the report for a person at a terminal.
func (r Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s\n\n", r.Config.Line())
	fmt.Fprintf(t, "clients\t%d finished, %d failed, %d left of their own will\n", r.Finished, r.Failed, r.Vanished)
	fmt.Fprintf(t, "bytes\t%.3g TB in %s\n", float64(r.Bytes)/1e12, seconds(r.Makespan))
	fmt.Fprintf(t, "link\t%.1f %% busy while anyone waited\n", 100*r.Busy)
	fmt.Fprintf(t, "requests\t%d, %d no-shows\n", r.Polls, r.NoShows)

	fmt.Fprintf(t, "\ntime to finish\tfirst\tmean\tp50\tp95\tlast\n")
	row(t, r.Config.Strategy, r.Finish)
	row(t, "even sharing", r.Even)
	fmt.Fprintf(t, "mean, of even sharing's\t%.3f\n", r.MeanRatio)

	fmt.Fprintf(t, "\nwait for the first byte\tfirst\tmean\tp50\tp95\tlast\tclients\n")
	for _, c := range r.Waits {
		row(t, c.Class, c.Seconds, fmt.Sprint(c.Clients))
	}
	if e := r.Estimates; e.Promised > 0 {
		fmt.Fprintf(t, "\nstart as first told\tfirst\tmean\tp50\tp95\tlast\n")
		row(t, "off by", e.Error)
		fmt.Fprintf(t, "started inside the interval\t%.1f %% of %d\n", 100*e.Inside, e.Promised)
		fmt.Fprintf(t, "interval narrow enough\t%.1f %%, mean width %s, one seat turn %s\n", 100*e.Narrow, seconds(e.Width), seconds(e.Turn))
	}
	if r.Left != (Left{}) {
		fmt.Fprintf(t, "\nleft in the machine\t%+v\n", r.Left)
	}
	fmt.Fprintf(t, "\nhash\t%s\n", r.Hash)
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	return nil
}

// row prints one spread.
func row(w io.Writer, name string, s Spread, more ...string) {
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s", name, seconds(s.First), seconds(s.Mean), seconds(s.P50), seconds(s.P95), seconds(s.Last))
	for _, m := range more {
		fmt.Fprintf(w, "\t%s", m)
	}
	fmt.Fprintln(w)
}
