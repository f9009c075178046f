package attempts

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/runs"
)

// Start gives the runner leave to start the payload and says what it is. What may not be used any more ends the
// Attempt, and so does a result that isn't there.
func (s *Service) Start(ctx context.Context, c Caller, attempt string, fence int64) (api.Job, error) {
	a, r, spec, err := s.ports.Records.StartAttempt(ctx, Holder{c.Runner, attempt, fence}, s.now())
	if err != nil {
		return api.Job{}, err
	}
	if err := s.ports.Usable.Check(ctx, a.Tenant, spec); err != nil {
		if isRefusal(err) {
			return api.Job{}, s.giveUp(ctx, a, lifecycle.PackageUnavailable, fault.From(err).Message)
		}
		return api.Job{}, err
	}
	job, err := s.job(ctx, a, r, spec)
	if fault.Is(err, fault.NotFound) {
		return api.Job{}, s.giveUp(ctx, a, lifecycle.CannotStart, fault.From(err).Message)
	}
	s.changed(a, nil)
	return job, err
}

// isRefusal tells a decision from a failure that may pass.
func isRefusal(err error) bool {
	return fault.Is(err, fault.NotFound) || fault.Is(err, fault.Forbidden) || fault.Is(err, fault.Conflict) || fault.Is(err, fault.InvalidInput)
}

// giveUp ends an Attempt that can't be started (R10): it holds nothing from here on.
func (s *Service) giveUp(ctx context.Context, a runs.Attempt, reason lifecycle.Reason, detail string) error {
	e := runs.Ending{
		Attempt: a.ID, Fence: a.Fence, From: []lifecycle.Attempt{lifecycle.Starting}, State: lifecycle.AttemptFailed, Reason: reason, Detail: detail, At: s.now(),
	}
	ended, err := s.ports.Records.EndAttempt(ctx, e)
	if err != nil {
		return err
	}
	s.meters.ends.Count(e, ended)
	s.changed(a, &ended)
	return Lost(a.ID)
}

func (s *Service) job(ctx context.Context, a runs.Attempt, r runs.Run, spec runs.Spec) (api.Job, error) {
	job := api.Job{
		Attempt: a.ID, Run: a.Run, Tenant: a.Tenant, Number: a.Number, Command: spec.Command, Env: maps.Clone(spec.Env), Outputs: spec.Outputs,
		Secrets: spec.Secrets, Resources: spec.Resources, Timeout: spec.Timeout, Grace: spec.Grace, LogBytes: spec.LogBytes, Pids: spec.Pids,
		Network: spec.Network, Traceparent: spec.Traceparent, Package: object(spec.Package), Image: object(spec.Image),
	}
	if job.Env == nil {
		job.Env = map[string]string{}
	}
	if r.Array != "" {
		job.Env["ROADSTEAD_ARRAY_ID"], job.Env["ROADSTEAD_ARRAY_INDEX"] = r.Array, strconv.Itoa(r.Index)
	}
	if job.Outputs == nil {
		job.Outputs = []api.Output{}
	}
	if job.Secrets == nil {
		job.Secrets = []string{}
	}
	var err error
	if job.Inputs, err = s.inputs(ctx, spec); err != nil {
		return job, err
	}
	last, found, err := s.ports.Records.LastCheckpoint(ctx, a.Run, a.Number)
	if found {
		job.Checkpoint, job.CheckpointName = &api.JobObject{Digest: last.Digest, Size: last.Size}, last.Name
	}
	return job, err
}

func object(o *runs.Object) *api.JobObject {
	if o == nil {
		return nil
	}
	return &api.JobObject{Digest: o.Digest, Size: o.Size}
}

