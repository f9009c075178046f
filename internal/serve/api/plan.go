package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/plan"
)

// Plan says how much capacity is needed for what comes.
type Plan interface {
	Live(ctx context.Context, p identity.Principal, q plan.Query) (plan.Live, error)
}

type planQuery struct {
	Pool       string  `query:"pool" default:"default"`
	Window     int64   `query:"windowSeconds" minimum:"3600" maximum:"604800" default:"86400" doc:"How far back to measure."`
	TargetLoad float64 `query:"targetLoad" exclusiveMinimum:"0" exclusiveMaximum:"1" default:"0.7" doc:"Part of the slots that is busy on average."`
	Forecast   bool    `query:"forecast" default:"true"`
}

func (o *operations) plan(a huma.API) {
	do(a, route{http.MethodGet, "/plan", "plan", "Measure what comes to a pool by class, and plan slots for it; operators see all tenants', others their own"},
		func(ctx context.Context, caller identity.Principal, in *planQuery) (api.Plan, error) {
			p, err := o.Plan.Live(ctx, caller, plan.Query{Pool: in.Pool, WindowSeconds: in.Window, TargetLoad: in.TargetLoad, Forecast: in.Forecast})
			return wirePlan(p), err
		})
}

func wirePlan(p plan.Live) api.Plan {
	out := api.Plan{
		Pool: p.Pool, From: p.From, To: p.To, TargetLoad: p.TargetLoad, Busy: p.Busy, Slots: p.Slots, Notes: p.Notes,
		Measured: []api.ClassLoad{}, Classes: []api.ClassSlots{}, Forecast: (*api.PlanForecast)(p.Forecast),
	}
	for _, c := range p.Measured {
		out.Measured = append(out.Measured, api.ClassLoad(c))
	}
	for _, c := range p.Classes {
		out.Classes = append(out.Classes, api.ClassSlots(c))
	}
	return out
}
