// Package demo shows the main job on one machine: a fleet of real clients downloads one file from a real server over a
// limited link, and the result stands beside what even sharing of that link would have given.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/roadstead/roadstead/internal/fault"
)

// Config is what a run can be told; zero values are chosen so that the run takes about three quarters of a minute.
type Config struct {
	File    string // file to hand out; empty: one is made
	Clients int    // 0: 24
	Seats   int    // 0: 4
	Rate    int64  // of the link, bytes per second; 0: by the size, or 16 MB/s
	Size    int64  // of the file that is made; 0: by the rate
	Seed    uint64 // of the file's bytes and of the order in which the clients come
	Quick   bool   // a run of about ten seconds with fewer clients
	Version string // of the server
	TempDir string // parent of the run's folder; empty: the system's
}

const (
	usualClients, quickClients = 24, 12
	usualSeats, quickSeats     = 4, 3
	usualRate                  = 16_000_000
	fastestRate                = 100_000_000 // beyond it the machine, not the link, would be what is scarce
	slowestRate                = 16_000
	usualRun, quickRun         = 45 * time.Second, 9 * time.Second
	mostClients                = 500
)

// ErrUnfinished says that some client did not get the file; the summary says which.
var ErrUnfinished = errors.New("not every client got the file")

// plan is a Config with everything decided.
type plan struct {
	Config
	name   string        // of the file, for people
	chosen string        // what was chosen by the time a run should take; empty: nothing
	length time.Duration // what the whole fleet takes at the full rate
}

// decide fills in what the Config leaves open, by the time a run should take.
func (c Config) decide() (plan, error) {
	run, clients, seats := usualRun, usualClients, usualSeats
	if c.Quick {
		run, clients, seats = quickRun, quickClients, quickSeats
	}
	c.Clients, c.Seats = cmp.Or(c.Clients, clients), cmp.Or(c.Seats, seats)
	if c.Clients < 1 || c.Clients > mostClients {
		return plan{}, fault.Invalid("clients", "must be between 1 and %d, is %d", mostClients, c.Clients)
	}
	if c.Seats < 1 || c.Seats > 64 {
		return plan{}, fault.Invalid("seats", "must be between 1 and 64, is %d", c.Seats)
	}
	p := plan{Config: c, name: "release.bin"}
	if c.File != "" {
		info, err := os.Stat(c.File)
		switch {
		case err != nil:
			return plan{}, fault.Invalid("FILE", "%v", err)
		case !info.Mode().IsRegular() || info.Size() == 0:
			return plan{}, fault.Invalid("FILE", "%s must be a regular file that is not empty", c.File)
		case c.Size != 0:
			return plan{}, fault.Invalid("size", "is for the file that is made; %s has its own", c.File)
		}
		p.name, p.Size = filepath.Base(c.File), info.Size()
	}
	p.size(int64(run / time.Second))
	if p.Rate < slowestRate {
		return plan{}, fault.Invalid("rate", "must be at least %s, is %s", perSecond(slowestRate), perSecond(float64(p.Rate)))
	}
	if p.Size < 1 || p.Size > 1<<40 {
		return plan{}, fault.Invalid("size", "must be between 1 byte and 1 TiB, is %d", p.Size)
	}
	p.length = time.Duration(float64(p.Size) * float64(p.Clients) / float64(p.Rate) * float64(time.Second))
	return p, nil
}

// size chooses the file's size, the link's rate or both so that a run takes so many seconds.
func (p *plan) size(seconds int64) {
	clients := int64(p.Clients)
	switch {
	case p.Rate == 0 && p.Size == 0:
		p.chosen, p.Rate, p.Size = "file", usualRate, usualRate*seconds/clients
	case p.Rate == 0:
		p.chosen, p.Rate = "link", min(max(p.Size*clients/seconds, slowestRate), fastestRate)
	case p.Size == 0:
		p.chosen, p.Size = "file", p.Rate*seconds/clients
	}
}

// Run shows one run on the screen. However it ends, nothing is left behind: clients and server are gone and the run's
// folder is removed. It returns ctx's error when it was stopped, ErrUnfinished when a client failed.
func Run(ctx context.Context, cfg Config, screen Screen) (err error) {
	p, err := cfg.decide()
	if err != nil {
		return err
	}
	d := &display{screen: screen, now: time.Now}
	d.say(p.opening()...)
	dir, err := os.MkdirTemp(p.TempDir, "roadstead-demo-")
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	err = p.show(ctx, dir, d)
	if ctx.Err() != nil {
		d.say("", "Stopped. The server is closed and the temporary folder is removed.")
		return context.Cause(ctx)
	}
	return cmp.Or(err, d.err)
}

// show is the run itself, inside its folder.
func (p plan) show(ctx context.Context, dir string, d *display) (err error) {
	server, err := start(ctx, p, filepath.Join(dir, "server"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	ctx = server.guard(ctx)
	d.done("server on %s, everything it keeps in %s", server.url, dir)
	fleet, err := p.prepare(ctx, server, dir, d)
	if err != nil {
		return err
	}
	defer fleet.close()
	if err := fleet.run(ctx, d); err != nil {
		return err
	}
	result := sum(fleet.board.rows(), p.Size)
	d.say(result.words(p, d.look())...)
	if result.finished < p.Clients {
		return ErrUnfinished
	}
	return nil
}
