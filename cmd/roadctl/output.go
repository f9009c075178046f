package main

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"text/tabwriter"
	"time"
)

// show prints a result: a list as a table or as JSON.
func show[T any](a *app, items []T, head []string, row func(T) []string) error {
	if a.flags.output == "json" {
		if items == nil {
			items = []T{}
		}
		return a.json(items)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, strings.Join(head, "\t"))
	for _, item := range items {
		cells := row(item)
		for i, c := range cells {
			cells[i] = printable(c)
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

// showOne prints one result: a line of words, or JSON.
func showOne(a *app, item any, format string, args ...any) error {
	if a.flags.output == "json" {
		return a.json(item)
	}
	_, err := fmt.Fprintln(a.out, printable(fmt.Sprintf(format, args...)))
	return err
}

func (a *app) json(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// say writes a note for people, not part of the result.
func (a *app) say(format string, args ...any) {
	if !a.flags.quiet {
		_, _ = fmt.Fprintf(a.err, format+"\n", args...)
	}
}

// printable keeps control characters of foreign names from the terminal and from table cells.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}

// collect reads a listing to its end.
func collect[T any](seq iter.Seq2[T, error]) ([]T, error) {
	var out []T
	for item, err := range seq {
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

// ends is a cell for an instant that may be absent.
func (a *app) ends(t *time.Time) string {
	if t == nil || t.IsZero() {
		return "-"
	}
	return when(*t, a.now())
}

// untilWhen is the same in a sentence.
func (a *app) untilWhen(t *time.Time) string {
	if t == nil || t.IsZero() {
		return "never"
	}
	return a.ends(t)
}
