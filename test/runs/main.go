// Command runs kills the parts of a working system at random and counts what that may not change: a server,
// its runners, their supervisors and the jobs themselves die by SIGKILL, hundreds of times, while Runs go through. The
// jobs say themselves when they start, and the kernel when they end. It prints a line a figure, and fails when one is
// past its limit.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "runs:", err)
		os.Exit(1)
	}
}

var errMissed = errors.New("a measure is past its limit")

func run(ctx context.Context, args []string) error {
	var p plan
	flags := flag.NewFlagSet("runs", flag.ContinueOnError)
	flags.Uint64Var(&p.seed, "seed", uint64(time.Now().UnixNano()), "of everything that is random")
	flags.IntVar(&p.kills, "kills", 300, "how often something is killed")
	flags.DurationVar(&p.pause, "pause", 900*time.Millisecond, "between two kills, on average")
	flags.DurationVar(&p.limit, "limit", 20*time.Minute, "for all of it")
	flags.BoolVar(&p.keep, "keep", false, "keep the files")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	v, err := chaos(ctx, p)
	if err != nil {
		return err
	}
	missed := false
	for _, m := range v.measures() {
		fmt.Println(m)
		missed = missed || !m.ok
	}
	if missed {
		return errMissed
	}
	return nil
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "# "+format+"\n", args...) }

// measure is one promise and what a run came to.
type measure struct {
	name         string
	value, limit float64
	ok           bool
}

func (m measure) String() string {
	return fmt.Sprintf("measure=runs.%s value=%.4g limit=%.4g ok=%t", m.name, m.value, m.limit, m.ok)
}

func atMost(name string, value, limit float64) measure {
	return measure{name, value, limit, value <= limit}
}

func atLeast(name string, value, limit float64) measure {
	return measure{name, value, limit, value >= limit}
}
