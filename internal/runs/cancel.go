package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/identity"
)

// Cancel ends a queued Run at once and asks for the end of an active one; asking again changes nothing.
func (s *Service) Cancel(ctx context.Context, p identity.Principal, id string) (api.Run, error) {
	r, err := s.visible(ctx, p, id)
	if err != nil {
		return api.Run{}, err
	}
	c := Cancellation{Run: id, Reason: lifecycle.CancelRequested, Detail: "by " + p.Name, At: s.now()}
	ended, err := s.ports.Records.CancelRun(ctx, c, s.entry(p, r.Tenant, "run.cancelled", id, ""))
	if err != nil {
		return api.Run{}, err
	}
	touched := append(append([]string{id}, ended.Freed...), ended.Dropped...)
	s.ports.Places.Wake("", touched...)
	s.Changed(touched...)
	return s.Get(ctx, p, id)
}

// CancelAll cancels every Run that a query finds and that has not ended, page by page, and says how many.
func (s *Service) CancelAll(ctx context.Context, p identity.Principal, q Query) (int, error) {
	q.Limit, q.After = 1000, ""
	f, err := s.filter(ctx, p, q)
	if err != nil {
		return 0, err
	}
	if len(f.States) == 0 {
		f.States = []lifecycle.Run{lifecycle.Queued, lifecycle.Active}
	}
	if f.States = slices.DeleteFunc(f.States, lifecycle.Run.Ended); len(f.States) == 0 {
		return 0, nil // what ended stays ended
	}
	count := 0
	for {
		page, err := s.ports.Records.ListRuns(ctx, f)
		if err != nil {
			return count, err
		}
		for _, r := range page {
			if r.Cancel {
				continue
			}
			if _, err := s.Cancel(ctx, p, r.ID); err != nil {
				return count, fmt.Errorf("cancelling %s: %w", r.ID, err)
			}
			count++
		}
		if len(page) < f.Limit {
			return count, nil
		}
		last := page[len(page)-1]
		f.After, f.AfterAt = last.ID, last.CreatedAt
	}
}

// Rerun submits what a Run was asked to be once more, by the same door as any submit (R20). What it waited for and
// its array are left out: it runs by itself.
func (s *Service) Rerun(ctx context.Context, p identity.Principal, r Request, id string) (api.Submitted, error) {
	if _, err := s.visible(ctx, p, id); err != nil {
		return api.Submitted{}, err
	}
	spec, err := s.ports.Records.RunSpec(ctx, id)
	if err != nil {
		return api.Submitted{}, err
	}
	again := spec.Request
	again.After, again.Array, again.NotBefore, again.DryRun = nil, nil, nil, false
	r.Body = append([]byte("again "+id+" "), r.Body...)
	return s.submit(ctx, p, r, []api.BatchRun{{Run: again}})
}

// ParseReport reads a stored report; ok is false when there is none.
func ParseReport(text string) (report api.JobReport, ok bool) {
	if text == "" {
		return report, false
	}
	return report, json.Unmarshal([]byte(text), &report) == nil
}
