package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roadstead/roadstead/api"
)

// caller is one download driven by hand: when it asks is the gate's to say.
type caller struct {
	world  *world
	http   *http.Client
	id     string
	key    string
	ticket string // the latest
	hash   hash.Hash
	offset int64
	start  time.Time // first byte of all
	done   bool
}

// ask makes one request. While the download waits it tells when to ask again.
func (c *caller) ask(ctx context.Context, started func()) (again time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.world.file, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set(api.HeaderDownloadID, c.id)
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-", c.offset))
	if c.ticket != "" {
		req.Header.Set(api.HeaderQueueTicket, c.ticket)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if t := resp.Header.Get(api.HeaderQueueTicket); t != "" {
		c.ticket = t
	}
	switch resp.StatusCode {
	case http.StatusPartialContent:
		return 0, c.read(resp.Body, started)
	case http.StatusServiceUnavailable:
		var p api.Problem
		if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(&p); err != nil {
			return 0, err
		}
		if p.Queue == nil {
			return 0, fmt.Errorf("busy without a place: %s", p.Message)
		}
		return time.Duration(p.Queue.CheckInMillis) * time.Millisecond, nil
	}
	return 0, fmt.Errorf("the server answered %s", resp.Status)
}

func (c *caller) read(body io.Reader, started func()) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if c.start.IsZero() {
				c.start = time.Now()
			}
			started()
			_, _ = c.hash.Write(buf[:n]) // never fails
			c.offset += int64(n)
		}
		if errors.Is(err, io.EOF) {
			c.done = true
			if got := "sha256:" + hex.EncodeToString(c.hash.Sum(nil)); got != c.world.digest {
				return fmt.Errorf("received %s instead of %s", got, c.world.digest)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// follow asks as the server says until the download is done.
func (c *caller) follow(ctx context.Context, again time.Duration, started func()) error {
	for !c.done {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(again):
		}
		var err error
		if again, err = c.ask(ctx, started); err != nil {
			return err
		}
	}
	return nil
}

// playRestart kills the server while downloads of one principal each wait and lets them come back in the reverse
// order of their arrival: they must start in the order they had (D-2.12, D-3.1, D-8.1).
func playRestart(ctx context.Context, b *bench, s scenario) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	listen, err := freePort()
	if err != nil {
		return err
	}
	srv := b.plan(s, listen, []string{fmt.Sprintf("ROADSTEAD_BANDWIDTH=%d", s.rate)})
	defer srv.stop()
	if err := srv.start(ctx); err != nil {
		return err
	}
	waiters := s.clients
	s.clients += 2 * s.seats // those that finish before the kill, and those that are in the middle of it
	s.owners = s.clients
	world, err := srv.furnish(ctx, b, s)
	if err != nil {
		return err
	}
	all := make([]*caller, s.clients)
	for i := range all {
		all[i] = &caller{world: world, http: newHTTP(), id: fmt.Sprintf("restart-%d", i), key: world.keys[i], hash: sha256.New()}
		defer all[i].http.CloseIdleConnections()
	}
	if err := untilKilled(ctx, srv, s, all); err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(all), func(c *caller) bool { return c.done })
	b.say("%s: killed; %d of %d are done, %d come back", s.name, len(all)-len(left), len(all), len(left))
	if err := srv.start(ctx); err != nil {
		return err
	}
	failed, reached, err := comeBack(ctx, b, left)
	if err != nil {
		return err
	}
	b.say("%s: came n-th, in the order of their starts: %v", s.name, order(left))
	report := func(m measure) {
		m.name = s.name + "." + m.name
		b.report(m)
	}
	report(atLeast("waiting", float64(len(left)-s.seats), float64(waiters)))
	report(atLeast("finished", float64(len(all)-failed), float64(len(all))))
	report(atMost("errors", float64(failed), 0))
	report(atMost("seconds_to_come_back", reached.Seconds(), 2))
	report(atMost("inversions", float64(inversions(left)), float64(s.seats-1)))
	return nil
}

// arrivalsApart keeps arrivals apart: tickets tell them by the millisecond.
const arrivalsApart = 10 * time.Millisecond

// untilKilled lets the callers arrive one after the other and kills the server when as many are done as there are
// seats, and the next ones are under way.
func untilKilled(ctx context.Context, srv *server, s scenario, all []*caller) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var begun, finished atomic.Int64
	walkedIn, kill := make(chan struct{}, len(all)), make(chan struct{}, 1)
	var callers sync.WaitGroup
	launch := func(c *caller, again time.Duration) {
		callers.Go(func() {
			first := true
			err := c.follow(ctx, again, func() {
				if first {
					first = false
					begun.Add(1)
					walkedIn <- struct{}{}
				} else if begun.Load() >= int64(2*s.seats) && finished.Load() >= int64(s.seats) {
					select {
					case kill <- struct{}{}:
					default:
					}
				}
			})
			if err == nil {
				finished.Add(1)
			}
		})
	}
	for i, c := range all {
		if i < s.seats { // these walk in; the others are answered with a place, one after the other
			launch(c, 0)
			select {
			case <-walkedIn:
			case <-ctx.Done():
			}
			continue
		}
		time.Sleep(arrivalsApart)
		again, err := c.ask(ctx, func() {})
		if err != nil {
			return err
		}
		launch(c, again)
	}
	select {
	case <-kill:
	case <-ctx.Done():
	}
	srv.kill()
	cancel()
	callers.Wait()
	return nil
}

// comeBack lets the callers return, the last to arrive first, and follows each to its end. It counts those that
// failed and tells how long the return took.
func comeBack(ctx context.Context, b *bench, left []*caller) (failed int, reached time.Duration, err error) {
	began := time.Now()
	var callers sync.WaitGroup
	errs := make([]error, len(left))
	for i, c := range slices.Backward(left) {
		c.start = time.Time{}
		again, err := c.ask(ctx, func() {})
		if err != nil {
			return 0, 0, fmt.Errorf("come back as number %d: %w", i, err)
		}
		callers.Go(func() { errs[i] = c.follow(ctx, again, func() {}) })
	}
	reached = time.Since(began)
	callers.Wait()
	for i, err := range errs {
		if err != nil {
			failed++
			b.say("number %d failed: %v", i, err)
		}
	}
	return failed, reached, nil
}

// inversions counts the pairs that started in the other order than they had arrived in.
func inversions(arrived []*caller) (n int) {
	for i, a := range arrived {
		for _, later := range arrived[i+1:] {
			if later.start.Before(a.start) {
				n++
			}
		}
	}
	return n
}

// order lists the numbers of arrival in the order of the starts.
func order(arrived []*caller) []int {
	n := make([]int, len(arrived))
	for i := range n {
		n[i] = i
	}
	slices.SortStableFunc(n, func(a, b int) int { return arrived[a].start.Compare(arrived[b].start) })
	return n
}
