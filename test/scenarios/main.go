// Command scenarios plays what Runs have to stand on real servers and runners: an even stream, a mass of
// schedules, a noisy tenant, a server that is killed, a runner that is lost, a slow object store, reports that come
// twice. It prints a line a figure and fails when one is past its limit. In each a stranger tries to reach what is not
// its own.
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
	"strings"
	"sync"
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
		fmt.Fprintln(os.Stderr, "scenarios:", err)
		os.Exit(1)
	}
}

var errMissed = errors.New("a measure is past its limit")

// bench is what the scenarios share.
type bench struct {
	dir   string
	scale scale

	mu     sync.Mutex
	missed bool
	ports  int // given out
}

// scale is how much is played.
type scale struct {
	runs      int // of a stream
	backlog   int // of the noisy tenant
	schedules int
	repeats   int  // of a report
	together  bool // the worlds at the same time: most of what they do is to wait
}

var scales = map[string]scale{
	"full": {runs: 80, backlog: 160, schedules: 60, repeats: 50},
	"ci":   {runs: 24, backlog: 30, schedules: 12, repeats: 20, together: true},
}

// scenario is one world's course. Those of one group share a world, one after the other.
type scenario struct {
	name  string
	group string
	play  func(context.Context, *world) error
}

func scenarios() []scenario {
	return []scenario{
		{"even", "even", even}, {"noisy", "noisy", noisy}, {"twice", "even", twice},
		{"burst", "burst", burst},
		{"restart", "trouble", restart}, {"loss", "trouble", loss},
		{"slow", "slow", slow},
	}
}

func run(ctx context.Context, args []string) (err error) {
	f := flag.NewFlagSet("scenarios", flag.ContinueOnError)
	size := f.String("scale", "full", "full, or ci for a small copy")
	only := f.String("scenario", "", "play only this one")
	if err := f.Parse(args); err != nil {
		return err
	}
	s, known := scales[*size]
	if !known || f.NArg() > 0 {
		return fmt.Errorf("-scale must be full or ci, is %q", *size)
	}
	dir, err := os.MkdirTemp("", "roadstead-scenarios-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{dir: dir, scale: s}
	if err := os.Chmod(dir, 0o711); err != nil { // the jobs' users have to get through
		return err
	}
	if err := b.build(ctx); err != nil {
		return err
	}
	if err := b.playAll(ctx, *only); err != nil {
		return err
	}
	if b.missed {
		return errMissed
	}
	return nil
}

// playAll plays the groups, one after the other or together.
func (b *bench) playAll(ctx context.Context, only string) error {
	groups := []string{"burst", "even", "noisy", "trouble", "slow"}
	failed := make([]error, len(groups))
	var playing sync.WaitGroup
	for i, group := range groups {
		playing.Go(func() { failed[i] = b.playGroup(ctx, group, only) })
		if !b.scale.together {
			playing.Wait()
		}
	}
	playing.Wait()
	return errors.Join(failed...)
}

// playGroup makes a world, plays the group's scenarios in it, and looks whether anything is held that should not be.
func (b *bench) playGroup(ctx context.Context, group, only string) (err error) {
	var w *world
	for _, s := range scenarios() {
		if s.group != group || only != "" && only != s.name {
			continue
		}
		if w == nil {
			if w, err = newWorld(ctx, b, group); err != nil {
				return fmt.Errorf("%s: %w", group, err)
			}
			defer func() { err = errors.Join(err, w.close()) }()
		}
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, 3*time.Minute)
		err := s.play(limited, w)
		if err == nil {
			err = w.strangers(limited, s.name)
		}
		cancel()
		if ctx.Err() != nil {
			return context.Canceled
		}
		if err != nil {
			b.say("%s: %v", s.name, err)
		}
		b.report(s.name+".ran", boolean(err == nil), exactly, 1)
		b.say("%s: took %s", s.name, time.Since(began).Round(time.Second))
	}
	if w == nil || group == "burst" { // what it tells is when Runs come
		return nil
	}
	return w.settled(ctx)
}

func (b *bench) program() string { return filepath.Join(b.dir, "roadstead") }

func (b *bench) build(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "go", "build", "-o", b.program(), "github.com/roadstead/roadstead/cmd/roadstead").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the server: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(os.Stderr, "# "+format+"\n", args...) }
