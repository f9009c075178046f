// Command roadctl is the command line of a Roadstead server: it uploads, shares and downloads files, waits its turn in
// the queue, and shows operators what waits.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"
)

func main() { os.Exit(realMain()) }

func realMain() int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel(errInterrupted)
		signal.Stop(signals) // a second Ctrl-C ends the process at once
	}()
	return run(ctx, os.Args[1:], &app{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Getenv, now: time.Now,
		inTTY: isTTY(os.Stdin), errTTY: isTTY(os.Stderr), outTTY: isTTY(os.Stdout),
	})
}

func isTTY(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
