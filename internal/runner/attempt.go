package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/executor"
	"github.com/roadstead/roadstead/internal/fault"
)

// attempt follows one Attempt from leave to start to the accepted report. done says that the server needs to hear
// nothing of it any more.
func (r *Runner) attempt(ctx context.Context, h *held) (done bool, err error) {
	id := h.assignment.Attempt
	if h.isLost(r) {
		return true, r.bury(h)
	}
	report, decided, err := r.state.report(id)
	if err != nil {
		return false, err
	}
	if !decided {
		var job api.Job
		job, err = r.startOrFind(ctx, h)
		switch {
		case h.isLost(r) || isLost(err):
			return true, r.bury(h)
		case ctx.Err() != nil, errors.Is(err, errUnclear):
			return false, err
		case errors.Is(err, errCancelled):
			report = api.JobReport{Outcome: "cancelled", Manifest: []api.JobResult{}}
		case err != nil:
			report = cannotStart(err)
		default:
			report, err = r.follow(ctx, h, job)
			if h.isLost(r) || isLost(err) {
				return true, r.bury(h)
			}
			if err != nil {
				return false, err
			}
		}
		report.Fence = h.assignment.Fence
		if err := r.state.saveReport(id, report); err != nil {
			return false, err
		}
	}
	return r.report(ctx, h, report)
}

func (h *held) isLost(r *Runner) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return h.lost
}

// report repeats the report until the server has it, or says that it doesn't count.
func (r *Runner) report(ctx context.Context, h *held, report api.JobReport) (done bool, err error) {
	path := "/api/v1/runner/attempts/" + h.assignment.Attempt + "/report"
	err = patiently(ctx, func() error { return r.client.post(ctx, path, report, nil) })
	switch {
	case err == nil:
		r.cfg.Log.Info("reported", "attempt", h.assignment.Attempt, "outcome", report.Outcome, "reason", report.Reason, "exitCode", report.ExitCode)
		return true, nil
	case isLost(err):
		return true, nil
	case final(err):
		return true, fmt.Errorf("the server refuses the report: %w", err)
	}
	return false, err
}

// bury waits until what is left of a lost Attempt is gone, also when it was just being started.
func (r *Runner) bury(h *held) error {
	a, err := r.exec.Attach(h.assignment.Attempt)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if a.Fence() == 0 {
		return nil // prepared and not started
	}
	if err := a.Renew(time.Now()); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err = a.Wait(limited)
	return err
}

func cannotStart(err error) api.JobReport {
	return api.JobReport{Outcome: "failed", Reason: string(lifecycle.CannotStart), Detail: short(err.Error()), Manifest: []api.JobResult{}}
}

func short(s string) string { return s[:min(len(s), 1000)] }

// startOrFind starts the Attempt, unless an earlier process of this runner did.
func (r *Runner) startOrFind(ctx context.Context, h *held) (job api.Job, err error) {
	id, asked := h.assignment.Attempt, time.Now()
	err = patiently(ctx, func() error {
		return r.client.post(ctx, "/api/v1/runner/attempts/"+id+"/starting", api.Fenced{Fence: h.assignment.Fence}, &job)
	})
	if err == nil && !h.found {
		// The server's count begins when it hears this the first time. When that was, a runner that was restarted can't know.
		r.renewOne(h, asked.Add(worth(seconds(r.state.registration.LeaseSeconds))))
	}
	found, attachErr := r.exec.Attach(id)
	if attachErr == nil && found.Fence() != 0 {
		r.mu.Lock()
		h.attempt = found
		r.mu.Unlock()
		if err != nil && !isLost(err) {
			return job, err
		}
		if isLost(err) {
			// It runs already, so it is no news to start; whether the lease is lost, the next exchange says.
			if err := r.outputsOf(h, &job); err != nil {
				return job, errors.Join(errUnclear, err)
			}
			return job, nil
		}
		return job, r.launched(ctx, h) // this was not said yet
	}
	if err != nil {
		return job, err
	}
	if attachErr == nil { // a folder that was prepared and never started: begin anew
		if err := found.Remove(); err != nil {
			return job, err
		}
	} else if !fault.Is(attachErr, fault.NotFound) {
		return job, errors.Join(errUnclear, attachErr)
	}
	return job, r.start(ctx, h, job)
}

