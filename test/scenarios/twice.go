package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/roadstead/roadstead/api"
)

// twice is a runner, played by hand, whose terminal report comes many times at once, and then otherwise: the first counts, the
// same again is answered like it, another one is a conflict.
func twice(ctx context.Context, w *world) error {
	if err := w.addPool(ctx, "twice"); err != nil {
		return err
	}
	h := &byHand{w: w}
	if err := h.register(ctx, "twice"); err != nil {
		return err
	}
	n := sh("true")
	n.Pool = "twice"
	id, err := w.submit(ctx, w.victim, "twice", n)
	if err != nil {
		return err
	}
	a, err := h.take(ctx)
	if err != nil {
		return err
	}
	path := "/api/v1/runner/attempts/" + a.Attempt
	for _, step := range []string{"/starting", "/running"} {
		if status, err := w.ask(ctx, http.MethodPost, path+step, h.key, api.Fenced{Fence: a.Fence}, nil); err != nil || status >= 300 {
			return fmt.Errorf("%s: %d %w", step, status, err)
		}
	}
	report := api.JobReport{Fence: a.Fence, Outcome: "exited", Manifest: []api.JobResult{}}
	same := h.repeat(ctx, path+"/report", w.scale.repeats, func(int) api.JobReport { return report })
	other := h.repeat(ctx, path+"/report", w.scale.repeats, func(i int) api.JobReport {
		differs := report
		differs.ExitCode = i + 1
		return differs
	})
	old := h.repeat(ctx, path+"/report", 2, func(int) api.JobReport {
		late := report
		late.Fence--
		return late
	})
	w.report("twice.same_taken", float64(same[200])/float64(w.scale.repeats), exactly, 1)
	w.report("twice.other_refused", float64(other[409])/float64(w.scale.repeats), exactly, 1)
	w.report("twice.old_refused", float64(old[409])/2, exactly, 1)
	all, err := w.ended(ctx, w.victim, "twice", 30*time.Second)
	if err != nil {
		return err
	}
	w.report("twice.succeeded", part(all, func(r api.Run) bool { return r.ID == id && succeeded(r) && triedOnce(r) }), exactly, 1)
	ends := 0
	for e, err := range w.victim.RunEvents(ctx, id, 0) {
		if err != nil {
			return err
		}
		if e.Kind == "succeeded" || e.Kind == "failed" {
			ends++
		}
	}
	w.report("twice.ends", float64(ends), exactly, 1)
	return nil
}

// byHand speaks the runner's protocol and runs nothing.
type byHand struct {
	w   *world
	key string
}

func (h *byHand) register(ctx context.Context, pool string) error {
	var token api.RunnerToken
	if status, err := h.w.ask(ctx, http.MethodPost, "/api/v1/pools/"+pool+"/runner-tokens", h.w.operatorKey(), struct{}{}, &token); err != nil || status >= 300 {
		return fmt.Errorf("a token: %d %w", status, err)
	}
	var made api.RegisteredRunner
	status, err := h.w.ask(ctx, http.MethodPost, "/api/v1/runners/register", "", api.RegisterRunner{
		Token: token.Token, Name: "by-hand", Protocol: api.RunnerProtocol,
		Capacity: api.Resources{Slots: 1, MilliCPU: 1000, MemoryBytes: 1 << 30, DiskBytes: 1 << 30},
	}, &made)
	if err != nil || status >= 300 {
		return fmt.Errorf("register: %d %w", status, err)
	}
	h.key = made.Key
	return nil
}

// take exchanges until there is an assignment.
func (h *byHand) take(ctx context.Context) (api.Assignment, error) {
	for range 60 {
		var out api.Exchanged
		status, err := h.w.ask(ctx, http.MethodPost, "/api/v1/runner/exchange", h.key,
			api.Exchange{Protocol: api.RunnerProtocol, Holds: []api.HeldLease{}, WaitSeconds: 1}, &out)
		if err != nil || status >= 300 {
			return api.Assignment{}, fmt.Errorf("exchange: %d %w", status, err)
		}
		if len(out.Assignments) > 0 {
			return out.Assignments[0], nil
		}
	}
	return api.Assignment{}, fmt.Errorf("no assignment came")
}

// repeat sends reports all at once and counts the statuses of the answers.
func (h *byHand) repeat(ctx context.Context, path string, times int, report func(i int) api.JobReport) map[int]int {
	var mu sync.Mutex
	var all sync.WaitGroup
	statuses := map[int]int{}
	for i := range times {
		all.Go(func() {
			status, err := h.w.ask(ctx, http.MethodPost, path, h.key, report(i), nil)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				status = 0
			}
			statuses[status]++
		})
	}
	all.Wait()
	return statuses
}
