package attempts

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/runs"
)

// Report takes how the payload ended. The first valid report counts; the same again gets the same answer, another one
// is a conflict. Success is not believed but verified.
func (s *Service) Report(ctx context.Context, c Caller, attempt string, in api.JobReport) (api.JobReported, error) {
	if len(in.Manifest) == 0 {
		in.Manifest = nil
	}
	text, err := json.Marshal(in)
	if err != nil {
		return api.JobReported{}, fmt.Errorf("writing a report: %w", err)
	}
	a, repeated, err := s.ports.Records.ReportAttempt(ctx, Holder{c.Runner, attempt, in.Fence}, string(text), s.now())
	if err != nil || repeated && a.State.Ended() {
		return api.JobReported{State: string(a.State), Reason: string(a.Reason)}, err
	}
	_, spec, err := s.ports.Records.LiveAttempt(ctx, Holder{c.Runner, attempt, in.Fence})
	if err != nil {
		return api.JobReported{}, err
	}
	state, reason, err := s.finish(ctx, a, spec)
	if err != nil {
		// It is kept; the scan goes on with it.
		s.cfg.Log.Warn("an Attempt's end waits", "attempt", attempt, "error", err)
		return api.JobReported{State: string(lifecycle.Finalizing)}, nil
	}
	return api.JobReported{State: string(state), Reason: string(reason)}, nil
}

// finish decides a reported Attempt. An error that is no refusal leaves it to the next scan.
func (s *Service) finish(ctx context.Context, a runs.Attempt, spec runs.Spec) (lifecycle.Attempt, lifecycle.Reason, error) {
	report, ok := runs.ParseReport(a.Report)
	if !ok {
		return "", "", fmt.Errorf("attempt %s: its report can't be read", a.ID)
	}
	e := runs.Ending{
		Attempt: a.ID, Fence: a.Fence, From: []lifecycle.Attempt{lifecycle.Finalizing}, At: s.now(), Detail: report.Detail, CostMicro: cost(a, spec, a.EndedAt),
	}
	if report.Outcome == "exited" && report.ExitCode == 0 {
		results, err := s.verify(ctx, a, spec, report)
		switch {
		case err == nil:
			e.State, e.Reason, e.Results, e.Detail = lifecycle.AttemptSucceeded, lifecycle.Done, results, ""
		case isRefusal(err) || fault.Is(err, fault.IntegrityMismatch):
			e.State, e.Reason, e.Detail = lifecycle.AttemptFailed, lifecycle.ResultsUnverified, fault.From(err).Message
		case s.tooLong(a):
			e.State, e.Reason, e.Detail = lifecycle.AttemptFailed, lifecycle.ResultsUnverified, "the results could not be verified in time"
		default:
			return "", "", err
		}
	} else {
		e.State, e.Reason = terminal(report)
		if e.Reason == lifecycle.ExitCode {
			e.Detail = fmt.Sprintf("exit code %d", report.ExitCode)
		}
	}
	ended, err := s.ports.Records.EndAttempt(ctx, e)
	if err != nil {
		return "", "", err
	}
	s.mu.Lock()
	delete(s.failing, a.ID)
	s.mu.Unlock()
	s.meters.ends.Count(e, ended)
	s.changed(a, &ended)
	return e.State, e.Reason, nil
}

// tooLong reports whether results could not be verified for the whole limit: as this process has tried, or since the
// report, if this process has tried for a good part of it. A jump of the clock on the wall alone ends nothing (R26).
func (s *Service) tooLong(a runs.Attempt) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	since, known := s.failing[a.ID]
	if !known {
		s.failing[a.ID] = now
		return false
	}
	tried := now.Sub(since)
	return tried > s.cfg.VerifyLimit || tried > s.cfg.VerifyLimit/10 && s.now().Sub(a.EndedAt) > s.cfg.VerifyLimit
}

// verify checks the manifest: every required output is there, and each was uploaded whole under a grant of this very
// Attempt. Anything else reads as absent.
func (s *Service) verify(ctx context.Context, a runs.Attempt, spec runs.Spec, report api.JobReport) ([]api.Result, error) {
	grants, err := s.ports.Records.AttemptGrants(ctx, a.ID)
	if err != nil {
		return nil, err
	}
	uploaded := map[string]Grant{}
	for _, g := range grants {
		if g.Kind == "result" {
			uploaded[g.Name+" "+g.Digest] = g
		}
	}
	named := map[string]api.JobResult{}
	for _, m := range report.Manifest {
		if _, twice := named[m.Name]; twice {
			return nil, fault.New(fault.Conflict, "result %q is in the manifest twice", m.Name)
		}
		named[m.Name] = m
	}
	var results []api.Result
	for _, out := range spec.Outputs {
		m, given := named[out.Name]
		delete(named, out.Name)
		if !given {
			if out.Optional {
				continue
			}
			return nil, fault.Missing(fmt.Sprintf("result %q", out.Name))
		}
		g, known := uploaded[m.Name+" "+m.Digest]
		if !known || g.Size != m.Size {
			return nil, fault.Missing(fmt.Sprintf("result %q with digest %s", m.Name, m.Digest))
		}
		there, err := s.ports.Objects.Has(ctx, g.Digest, g.Size)
		if err != nil {
			return nil, err
		}
		if !there {
			return nil, fault.Missing(fmt.Sprintf("the object of result %q", m.Name))
		}
		results = append(results, api.Result{Name: out.Name, Digest: g.Digest, Size: g.Size, MediaType: out.MediaType})
	}
	for name := range named {
		return nil, fault.New(fault.Conflict, "result %q is none of the Run's outputs", name)
	}
	return results, nil
}

// scan finishes what was reported and not decided, a page at a time.
func (s *Service) scan(ctx context.Context) {
	after := ""
	for {
		limited, cancel := context.WithTimeout(ctx, 30*time.Second)
		page, err := s.ports.Records.Unfinished(limited, after, 100)
		for _, u := range page {
			after = u.Attempt.ID
			if age := s.now().Sub(u.Attempt.EndedAt); age >= 0 && age < time.Second {
				continue // the call that reported it is at it
			}
			if _, _, err := s.finish(limited, u.Attempt, u.Spec); err != nil && ctx.Err() == nil {
				s.cfg.Log.Warn("an Attempt's end waits", "attempt", u.Attempt.ID, "error", err)
			}
		}
		cancel()
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("unfinished Attempts could not be read", "error", err)
		}
		if err != nil || len(page) < 100 {
			return
		}
	}
}
