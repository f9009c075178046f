package runs

import (
	"context"
	"strings"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// Get shows one Run whole: its Attempts, its results, what was asked for, and while it is queued its place.
func (s *Service) Get(ctx context.Context, p identity.Principal, id string) (api.Run, error) {
	r, err := s.visible(ctx, p, id)
	if err != nil {
		return api.Run{}, err
	}
	out := s.wire(r)
	spec, err := s.ports.Records.RunSpec(ctx, id)
	if err != nil {
		return api.Run{}, err
	}
	out.Spec = &spec.Request
	attempts, err := s.ports.Records.RunAttempts(ctx, id)
	if err != nil {
		return api.Run{}, err
	}
	for _, a := range attempts {
		out.Attempts = append(out.Attempts, WireAttempt(a))
	}
	details, err := s.ports.Records.RunDetails(ctx, id)
	if err != nil {
		return api.Run{}, err
	}
	out.Results, out.Progress, out.Labels = details.Results, details.Progress, details.Labels
	s.addPlace(&out, r)
	return out, nil
}

// Query is what a listing asks for. An operator may ask for all tenants.
type Query struct {
	All     bool
	States  []string
	Pool    string
	Package string
	Array   string
	Labels  []string // name=value
	After   string   // next of the page before
	Limit   int
}

// List shows the newest Runs first; next is where to go on, empty at the end. Labels, Attempts and the like come with
// the one Run only.
func (s *Service) List(ctx context.Context, p identity.Principal, q Query) (page []api.Run, next string, err error) {
	f, err := s.filter(ctx, p, q)
	if err != nil {
		return nil, "", err
	}
	limit := f.Limit
	f.Limit++
	all, err := s.ports.Records.ListRuns(ctx, f)
	if err != nil {
		return nil, "", err
	}
	if len(all) > limit {
		all = all[:limit]
		next = all[limit-1].ID
	}
	page = make([]api.Run, 0, len(all))
	for _, r := range all {
		one := s.wire(r)
		s.addPlace(&one, r)
		page = append(page, one)
	}
	return page, next, nil
}

func (s *Service) filter(ctx context.Context, p identity.Principal, q Query) (Filter, error) {
	f := Filter{Tenant: p.Tenant, Pool: q.Pool, Package: q.Package, Array: q.Array, After: q.After, Limit: identity.PageSize(q.Limit)}
	switch {
	case p.Kind == identity.Link:
		return f, fault.New(fault.Forbidden, "a link can't see Runs")
	case q.All && !p.Operator:
		return f, fault.New(fault.Forbidden, "only a system operator may list the Runs of all tenants")
	case q.All:
		f.Tenant = ""
	}
	for _, state := range q.States {
		if !isState(state) {
			return f, fault.Invalid("state", "must be one of queued, active, succeeded, failed, interrupted, cancelled, expired; not %q", state)
		}
		f.States = append(f.States, lifecycle.Run(state))
	}
	for _, label := range q.Labels {
		name, value, found := strings.Cut(label, "=")
		if !found {
			return f, fault.Invalid("label", "must be name=value, not %q", label)
		}
		if f.Labels == nil {
			f.Labels = map[string]string{}
		}
		f.Labels[name] = value
	}
	if q.After != "" {
		last, err := s.visible(ctx, p, q.After)
		if err != nil {
			return f, fault.Invalid("after", "must be the next of the page before")
		}
		f.AfterAt = last.CreatedAt
	}
	return f, nil
}

func isState(s string) bool {
	for _, state := range lifecycle.Runs() {
		if string(state) == s {
			return true
		}
	}
	return false
}

// addPlace says where a queued Run stands.
func (s *Service) addPlace(out *api.Run, r Run) {
	if r.State != lifecycle.Queued {
		return
	}
	place := s.ports.Places.Place(r)
	out.Place = &place
	if place.Reason != "" {
		out.Reason = place.Reason
	}
}

// Events lists what happened to a Run after seq; ended says that no more will follow these.
func (s *Service) Events(ctx context.Context, p identity.Principal, id string, seq int64, limit int) (page []api.RunEvent, ended bool, err error) {
	r, err := s.visible(ctx, p, id)
	if err != nil {
		return nil, false, err
	}
	limit = identity.PageSize(limit)
	all, err := s.ports.Records.RunEvents(ctx, id, seq, limit)
	if err != nil {
		return nil, false, err
	}
	page = make([]api.RunEvent, 0, len(all))
	for _, e := range all {
		page = append(page, api.RunEvent{Seq: e.Seq, At: e.At, Kind: e.Kind, Attempt: e.Attempt, Reason: e.Reason, Detail: e.Detail})
	}
	return page, r.State.Ended() && len(all) < limit, nil
}

// Logs lists the lines of a Run past seq; ended says that no more will follow these.
func (s *Service) Logs(ctx context.Context, p identity.Principal, id string, seq int64, limit int) (page []api.LogLine, ended bool, err error) {
	r, err := s.visible(ctx, p, id)
	if err != nil {
		return nil, false, err
	}
	page, err = s.ports.Records.RunLogs(ctx, id, seq, identity.PageSize(limit))
	if page == nil {
		page = []api.LogLine{}
	}
	return page, r.State.Ended() && len(page) == 0, err
}

// Result finds one result of a Run.
func (s *Service) Result(ctx context.Context, p identity.Principal, id, name string) (api.Result, error) {
	if _, err := s.visible(ctx, p, id); err != nil {
		return api.Result{}, err
	}
	details, err := s.ports.Records.RunDetails(ctx, id)
	if err != nil {
		return api.Result{}, err
	}
	for _, r := range details.Results {
		if r.Name == name {
			return r, nil
		}
	}
	return api.Result{}, fault.Missing("result " + name + " of Run " + id)
}

// WireAttempt is an Attempt as clients see it.
func WireAttempt(a Attempt) api.Attempt {
	out := api.Attempt{
		ID: a.ID, Number: a.Number, State: string(a.State), Reason: string(a.Reason), Detail: a.Detail, Runner: a.Runner,
		AssignedAt: a.AssignedAt, StartedAt: optional(a.StartedAt), EndedAt: optional(a.EndedAt), CostMicro: a.CostMicro,
	}
	if report, ok := ParseReport(a.Report); ok {
		usage := report.Usage
		out.Usage = &usage
		if report.Outcome == "exited" {
			code := report.ExitCode
			out.ExitCode = &code
		}
	}
	return out
}
