package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/schedules"
)

// Schedules makes Runs at the times of calendar rules. What is another tenant's is not_found; an empty tenant is the
// caller's own.
type Schedules interface {
	Schedule(ctx context.Context, actor identity.Principal, tenant, name string) (schedules.Schedule, error)
	List(ctx context.Context, actor identity.Principal, tenant, after string, limit int) ([]schedules.Schedule, string, error)
	// Put is refused with revision_mismatch when the schedule is not at the expected revision; 0 makes one.
	Put(ctx context.Context, actor identity.Principal, tenant, name string, plan schedules.Plan, expected int64) (schedules.Schedule, error)
	Delete(ctx context.Context, actor identity.Principal, tenant, name string, expected int64) error
	Pause(ctx context.Context, actor identity.Principal, tenant, name string, paused bool) (schedules.Schedule, error)
	Preview(ctx context.Context, actor identity.Principal, tenant, name string, plan schedules.Plan, week bool) (schedules.Curve, error)
	Fires(ctx context.Context, actor identity.Principal, tenant, name string, before time.Time, limit int) ([]schedules.Fire, time.Time, error)
}

// ScheduleName is how one schedule is asked for. Huma reads embedded structs only when they are exported.
type ScheduleName struct {
	Name   string `path:"name"`
	Tenant string `query:"tenant" doc:"Tenant id, for operators; the caller's own when absent."`
}

func (o *operations) schedules(a huma.API) {
	const path = "/schedules"
	do(a, route{"GET", path, "listSchedules", "List schedules"},
		func(ctx context.Context, caller identity.Principal, in *accountPage) (api.Page[api.Schedule], error) {
			items, next, err := o.Schedules.List(ctx, caller, in.Tenant, in.After, in.Limit)
			return paged(items, next, err, wireSchedule)
		})
	do(a, route{"GET", path + "/{name}", "schedule", "A schedule and its next fire"},
		func(ctx context.Context, caller identity.Principal, in *ScheduleName) (api.Schedule, error) {
			d, err := o.Schedules.Schedule(ctx, caller, in.Tenant, in.Name)
			return wireSchedule(d), err
		})
	do(a, route{"PUT", path + "/{name}", "putSchedule", "Make a schedule, or replace its plan; nothing fires on the change"},
		func(ctx context.Context, caller identity.Principal, in *struct {
			ScheduleName
			Body api.ScheduleChange
		}) (api.Schedule, error) {
			d, err := o.Schedules.Put(ctx, caller, in.Tenant, in.Name, planOf(in.Body.Plan), in.Body.ExpectedRevision)
			return wireSchedule(d), inPlan(err)
		})
	act(a, route{"DELETE", path + "/{name}", "deleteSchedule", "Remove a schedule with the list of its fires; Runs that it made stay"},
		func(ctx context.Context, caller identity.Principal, in *struct {
			ScheduleName
			Revision int64 `query:"revision" required:"true" minimum:"1" doc:"The revision that is meant; another one is answered revision_mismatch."`
		}) error {
			return o.Schedules.Delete(ctx, caller, in.Tenant, in.Name, in.Revision)
		})
	o.scheduleSteps(a, path)
}

func (o *operations) scheduleSteps(a huma.API, path string) {
	pause := func(paused bool) func(context.Context, identity.Principal, *ScheduleName) (api.Schedule, error) {
		return func(ctx context.Context, caller identity.Principal, in *ScheduleName) (api.Schedule, error) {
			d, err := o.Schedules.Pause(ctx, caller, in.Tenant, in.Name, paused)
			return wireSchedule(d), err
		}
	}
	doWith(a, route{"POST", path + "/{name}/pause", "pauseSchedule", "Stop a schedule, and give up fires that are tried again"}, http.StatusOK, pause(true))
	doWith(a, route{"POST", path + "/{name}/resume", "resumeSchedule", "Let a schedule go on from now; what was due in between is not caught up"}, http.StatusOK, pause(false))
	doWith(a, route{"POST", path + "/{name}/preview", "previewSchedule", "The load of its pool if the plan were stored under this name"}, http.StatusOK,
		func(ctx context.Context, caller identity.Principal, in *struct {
			ScheduleName
			Body api.SchedulePreview
		}) (api.LoadCurve, error) {
			c, err := o.Schedules.Preview(ctx, caller, in.Tenant, in.Name, planOf(in.Body.Plan), in.Body.Week)
			return wireCurve(c), inPlan(err)
		})
	do(a, route{"GET", path + "/{name}/fires", "scheduleFires", "What a schedule fired, latest first"},
		func(ctx context.Context, caller identity.Principal, in *struct {
			ScheduleName
			PageQuery
		}) (api.Page[api.ScheduleFire], error) {
			before := time.Time{}
			if in.After != "" {
				var err error
				if before, err = time.Parse(time.RFC3339, in.After); err != nil {
					return api.Page[api.ScheduleFire]{}, fault.Invalid("after", "must be the next of the page before")
				}
			}
			items, older, err := o.Schedules.Fires(ctx, caller, in.Tenant, in.Name, before, in.Limit)
			next := ""
			if !older.IsZero() {
				next = older.UTC().Format(time.RFC3339)
			}
			return paged(items, next, err, wireFire)
		})
}

