// Command runs measures the path of Runs against plain baselines in the same run: what a committed decision costs beside
// a plain insert, what ten thousand tenants cost the core, what the last page of a million Runs costs beside the first,
// how long a pool with a hundred thousand queued Runs takes to load, and how long a submitted Run takes until its process
// runs beside the commits and the sandbox it can't do without. It prints one line a measure and fails when one is past
// its limit. What is compared takes turns, and the median of the ratios of neighbouring turns counts.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// bench is one run of the command: where it may write, and whether all held so far.
type bench struct {
	dir string
	ok  bool
}

// atMost prints a measure that must not be above its limit.
func (b *bench) atMost(name string, value, limit float64) { b.line(name, value, limit, value <= limit) }

// atLeast prints a measure that must not be below its limit.
func (b *bench) atLeast(name string, value, limit float64) {
	b.line(name, value, limit, value >= limit)
}

// stated prints a figure in units of the machine it runs on, whose limit is a statement and no gate.
func (b *bench) stated(name string, value, limit float64) {
	held := b.ok
	b.atMost(name, value, limit)
	b.ok = held
}

func (b *bench) line(name string, value, limit float64, good bool) {
	b.ok = b.ok && good
	fmt.Printf("measure=%s value=%.3g limit=%.3g ok=%v\n", name, value, limit, good)
}

func main() {
	only := flag.String("only", "", "the measures to make, by comma: decisions, tenants, pages, load, start; empty: all")
	rows := flag.Int("rows", 1_000_000, "Runs that are listed")
	flag.Parse()
	dir, err := os.MkdirTemp("", "roadstead-bench-")
	if err != nil {
		fail(err)
	}
	b := &bench{dir: dir, ok: true}
	for _, one := range []struct {
		name string
		make func(context.Context) error
	}{
		{"decisions", b.decisions},
		{"tenants", b.tenants},
		{"pages", func(ctx context.Context) error { return b.pages(ctx, *rows) }},
		{"load", b.load},
		{"start", b.start},
	} {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), one.name) {
			continue
		}
		if err := one.make(context.Background()); err != nil {
			_ = os.RemoveAll(dir) // what is left lies in the folder of temporary files
			fail(fmt.Errorf("%s: %w", one.name, err))
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		fail(err)
	}
	if !b.ok {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "runs:", err)
	os.Exit(1)
}

// median of values; with an even number of them the upper of the two.
func median[T float64 | time.Duration](all []T) T {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// ratios are pairs of turns that met the same neighbours.
type ratios []float64

func (r *ratios) add(own, base time.Duration) { *r = append(*r, float64(own)/float64(base)) }

func (r ratios) median() float64 { return median([]float64(r)) }

// timed says how long f took.
func timed(f func() error) (time.Duration, error) {
	began := time.Now()
	err := f()
	return time.Since(began), err
}
