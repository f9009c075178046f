package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/roadstead/roadstead/api"
)

// plan is what is to happen.
type plan struct {
	seed  uint64
	kills int
	pause time.Duration // between two kills, on average
	limit time.Duration
	keep  bool
}

// order is a Run that was submitted, and what is allowed to it.
type order struct {
	id      string
	never   bool // no Attempt may follow one that was started
	retries api.Retry
}

// crew submits Runs, kills, and waits for the end.
type crew struct {
	w      *world
	rand   *rand.Rand
	orders []order
}

// waiting is how many Runs are kept unfinished while things are killed.
const waiting = 14

// chaos plays the plan and gives what came of it.
func chaos(ctx context.Context, p plan) (v *verdict, err error) {
	say("seed %d, %d kills", p.seed, p.kills)
	w, err := newWorld(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close(p.keep)) }()
	c := &crew{w: w, rand: rand.New(rand.NewPCG(p.seed, 1))}
	k := &killer{w: w, rand: rand.New(rand.NewPCG(p.seed, 2)), did: map[string]int{}}
	began, n := time.Now(), 0
	for n < p.kills {
		if err := c.fill(ctx); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("after %d kills: %w", n, ctx.Err())
		case <-time.After(time.Duration(c.rand.Int64N(int64(2 * p.pause)))):
		}
		if k.kill(ctx, n) {
			n++
		}
	}
	k.back.Wait()
	say("%d kills in %s: %v; %d Runs so far", n, time.Since(began).Round(time.Second), k.did, len(c.orders))
	v = &verdict{kills: n, orders: c.orders}
	if v.settled, err = c.settle(ctx); err != nil {
		say("%v", err)
	}
	return v, v.look(ctx, w)
}

// fill submits until enough Runs wait or run, and now and then cancels one.
func (c *crew) fill(ctx context.Context) error {
	open, err := c.open(ctx)
	if err != nil {
		return err
	}
	for range waiting - open {
		if err := c.submit(ctx); err != nil {
			return err
		}
	}
	if c.rand.IntN(12) == 0 {
		last := c.orders[len(c.orders)-1-c.rand.IntN(min(waiting, len(c.orders)))]
		return c.w.call(ctx, http.MethodPost, "/api/v1/runs/"+last.id+"/cancel", "", struct{}{}, nil)
	}
	return nil
}

// open counts the Runs that have not ended.
func (c *crew) open(ctx context.Context) (int, error) {
	var pool api.Pool
	err := c.w.call(ctx, http.MethodGet, "/api/v1/pools/default", "", nil, &pool)
	return pool.Queued + pool.Active, err
}

// submit asks for a Run of some kind, with a key, so that an answer that is lost with the server makes no second one.
func (c *crew) submit(ctx context.Context) error {
	code, seconds := 0, 0.2+2.5*c.rand.Float64()
	var o order
	run := api.NewRun{Outputs: []api.Output{{Name: "whose"}}, Grace: 1, Timeout: 30, Retry: &api.Retry{BackoffSeconds: 1}}
	switch c.rand.IntN(8) {
	case 0, 1, 2:
		o.never = true
	case 3:
		run.Retry.Losses = 1
	case 4:
		run.Retry.Failures, run.Retry.Losses, code = 1, 2, 7
	case 5:
		run.Retry.Losses, run.Timeout, seconds = 3, 2, 20
	default:
		run.Retry.Failures, run.Retry.Losses = 3, 10
	}
	o.retries = *run.Retry
	run.Command = script(c.w.heard.port(), seconds, code)
	var out api.Submitted
	key := fmt.Sprintf("chaos-%d-%d", len(c.orders), c.rand.Uint64())
	if err := c.w.call(ctx, http.MethodPost, "/api/v1/runs", key, run, &out); err != nil {
		return err
	}
	o.id = out.Runs[0].ID
	c.orders = append(c.orders, o)
	return nil
}

// settleLimit is how long the last Runs may take once nothing is killed any more: their losses are noticed after lease and
// grace, and what may be tried again waits for its turn.
const settleLimit = 2 * time.Minute

func (c *crew) settle(ctx context.Context) (time.Duration, error) {
	from := time.Now()
	err := wait(ctx, "every Run ends", settleLimit, func() bool {
		n, err := c.open(ctx)
		return err == nil && n == 0
	})
	return time.Since(from), err
}