// inPlan names a wrong field as it stands in the body, like those that the schema refuses.
func inPlan(err error) error {
	f := fault.From(err)
	if err == nil || f.Code != fault.InvalidInput {
		return err
	}
	named := *f
	named.Details = nil
	for _, d := range f.Details {
		if d.Field != "name" {
			d.Field = "plan." + d.Field
		}
		named.Details = append(named.Details, d)
	}
	return &named
}

func planOf(p api.SchedulePlan) schedules.Plan {
	out := schedules.Plan{
		Rule: p.Rule, Zone: p.Zone, Spread: time.Duration(p.SpreadSeconds) * time.Second, Overlap: schedules.Overlap(p.Overlap),
		Refused: schedules.Refused(p.Refused), Template: p.Template,
	}
	if c := p.CatchUp; c != nil {
		out.CatchUp = schedules.CatchUp{Policy: schedules.Missed(c.Policy), Max: c.Max, MaxAge: time.Duration(c.MaxAgeSeconds) * time.Second}
	}
	return out
}

func wireSchedule(d schedules.Schedule) api.Schedule {
	p := d.Plan
	return api.Schedule{
		ID: d.ID, Tenant: d.Tenant, Name: d.Name, Owner: d.Owner, Pool: d.Shape.Pool, Paused: d.Paused, Revision: d.Revision,
		NextAt: orNil(d.Due), CreatedAt: d.CreatedAt, ChangedAt: d.ChangedAt,
		Plan: api.SchedulePlan{
			Rule: p.Rule, Zone: p.Zone, SpreadSeconds: int64(p.Spread / time.Second), Overlap: string(p.Overlap), Refused: string(p.Refused), Template: p.Template,
			CatchUp: &api.CatchUp{Policy: string(p.CatchUp.Policy), Max: p.CatchUp.Max, MaxAgeSeconds: int64(p.CatchUp.MaxAge / time.Second)},
		},
	}
}

func wireFire(f schedules.Fire) api.ScheduleFire {
	out := api.ScheduleFire{
		Instant: f.Instant, DueAt: f.Due, State: string(f.State), Run: f.Run, Reason: f.Reason, Tries: f.Tries, EndedAt: orNil(f.SettledAt),
	}
	if f.State == schedules.Pending {
		out.RetryAt = orNil(f.TryAt)
	}
	return out
}

func wireCurve(c schedules.Curve) api.LoadCurve {
	out := api.LoadCurve{
		Pool: c.Pool, From: c.From, StepSeconds: int64(c.Step / time.Second), NotCounted: c.Left,
		Buckets: []api.LoadBucket{}, Peaks: []api.LoadPeak{}, Spreads: []api.SpreadEffect{},
	}
	for _, b := range c.Buckets {
		out.Buckets = append(out.Buckets, api.LoadBucket{At: b.At, MeanSlots: b.Mean, MaxSlots: b.Most})
	}
	for _, p := range c.Peaks {
		peak := api.LoadPeak{At: p.At, Slots: p.Slots, Others: p.Others, Own: []api.PeakPart{}}
		for _, part := range p.Own {
			peak.Own = append(peak.Own, api.PeakPart(part))
		}
		out.Peaks = append(out.Peaks, peak)
	}
	for _, e := range c.Spreads {
		out.Spreads = append(out.Spreads, api.SpreadEffect{SpreadSeconds: int64(e.Spread / time.Second), Alone: e.Alone, Together: e.Together})
	}
	return out
}