// start prepares the folders, fetches what the job needs and launches it.
func (r *Runner) start(ctx context.Context, h *held, job api.Job) error {
	id := h.assignment.Attempt
	if err := r.state.write(filepath.Join("assignments", id+".job"), job); err != nil {
		return err
	}
	layout, err := r.exec.Prepare(ctx, id)
	if err != nil {
		return err
	}
	spec := executor.Spec{
		AttemptID: id, Fence: h.assignment.Fence, Argv: job.Command, Env: environment(job), Network: job.Network,
		Grace: seconds(job.Grace), Limits: executor.Limits{
			Timeout: seconds(job.Timeout), Memory: job.Resources.MemoryBytes, CPUMilli: job.Resources.MilliCPU, Pids: job.Pids,
			Disk: job.Resources.DiskBytes, Log: job.LogBytes,
		},
	}
	if spec.Package, err = r.cache.folder(ctx, r, h, job.Package, false); err != nil {
		return err
	}
	if spec.Image, err = r.cache.folder(ctx, r, h, job.Image, true); err != nil {
		return err
	}
	if err := r.fetchInputs(ctx, h, job, layout); err != nil {
		return err
	}
	if len(job.Secrets) > 0 {
		var given api.JobSecrets
		err := patiently(ctx, func() error {
			return r.client.post(ctx, "/api/v1/runner/attempts/"+id+"/secrets", api.Fenced{Fence: h.assignment.Fence}, &given)
		})
		if err != nil {
			return err
		}
		spec.Secrets = given.Secrets
	}
	return r.launch(ctx, h, spec)
}

// launch starts the payload with what is left of the lease, and tells the server. What was ordered meanwhile comes first.
func (r *Runner) launch(ctx context.Context, h *held, spec executor.Spec) (err error) {
	if spec.Lease, err = r.leased(ctx, h); err != nil {
		return err
	}
	a, err := r.exec.Start(ctx, spec)
	if err != nil {
		found, attachErr := r.exec.Attach(spec.AttemptID)
		if attachErr != nil || found.Fence() == 0 {
			return err
		}
		a = found // it was ordered: its folder says what became of it
	}
	r.mu.Lock()
	h.attempt = a
	if h.cancelled {
		r.endLocked(h, lifecycle.CancelRequested)
	}
	if err := a.Renew(h.renewed); err != nil {
		r.cfg.Log.Warn("a lease could not be passed on", "attempt", spec.AttemptID, "error", err)
	}
	r.mu.Unlock()
	return r.launched(ctx, h)
}

// leased waits for a lease that still holds and says how long.
func (r *Runner) leased(ctx context.Context, h *held) (time.Duration, error) {
	for {
		r.mu.Lock()
		left, cancelled := time.Until(h.renewed), h.cancelled
		r.mu.Unlock()
		switch {
		case cancelled:
			return 0, errCancelled
		case left > 0:
			return left, nil
		case ctx.Err() != nil:
			return 0, ctx.Err()
		}
		pause(ctx, 100*time.Millisecond)
	}
}

// launched tells the server that the payload was started, also when it is over by now: its cost counts from there. A server that is away does not make that untrue: it is told when it
// is back, and what it refuses to hear is no reason to say that nothing ran.
func (r *Runner) launched(ctx context.Context, h *held) error {
	r.mu.Lock()
	a := h.attempt
	r.mu.Unlock()
	if record, over, err := a.Record(); err == nil && over && record.StartedAt.IsZero() {
		return nil // it could not start
	}
	path := "/api/v1/runner/attempts/" + h.assignment.Attempt + "/running"
	err := patiently(ctx, func() error { return r.client.post(ctx, path, api.Fenced{Fence: h.assignment.Fence}, nil) })
	if final(err) && !isLost(err) {
		r.cfg.Log.Warn("the server does not hear of a start", "attempt", h.assignment.Attempt, "error", err)
		return nil
	}
	return err
}

var (
	errCancelled = errors.New("cancelled before it was started")
	// errUnclear: this machine can't say now whether the payload was started, so nothing is reported and it looks again.
	errUnclear = errors.New("what became of the Attempt can't be read")
)

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// environment is what the contract promises beside the folders.
func environment(job api.Job) map[string]string {
	env := map[string]string{}
	for name, value := range job.Env {
		env[name] = value
	}
	env["ROADSTEAD_RUN_ID"], env["ROADSTEAD_ATTEMPT"], env["ROADSTEAD_TENANT"] = job.Run, fmt.Sprint(job.Number), job.Tenant
	if job.Traceparent != "" {
		env["TRACEPARENT"] = job.Traceparent
	}
	return env
}

// fetchInputs puts the inputs and the last checkpoint where the job finds them.
func (r *Runner) fetchInputs(ctx context.Context, h *held, job api.Job, layout executor.Layout) error {
	for _, in := range job.Inputs {
		if err := r.putInput(ctx, h, filepath.Join(layout.Inputs, filepath.FromSlash(in.Path)), in.Value, in.Object); err != nil {
			return fmt.Errorf("input %s: %w", in.Path, err)
		}
	}
	if job.Checkpoint == nil {
		return nil
	}
	if err := r.putInput(ctx, h, filepath.Join(layout.CheckpointIn, job.CheckpointName), "", job.Checkpoint); err != nil {
		return fmt.Errorf("checkpoint %s: %w", job.CheckpointName, err)
	}
	return nil
}

func (r *Runner) putInput(ctx context.Context, h *held, path, value string, o *api.JobObject) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	if o == nil {
		_, err = f.WriteString(value)
	} else if err = r.client.fetch(ctx, h, *o, f); err == nil {
		err = checkDigest(f, *o)
	}
	return errors.Join(err, f.Close())
}