// inputs turns what the submit fixed into files.
func (s *Service) inputs(ctx context.Context, spec runs.Spec) ([]api.JobInput, error) {
	files := []api.JobInput{}
	for _, name := range slices.Sorted(maps.Keys(spec.Inputs)) {
		in := spec.Inputs[name]
		switch {
		case in.Result != nil:
			found, err := s.results(ctx, name, *in.Result)
			if err != nil {
				return nil, err
			}
			files = append(files, found...)
		case in.Object != nil:
			files = append(files, api.JobInput{Path: name, Object: object(in.Object)})
		default:
			files = append(files, api.JobInput{Path: name, Value: in.Value})
		}
	}
	return files, nil
}

// results finds the output of a Run, or of every element of an array: as NAME/INDEX.
func (s *Service) results(ctx context.Context, name string, of api.ResultOf) (files []api.JobInput, err error) {
	all, err := s.ports.Records.Results(ctx, of.Run)
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		if one.Result.Name != of.Output {
			continue
		}
		file := api.JobInput{Path: name, Object: &api.JobObject{Digest: one.Result.Digest, Size: one.Result.Size}}
		if one.Index >= 0 {
			file.Path = path.Join(name, strconv.Itoa(one.Index))
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil, fault.Missing(fmt.Sprintf("input %s: result %q of %s", name, of.Output, of.Run))
	}
	return files, nil
}

// Launched notes that the payload was started.
func (s *Service) Launched(ctx context.Context, c Caller, attempt string, fence int64) error {
	a, err := s.ports.Records.LaunchAttempt(ctx, Holder{c.Runner, attempt, fence}, s.now())
	if err == nil {
		s.changed(a, nil)
	}
	return err
}

// Secrets gives the values of the Attempt's secrets.
func (s *Service) Secrets(ctx context.Context, c Caller, attempt string, fence int64) (api.JobSecrets, error) {
	a, spec, err := s.ports.Records.LiveAttempt(ctx, Holder{c.Runner, attempt, fence})
	if err != nil {
		return api.JobSecrets{}, err
	}
	values, err := s.ports.Secrets.Give(ctx, a, spec)
	if values == nil {
		values = map[string][]byte{}
	}
	return api.JobSecrets{Secrets: values}, err
}

// MayRead reports whether the Attempt may read the object: nothing but what its job names.
func (s *Service) MayRead(ctx context.Context, c Caller, attempt string, fence int64, digest string) (size int64, err error) {
	a, spec, err := s.ports.Records.LiveAttempt(ctx, Holder{c.Runner, attempt, fence})
	if err != nil {
		return 0, err
	}
	job, err := s.job(ctx, a, runs.Run{}, spec)
	if err != nil {
		return 0, err
	}
	for _, o := range []*api.JobObject{job.Package, job.Image, job.Checkpoint} {
		if o != nil && o.Digest == digest {
			return o.Size, nil
		}
	}
	for _, in := range job.Inputs {
		if in.Object != nil && in.Object.Digest == digest {
			return in.Object.Size, nil
		}
	}
	return 0, fault.Missing("object " + digest)
}

const maxLine = 16 << 10

// Logs stores lines of the payload's output, with the secrets in them hidden, and its progress.
func (s *Service) Logs(ctx context.Context, c Caller, attempt string, in api.JobLogs) error {
	h := Holder{c.Runner, attempt, in.Fence}
	a, spec, err := s.ports.Records.LiveAttempt(ctx, h)
	if err != nil {
		return err
	}
	if err := s.ports.Secrets.Mask(ctx, a, spec, in.Lines); err != nil { // before a cut could leave half of one
		return err
	}
	now := s.now()
	for i := range in.Lines {
		line := &in.Lines[i]
		if len(line.Text) > maxLine {
			line.Text = line.Text[:maxLine]
		}
		if line.At.After(now.Add(time.Minute)) || line.At.IsZero() {
			line.At = now // a runner's clock is its own affair
		}
	}
	if in.Progress != nil {
		in.Progress.At = now
		in.Progress.Fraction = min(max(in.Progress.Fraction, 0), 1)
	}
	if _, err := s.ports.Records.AppendLogs(ctx, h, in.First, in.Lines, in.Progress); err != nil {
		return err
	}
	s.changed(a, nil)
	return nil
}
