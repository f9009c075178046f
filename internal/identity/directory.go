package identity

import (
	"context"
	"sync"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
)

// Config is what a Directory needs to know.
type Config struct {
	NewID      func() string // makes unique ids
	FlushEvery time.Duration // how often the last use of keys is written; default one minute
}

// Directory answers who a caller is and what it may do.
type Directory struct {
	newID func() string
	flush time.Duration
	store Store
	clock clock.Clock

	mu   sync.Mutex
	used map[string]time.Time // last use of keys since the last flush, by key id
}

// New makes the directory over its store.
func New(cfg Config, store Store, clk clock.Clock) (*Directory, error) {
	if cfg.NewID == nil {
		return nil, fault.Invalid("NewID", "must be set")
	}
	if cfg.FlushEvery == 0 {
		cfg.FlushEvery = time.Minute
	}
	if cfg.FlushEvery < 0 {
		return nil, fault.Invalid("FlushEvery", "must be positive")
	}
	return &Directory{newID: cfg.NewID, flush: cfg.FlushEvery, store: store, clock: clk, used: map[string]time.Time{}}, nil
}

// Run writes the last use of keys now and then, and once more when ctx ends. A failed write is tried again with the
// next; the error of the last one is returned.
func (d *Directory) Run(ctx context.Context) error {
	tick := time.NewTicker(d.flush)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			return d.flushUse(last)
		case <-tick.C:
			// Last use is for people; losing a minute of it is not worth an alarm, and the next tick repeats it.
			_ = d.flushUse(ctx)
		}
	}
}

func (d *Directory) flushUse(ctx context.Context) error {
	d.mu.Lock()
	used := d.used
	d.used = map[string]time.Time{}
	d.mu.Unlock()
	if len(used) == 0 {
		return nil
	}
	err := d.store.TouchKeys(ctx, used)
	if err != nil {
		d.mu.Lock()
		for id, at := range used {
			if d.used[id].Before(at) {
				d.used[id] = at
			}
		}
		d.mu.Unlock()
	}
	return err
}

// now is the wall time to store, in the store's resolution.
func (d *Directory) now() time.Time { return d.clock.Wall().UTC().Truncate(time.Millisecond) }

func needOperator(p Principal) error {
	if !p.Operator {
		return fault.New(fault.Forbidden, "only a system operator may do this")
	}
	return nil
}

// The bounds of a page of a listing.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// PageSize is the page size for an asked one: the default for none, at most MaxPage.
func PageSize(asked int) int {
	if asked <= 0 {
		return DefaultPage
	}
	return min(asked, MaxPage)
}
