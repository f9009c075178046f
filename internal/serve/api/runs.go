package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/runs"
)

// Runs is a tenant's side of Runs. What is another tenant's is not_found.
type Runs interface {
	Submit(ctx context.Context, p identity.Principal, r runs.Request, n api.NewRun) (api.Submitted, error)
	SubmitBatch(ctx context.Context, p identity.Principal, r runs.Request, b api.RunBatch) (api.Submitted, error)
	Rerun(ctx context.Context, p identity.Principal, r runs.Request, id string) (api.Submitted, error)
	RunReaders
	RunEnders
}

// RunReaders finds Runs.
type RunReaders interface {
	Get(ctx context.Context, p identity.Principal, id string) (api.Run, error)
	List(ctx context.Context, p identity.Principal, q runs.Query) (page []api.Run, next string, err error)
	Events(ctx context.Context, p identity.Principal, id string, seq int64, limit int) (page []api.RunEvent, ended bool, err error)
	Logs(ctx context.Context, p identity.Principal, id string, seq int64, limit int) (page []api.LogLine, ended bool, err error)
}

// RunEnders ends Runs.
type RunEnders interface {
	Cancel(ctx context.Context, p identity.Principal, id string) (api.Run, error)
	CancelAll(ctx context.Context, p identity.Principal, q runs.Query) (int, error)
}

// SubmitHeaders come with every submit. Huma reads embedded structs only when they are exported.
type SubmitHeaders struct {
	Key         string `header:"Idempotency-Key" maxLength:"200" doc:"Made by the client, one per wish; the same again with the same body gives the same Runs."`
	Traceparent string `header:"traceparent" maxLength:"200" doc:"Given to the payload."`
}

func (h SubmitHeaders) request(route string, body []byte) runs.Request {
	return runs.Request{Key: h.Key, Route: route, Body: body, Traceparent: h.Traceparent}
}

type submitPost[T any] struct {
	SubmitHeaders
	Body    T
	RawBody []byte
}

type rerunPost struct {
	SubmitHeaders
	Run string `path:"run"`
}

type ofRun struct {
	Run string `path:"run"`
}

// RunQuery selects Runs.
type RunQuery struct {
	State   []string `query:"state,explode" doc:"Only those in one of these states."`
	Pool    string   `query:"pool"`
	Package string   `query:"package" doc:"name or name@version"`
	Array   string   `query:"array"`
	Label   []string `query:"label,explode" doc:"name=value; all of them must be the Run's."`
	All     bool     `query:"all" doc:"Of all tenants; for operators."`
}

func (q RunQuery) query() runs.Query {
	return runs.Query{All: q.All, States: q.State, Pool: q.Pool, Package: q.Package, Array: q.Array, Labels: q.Label}
}

type listRuns struct {
	PageQuery
	RunQuery
}

type cancelRuns struct {
	RunQuery
}

type cancelled struct {
	Cancelled int `json:"cancelled" doc:"Runs that were ended, or whose end was asked for."`
}

type pageOfRun struct {
	Run   string `path:"run"`
	After int64  `query:"after" minimum:"0" doc:"seq of the last one that is known."`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

// chapter is a page of something that grows.
type chapter[T any] struct {
	Items []T  `json:"items" nullable:"false"`
	Ended bool `json:"ended" doc:"Nothing will follow these."`
}

func (o *operations) runs(a huma.API) {
	do(a, route{http.MethodPost, "/runs", "submitRun", "Submit a Run, or the Runs of an array; with dryRun say where it would stand, what it costs and what blocks it"},
		func(ctx context.Context, caller identity.Principal, in *submitPost[api.NewRun]) (api.Submitted, error) {
			return o.Runs.Submit(ctx, caller, in.request("runs", in.RawBody), in.Body)
		})
	do(a, route{http.MethodPost, "/runs/batch", "submitRuns", "Submit Runs that may follow each other: all of them or none"},
		func(ctx context.Context, caller identity.Principal, in *submitPost[api.RunBatch]) (api.Submitted, error) {
			return o.Runs.SubmitBatch(ctx, caller, in.request("runs/batch", in.RawBody), in.Body)
		})
	do(a, route{http.MethodPost, "/runs/{run}/rerun", "rerun", "Submit what a Run was asked to be once more"},
		func(ctx context.Context, caller identity.Principal, in *rerunPost) (api.Submitted, error) {
			return o.Runs.Rerun(ctx, caller, in.request("rerun", nil), in.Run)
		})
	do(a, route{http.MethodGet, "/runs", "listRuns", "The Runs of the caller's tenant, the newest first"},
		func(ctx context.Context, caller identity.Principal, in *listRuns) (api.Page[api.Run], error) {
			q := in.query()
			q.After, q.Limit = in.After, in.Limit
			page, next, err := o.Runs.List(ctx, caller, q)
			return api.Page[api.Run]{Items: page, Next: next}, err
		})
	do(a, route{http.MethodGet, "/runs/{run}", "run", "One Run with its Attempts, its results, and while it is queued its place, its start and why it waits"},
		func(ctx context.Context, caller identity.Principal, in *ofRun) (api.Run, error) {
			return o.Runs.Get(ctx, caller, in.Run)
		})
	say(a, route{http.MethodPost, "/runs/{run}/cancel", "cancelRun", "End a queued Run at once, or ask for the end of an active one"},
		func(ctx context.Context, caller identity.Principal, in *ofRun) (api.Run, error) {
			return o.Runs.Cancel(ctx, caller, in.Run)
		})
	say(a, route{http.MethodPost, "/runs/cancel", "cancelRuns", "Cancel every Run that a query finds and that has not ended"},
		func(ctx context.Context, caller identity.Principal, in *cancelRuns) (cancelled, error) {
			n, err := o.Runs.CancelAll(ctx, caller, in.query())
			return cancelled{n}, err
		})
	do(a, route{http.MethodGet, "/runs/{run}/events", "runEvents", "What happened to a Run, in order"},
		func(ctx context.Context, caller identity.Principal, in *pageOfRun) (chapter[api.RunEvent], error) {
			page, ended, err := o.Runs.Events(ctx, caller, in.Run, in.After, in.Limit)
			return chapter[api.RunEvent]{page, ended}, err
		})
	do(a, route{http.MethodGet, "/runs/{run}/logs", "runLogs", "The lines that a Run wrote, in order"},
		func(ctx context.Context, caller identity.Principal, in *pageOfRun) (chapter[api.LogLine], error) {
			page, ended, err := o.Runs.Logs(ctx, caller, in.Run, in.After, in.Limit)
			return chapter[api.LogLine]{page, ended}, err
		})
}
