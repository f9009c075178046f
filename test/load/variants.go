package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

// variants look at one rule each, over loopback with the server's own governor as the link. Only ratios are promised,
// so the files are as small as seats and ticks allow. A size is the mean where a variant has several.
func variants() []scenario {
	return []scenario{
		{"tail", 48, 0, 48, 1, 40e6, 40e6, playTail},
		{"slow", 120, 0, 40, 8, 20e6, 40e6, playSlow},
		{"crowd", 50, 0, 50, 4, 16e6, 40e6, playCrowd},
		{"comeback", 60, 0, 80, 4, 16e6, 40e6, playComeback},
		{"switch", 60, 0, 30, 4, 16e6, 40e6, playSwitch},
	}
}

// stage is the running server of a variant.
type stage struct {
	b     *bench
	s     scenario
	srv   *server
	world *world
}

// open starts and furnishes the server of a variant. It must be stopped, whatever the error.
func (b *bench) open(ctx context.Context, s scenario, settings ...string) (*stage, error) {
	listen, err := freePort()
	if err != nil {
		return nil, err
	}
	// No seat is kept for a class that nobody is of here, so that the number of seats is what it says.
	settings = append(settings, fmt.Sprintf("ROADSTEAD_BANDWIDTH=%d", s.rate), "ROADSTEAD_DOWNLOAD_RESERVE=0")
	st := &stage{b: b, s: s, srv: b.plan(s, listen, settings)}
	if err := st.srv.start(ctx); err != nil {
		return st, err
	}
	st.world, err = st.srv.furnish(ctx, b, s)
	return st, err
}

func (st *stage) stop() {
	if st != nil {
		st.srv.stop()
	}
}

func (st *stage) report(m measure) {
	m.name = st.s.name + "." + m.name
	st.b.report(m)
}

// common is the scenario's own file.
func (st *stage) common() stored {
	return stored{st.world.file, st.world.digest, st.s.size}
}

// turn is how long the link takes for a file of the mean size on every seat.
func (st *stage) turn() time.Duration { return st.s.turn(float64(st.s.rate)) }

// strategy changes who starts next, as an operator does (D-9).
func (st *stage) strategy(ctx context.Context, name string) error {
	now, err := st.world.operator.DownloadSettings(ctx)
	if err != nil {
		return err
	}
	next := api.DownloadSettingsChange{ExpectedRevision: now.Revision, Settings: api.DownloadSettings{Strategy: &name}}
	now, err = st.world.operator.ChangeDownloadSettings(ctx, next)
	if err == nil && (now.Effective.Strategy == nil || *now.Effective.Strategy != name) {
		err = fmt.Errorf("the strategy %s was stored but does not run: %s", name, now.Problem)
	}
	return err
}

// fetch is one download of a variant by our own client: who gets which file, and what became of it.
type fetch struct {
	outcome
	key   string
	file  stored
	http  *http.Client  // nil: an ordinary one
	whole bool          // asks for the file at once, not by ranges
	ended *atomic.Int64 // counts it when it is over; nil: nobody asks
}

// party is fetches that run together.
type party struct {
	stage    *stage
	fetches  []*fetch
	started  atomic.Int64 // that had their first byte
	finished atomic.Int64 // that are over, with an error or not
	running  sync.WaitGroup
}

// begin starts every fetch, each a while after the one before it so that they arrive in this order, and returns when
// the last has begun.
func (st *stage) begin(ctx context.Context, apart time.Duration, fetches []*fetch) (*party, error) {
	p := &party{stage: st, fetches: fetches}
	dir, err := os.MkdirTemp(st.b.fast, st.s.name)
	if err != nil {
		return nil, err
	}
	for i, f := range fetches {
		name := filepath.Join(dir, fmt.Sprint(i))
		p.running.Go(func() { p.run(ctx, f, name) })
		time.Sleep(apart)
	}
	return p, nil
}

