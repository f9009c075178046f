package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"
)

// scenario is one fleet over one link.
type scenario struct {
	name    string
	clients int // downloads, those of stock clients included
	stock   int // of them by curl, which makes no download id
	owners  int // principals that the clients belong to
	seats   int
	size    int64 // bytes of the file
	rate    int64 // bytes per second of the link
	play    func(context.Context, *bench, scenario) error
}

// scenarios of both scales; the full one has the variants too. The small ones keep the large ones' shape: a file takes each seat about as long as several
// ticks, and the seats hold a small part of the fleet.
func scenarios(scale string) ([]scenario, error) {
	switch scale {
	case "full":
		return append([]scenario{
			{"governor", 500, 50, 25, 16, 40e6, 40e6, playGovernor},
			{"netns", 500, 50, 25, 16, 40e6, 40e6, playNamespace},
			{"seats2", 100, 10, 25, 2, 40e6, 40e6, playGovernor},
			{"restart", 20, 0, 20, 1, 40e6, 40e6, playRestart},
		}, variants()...), nil
	case "ci":
		return []scenario{
			{"governor", 64, 6, 10, 4, 18e6, 40e6, playGovernor},
			{"netns", 64, 6, 10, 4, 18e6, 40e6, playNamespace},
			{"seats2", 32, 4, 10, 2, 25e6, 40e6, playGovernor},
			{"restart", 20, 0, 20, 1, 20e6, 40e6, playRestart},
		}, nil
	}
	return nil, fmt.Errorf("-scale must be full or ci, is %q", scale)
}

// choose reads the command line: which scenarios, and what of them is different this time.
func choose(args []string) ([]scenario, error) {
	known := "all, governor, netns, seats2, restart, variants"
	for _, v := range variants() {
		known += ", " + v.name
	}
	f := flag.NewFlagSet("load", flag.ContinueOnError)
	name := f.String("scenario", "all", known)
	scale := f.String("scale", "full", "full, or ci for a small copy")
	clients := f.Int("clients", 0, "downloads; 0: the scenario's own")
	stock := f.Int("stock", -1, "of them by curl; -1: the scenario's own")
	seats := f.Int("seats", 0, "seats; 0: the scenario's own")
	size := f.Int64("size", 0, "bytes of the file; 0: the scenario's own")
	rate := f.Int64("rate", 0, "bytes per second of the link; 0: the scenario's own")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	all, err := scenarios(*scale)
	if err != nil {
		return nil, err
	}
	if *name == "variants" {
		*name, all = "all", variants()
	}
	chosen := slices.DeleteFunc(all, func(s scenario) bool { return *name != "all" && *name != s.name })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("-scenario must be one of %s, is %q", known, *name)
	}
	for i := range chosen {
		s := &chosen[i]
		given(&s.clients, *clients)
		given(&s.seats, *seats)
		given(&s.size, *size)
		given(&s.rate, *rate)
		if *stock >= 0 && s.stock > 0 {
			s.stock = *stock
		}
		if err := s.validate(); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

func given[T int | int64](field *T, value T) {
	if value != 0 {
		*field = value
	}
}

func (s scenario) validate() error {
	for _, f := range []struct {
		flag   string
		value  int64
		lo, hi int64
	}{
		{"-clients", int64(s.clients), 1, 10000}, {"-stock", int64(s.stock), 0, min(int64(s.clients), 64)}, // the server holds 64
		{"-seats", int64(s.seats), 1, 1000}, {"-size", s.size, 2e6, 1e12}, {"-rate", s.rate, 1e5, 1e11},
	} {
		if f.value < f.lo || f.value > f.hi {
			return fmt.Errorf("%s must be between %d and %d, is %d", f.flag, f.lo, f.hi, f.value)
		}
	}
	return nil
}

// settings are the server's environment. Files of every scale count as large.
func (s scenario) settings() []string {
	return []string{
		fmt.Sprintf("ROADSTEAD_MAX_DOWNLOAD_SESSIONS=%d", s.seats), "ROADSTEAD_DOWNLOAD_SESSION_MIN_BYTES=1000000",
		"ROADSTEAD_LOG_LEVEL=warn", "ROADSTEAD_DISK_RESERVE=0", "ROADSTEAD_DRAIN_SECONDS=2",
	}
}

// class is the ceiling of an owner: all four, people and machines mixed.
func (s scenario) class(owner int) string {
	if s.stock == 0 {
		return "release" // one queue: its order is what is looked at
	}
	return strings.Fields("interactive release bulk background release")[owner%5]
}

// turn is how long the link takes for one file on every seat.
func (s scenario) turn(rate float64) time.Duration {
	return time.Duration(float64(s.seats) * float64(s.size) / rate * float64(time.Second))
}

// patience is when the run is over whatever still waits: three times what the link needs, and a minute.
func (s scenario) patience() time.Duration {
	return time.Minute + 3*time.Duration(float64(s.clients)*float64(s.size)/float64(s.rate)*float64(time.Second))
}
