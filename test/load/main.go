// Command load is the load gate (D-13.2): a fleet of real clients, stock curl among them, downloads one file over a
// scarce link from a server started for the occasion. It measures what the product promises, prints a line a figure,
// and fails when one is past its limit.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "load: stopped")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

var errMissed = errors.New("a measure is past its limit")

// run plays the scenarios asked for, one after the other, and leaves nothing behind.
func run(ctx context.Context, args []string) (err error) {
	plays, err := choose(args)
	if err != nil {
		return err
	}
	b, err := newBench()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := b.build(ctx); err != nil {
		return err
	}
	for _, s := range plays {
		began := time.Now()
		b.say("%s: %d clients x %.1f MB over %.1f MB/s, %d seats", s.name, s.clients, float64(s.size)/1e6, float64(s.rate)/1e6, s.seats)
		if err := s.play(ctx, b, s); err != nil {
			if ctx.Err() != nil {
				return context.Canceled
			}
			b.say("%s: %v", s.name, err)
			b.report(measure{name: s.name + ".ran", value: 0, limit: 1})
		}
		b.say("%s: took %s", s.name, time.Since(began).Round(time.Second))
	}
	if b.missed {
		return errMissed
	}
	return nil
}

// bench is what the scenarios share: a place for their files, the server's program, and the verdict so far.
type bench struct {
	dir    string // the program and the servers' data
	fast   string // the clients' files; in memory where there is such a place, so that no disk decides the figures
	missed bool
}

func newBench() (*bench, error) {
	dir, err := os.MkdirTemp("", "roadstead-load-")
	if err != nil {
		return nil, err
	}
	fast, err := os.MkdirTemp("/dev/shm", "roadstead-load-")
	if err != nil {
		fast = filepath.Join(dir, "clients")
		err = os.Mkdir(fast, 0o700)
	}
	return &bench{dir: dir, fast: fast}, err
}

// Close removes every file of the run.
func (b *bench) Close() error { return errors.Join(os.RemoveAll(b.fast), os.RemoveAll(b.dir)) }

func (b *bench) program() string { return filepath.Join(b.dir, "roadstead") }

func (b *bench) build(ctx context.Context) error {
	b.say("building the server")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", b.program(), "github.com/roadstead/roadstead/cmd/roadstead").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the server: %w\n%s", err, out)
	}
	return nil
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "# "+format+"\n", args...)
}

func (b *bench) report(m measure) {
	b.missed = b.missed || !m.ok
	fmt.Println(m)
}