func (p *party) run(ctx context.Context, f *fetch, name string) {
	defer func() {
		p.finished.Add(1)
		if f.ended != nil {
			f.ended.Add(1)
		}
	}()
	defer os.Remove(name)
	own := f.http
	if own == nil {
		own = newHTTP()
	}
	c, err := sdk.New(sdk.Config{URL: p.stage.srv.url, Key: f.key, HTTP: own})
	if err != nil {
		f.err = err
		return
	}
	defer c.Close()
	part := max(f.file.size/5, 1<<20)
	if f.whole {
		part = f.file.size
	}
	got, err := c.Download(ctx, sdk.Download{
		URL: f.file.url, File: name, RangeBytes: part,
		Events: func(e sdk.Event) {
			waited := f.first.IsZero()
			if f.note(e); waited && !f.first.IsZero() {
				p.started.Add(1)
			}
		},
	})
	f.done, f.err = time.Now(), err
	if err == nil && got.Digest != f.file.digest {
		f.err = fmt.Errorf("received %s instead of %s", got.Digest, f.file.digest)
	}
}

// wait returns when all fetches are over. Only then may their outcomes be looked at.
func (p *party) wait() []outcome {
	p.running.Wait()
	all := make([]outcome, len(p.fetches))
	for i, f := range p.fetches {
		all[i] = f.outcome
	}
	return all
}

// until returns when so many have reached a count, or the context ends.
func until(ctx context.Context, count *atomic.Int64, n int) error {
	for count.Load() < int64(n) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// warmUp is how long the seats are taken while a party gathers: newcomers ask again after two seconds (D-6.2), and all
// must have.
const warmUp = 5 * time.Second

// gathered begins the fetches while other downloads have all the seats, so that everybody waits before the first seat
// comes free and the order decides alone.
func (st *stage) gathered(ctx context.Context, warm stored, key string, apart time.Duration, fetches []*fetch) (*party, error) {
	early := make([]*fetch, st.s.seats)
	for i := range early {
		early[i] = &fetch{key: key, file: warm}
	}
	before, err := st.begin(ctx, 0, early)
	if err != nil {
		return nil, err
	}
	if err := until(ctx, &before.started, len(early)); err != nil {
		return nil, err
	}
	p, err := st.begin(ctx, apart, fetches)
	for _, o := range before.wait() {
		if o.err != nil && err == nil {
			err = fmt.Errorf("a download that was to hold a seat failed: %w", o.err)
		}
	}
	return p, err
}

// warm stores the file that takes the seats for the time of warmUp, and makes who gets it.
func (st *stage) warm(ctx context.Context) (file stored, key string, err error) {
	size := int64(warmUp.Seconds() * float64(st.s.rate) / float64(st.s.seats))
	if file, err = st.srv.put(ctx, st.b, st.world.operator, "warm.bin", size); err != nil {
		return file, "", err
	}
	key, err = owner(ctx, st.world.operator, "warm", st.s.class(0))
	return file, key, err
}

// failures counts the downloads that failed, and the faults of all but busy answers; it says the first few.
func (st *stage) failures(all []outcome) (failed, faults int) {
	for _, o := range all {
		faults += o.faults
		if o.err != nil && !errors.Is(o.err, context.Canceled) {
			if failed++; failed <= 5 {
				st.b.say("%s: a client failed: %v", st.s.name, o.err)
			}
		}
	}
	return failed, faults
}

// flawless reports that everything was finished and nothing went wrong on the way.
func (st *stage) flawless(all []outcome) {
	failed, faults := st.failures(all)
	st.report(atLeast("finished", float64(len(all)-failed), float64(len(all))))
	st.report(atMost("errors", float64(failed+faults), 0))
}

// opening is when the first of them started.
func opening(all []outcome) (t time.Time) {
	for _, o := range all {
		if !o.first.IsZero() && (t.IsZero() || o.first.Before(t)) {
			t = o.first
		}
	}
	return t
}
