package main

import (
	"context"
	"strconv"
	"syscall"
	"time"

	"github.com/roadstead/roadstead/api"
)

// restart kills the server, and with it the dispatcher, while Runs wait and run: every one ends as it should, and none
// starts twice.
func restart(ctx context.Context, w *world) error {
	n := sh("sleep 1")
	n.Array = &api.Array{First: 0, Last: 4*slots - 1}
	if _, err := w.submit(ctx, w.victim, "restart", n); err != nil {
		return err
	}
	if err := w.active(ctx, "restart", slots); err != nil {
		return err
	}
	w.server.end(syscall.SIGKILL)
	if err := w.startServer(ctx); err != nil {
		return err
	}
	all, err := w.ended(ctx, w.victim, "restart", time.Minute)
	if err != nil {
		return err
	}
	w.report("restart.succeeded", part(all, succeeded), exactly, 1)
	w.report("restart.tried_once", part(all, triedOnce), exactly, 1)
	return nil
}

// active waits until at least so many of the victim's Runs run.
func (w *world) active(ctx context.Context, label string, n int) error {
	return wait(ctx, "Runs run", 30*time.Second, func() bool {
		running := 0
		for r, err := range w.victim.Runs(ctx, filter(label, "active"), 0) {
			if err == nil && r.StartedAt != nil {
				running++
			}
		}
		return running >= n
	})
}

// loss takes a runner away with all that it runs: its Attempts end as interrupted when lease and grace are over, by policy
// they are tried again on another runner, and a Run that is never to be tried twice is not.
func loss(ctx context.Context, w *world) error {
	again, never := sh("sleep 4"), sh("sleep 4")
	again.Retry = &api.Retry{Losses: 1, BackoffSeconds: 1}
	never.Retry = &api.Retry{}
	for i := range slots {
		n := again
		if i == 0 {
			n = never
		}
		if _, err := w.submit(ctx, w.victim, "loss", n); err != nil {
			return err
		}
	}
	if err := w.active(ctx, "loss", slots); err != nil {
		return err
	}
	died := time.Now()
	w.runners[0].end(syscall.SIGKILL)
	w.endSupervisors()
	if err := w.addRunner(ctx, "default"); err != nil {
		return err
	}
	all, err := w.ended(ctx, w.victim, "loss", 90*time.Second)
	if err != nil {
		return err
	}
	last := time.Duration(0)
	interrupted := part(all, func(r api.Run) bool {
		a := r.Attempts[0]
		if a.EndedAt != nil {
			last = max(last, a.EndedAt.Sub(died))
		}
		return a.State == "interrupted" && a.Reason == "lease_lost"
	})
	w.report("loss.interrupted", interrupted, exactly, 1)
	w.report("loss.noticed_in_leases", last.Seconds()/(lease+grace).Seconds(), atMost, 1.5)
	w.report("loss.tried_again", part(all, func(r api.Run) bool { return succeeded(r) && len(r.Attempts) == 2 }), exactly, float64(slots-1)/slots)
	w.report("loss.never_again", part(all, func(r api.Run) bool { return r.State == "interrupted" && triedOnce(r) }), exactly, 1.0/slots)
	for _, r := range all {
		if succeeded(r) {
			return timeline(ctx, w, r)
		}
	}
	return nil
}

// timeline: a Run's events tell every step of both of its Attempts in order, whose it was, and why there was a second.
func timeline(ctx context.Context, w *world, r api.Run) error {
	told, why := "", ""
	for e, err := range w.victim.RunEvents(ctx, r.ID, 0) {
		if err != nil {
			return err
		}
		told += e.Kind + " "
		for i, a := range r.Attempts {
			if e.Attempt == a.ID {
				told += strconv.Itoa(i+1) + " "
			}
		}
		if e.Kind == "retry" {
			why = e.Reason
		}
	}
	const whole = "submitted assigned 1 starting 1 running 1 retry 1 assigned 2 starting 2 running 2 finalizing 2 succeeded 2 "
	if told != whole {
		w.say("loss: the events tell %q", told)
	}
	w.report("loss.timeline_told", boolean(told == whole && why == "lease_lost"), exactly, 1)
	return nil
}
