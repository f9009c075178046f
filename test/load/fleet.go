package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roadstead/roadstead/sdk"
)

// outcome is one client's download.
type outcome struct {
	stock   bool
	first   time.Time // its first byte came
	done    time.Time
	told    time.Time    // when it was first told a place with a start
	promise *sdk.Waiting // what it was told then; nil when it never was
	faults  int          // retries for anything but busy
	err     error
}

// fleet is the downloads of a scenario, all begun at once.
type fleet struct {
	world    *world
	scenario scenario
	dir      string
	source   func(i int) string // address that the i-th curl comes from, so that each is a session of its own (D-2.2)
	began    time.Time          // the first request
	finished atomic.Int64
}

// run downloads with every client and returns when all are done.
func (f *fleet) run(ctx context.Context) []outcome {
	ctx, cancel := context.WithTimeout(ctx, f.scenario.patience())
	defer cancel()
	all := make([]outcome, f.scenario.clients)
	// Curls are spread among the others, as they would be in a fleet.
	every := 0
	if f.scenario.stock > 0 {
		every = f.scenario.clients / f.scenario.stock
	}
	var clients sync.WaitGroup
	f.began = time.Now()
	curls := 0
	for i := range all {
		o, key := &all[i], f.world.keys[i%len(f.world.keys)]
		if curls < f.scenario.stock && i%every == every-1 {
			o.stock = true
			n := curls
			curls++
			clients.Go(func() { f.curl(ctx, o, key, n) })
		} else {
			clients.Go(func() { f.sdk(ctx, o, key, i) })
		}
	}
	clients.Wait()
	return all
}

// sdk is one download with our own client.
func (f *fleet) sdk(ctx context.Context, o *outcome, key string, i int) {
	c, err := sdk.New(sdk.Config{URL: f.world.operator.URL(), Key: key, HTTP: newHTTP()})
	if err != nil {
		o.err = err
		return
	}
	defer c.Close()
	file := filepath.Join(f.dir, fmt.Sprintf("client-%d", i))
	defer os.Remove(file)
	got, err := c.Download(ctx, sdk.Download{
		URL: f.world.file, File: file, RangeBytes: max(f.scenario.size/5, 1<<20), Events: o.note,
	})
	f.end(o, got.Digest, err)
}

// note keeps what the gate looks at of a download's events.
func (o *outcome) note(e sdk.Event) {
	switch e := e.(type) {
	case sdk.Waiting:
		if e.Known && o.promise == nil {
			o.told, o.promise = time.Now(), &e
		}
	case sdk.Progress:
		if o.first.IsZero() {
			o.first = time.Now()
		}
	case sdk.Retrying, sdk.Restarted:
		o.faults++
	}
}

// curl is one download with the stock tool, its bytes hashed as they come.
func (f *fleet) curl(ctx context.Context, o *outcome, key string, n int) {
	cmd := exec.CommandContext(ctx, "curl", "-fsS", "--retry", "1000", "--retry-max-time", "0", "--noproxy", "*",
		"--interface", f.source(n), "-H", "@-", f.world.file)
	cmd.Stdin = strings.NewReader("Authorization: Bearer " + key + "\n") // a key has no business in a command line
	hash := sha256.New()
	sum := &hashing{hash: hash, first: &o.first}
	cmd.Stdout = sum
	var words strings.Builder
	cmd.Stderr = &words
	err := cmd.Run()
	if err != nil {
		said := strings.TrimSpace(words.String())
		err = fmt.Errorf("curl: %w: %s", err, said[max(0, len(said)-200):])
	}
	f.end(o, "sha256:"+hex.EncodeToString(hash.Sum(nil)), err)
}

func (f *fleet) end(o *outcome, digest string, err error) {
	o.done, o.err = time.Now(), err
	if err == nil && digest != f.world.digest {
		o.err = fmt.Errorf("received %s instead of %s", digest, f.world.digest)
	}
	f.finished.Add(1)
}

// hashing is a sink that remembers when the first byte came.
type hashing struct {
	hash  io.Writer
	first *time.Time
}

func (h *hashing) Write(p []byte) (int, error) {
	if h.first.IsZero() {
		*h.first = time.Now()
	}
	return h.hash.Write(p)
}

// loopback gives each stock client an address of its own.
func loopback(i int) string { return fmt.Sprintf("127.0.1.%d", 1+i) }

// needCurl says why there can be no stock clients.
func needCurl(s scenario) error {
	if _, err := exec.LookPath("curl"); err != nil && s.stock > 0 {
		return errors.New("curl is needed (Debian: curl)")
	}
	return nil
}
