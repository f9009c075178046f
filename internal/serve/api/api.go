// Package api is the JSON side of the server: each operation decodes, calls one service and encodes.
package api

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/serve/request"
)

// prefix begins every path of this package.
const prefix = "/api/v1"

// Services are what the operations call.
type Services struct {
	Accounts  Accounts
	Keys      Keys
	Grants    Grants
	Artifacts Artifacts
	Links     Links
	Queue     func() api.Queue
	Settings  Settings
	Bookings  Bookings
	Objects   Objects
	Packages  Packages // nil: no routes, and so for those below
	Secrets   Secrets
	Schedules Schedules
	Runs      Runs
	Attempts  Attempts
	Pools     Pools
	Plan      Plan
}

// Register adds every operation by calling handle with a ServeMux pattern and its handler, and returns the OpenAPI
// document that describes them. The handlers expect an authenticated request.
func Register(handle func(pattern string, h http.HandlerFunc), version string, s Services) ([]byte, error) {
	return register(handle, version, s, false)
}

// register adds the operations of optional services that are there, or of all of them.
func register(handle func(pattern string, h http.HandlerFunc), version string, s Services, all bool) ([]byte, error) {
	refuseAsProblems()
	h := &operations{Services: s, version: version}
	a := humago.New(registrar(handle), config())
	h.identity(a)
	h.repositories(a)
	h.links(a)
	h.downloads(a)
	h.system(a)
	h.settings(a)
	if all || s.Packages != nil {
		h.packages(a)
	}
	if all || s.Secrets != nil {
		h.secrets(a)
	}
	if all || s.Schedules != nil {
		h.schedules(a)
	}
	if all || s.Runs != nil {
		h.runs(a)
	}
	if all || s.Pools != nil {
		h.pools(a)
	}
	if all || s.Plan != nil {
		h.plan(a)
	}
	if all || s.Attempts != nil {
		h.runner(a)
	}
	describeBytes(a.OpenAPI())
	return json.MarshalIndent(a.OpenAPI(), "", "  ")
}

// Document is the OpenAPI document alone, with every operation there is.
func Document() ([]byte, error) {
	return register(func(string, http.HandlerFunc) {}, "", Services{}, true)
}

type operations struct {
	Services
	version string
}

// registrar lets huma register where Register's caller wants.
type registrar func(pattern string, h http.HandlerFunc)

func (r registrar) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	r(pattern, h)
}
func (r registrar) ServeHTTP(w http.ResponseWriter, req *http.Request) { http.NotFound(w, req) }

func config() huma.Config {
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Roadstead", Version: "v1",
			Description: "A store that serves large files to many clients over a scarce link: fairly, with a known place and start.",
		},
		Components: &huma.Components{
			Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"bearer": {Type: "http", Scheme: "bearer", Description: "An API key."},
				"basic":  {Type: "http", Scheme: "basic", Description: "An API key as the password, for tools that know only that."},
			},
		},
		Security: []map[string][]string{{"bearer": {}}, {"basic": {}}},
	}
	return huma.Config{
		OpenAPI:                      doc,
		Formats:                      map[string]huma.Format{"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{addRequestID},
	}
}

// body is an answer with a JSON body.
type body[T any] struct{ Body T }

// none is the input or output of an operation without any.
type none struct{}

// input is a JSON request body.
type input[T any] struct{ Body T }

// PageQuery is how every listing is asked. Huma reads embedded structs only when they are exported.
type PageQuery struct {
	After string `query:"after" maxLength:"4096" doc:"The next of the page before."`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"Items on the page at most."`
}

// route names an operation.
type route struct{ method, path, id, summary string }

// do registers an operation that answers with a body; one that is posted makes something.
func do[I, O any](a huma.API, r route, h func(ctx context.Context, caller identity.Principal, in *I) (O, error)) {
	status := http.StatusOK
	if r.method == http.MethodPost {
		status = http.StatusCreated
	}
	doWith(a, r, status, h)
}

// say registers an operation that is posted, makes nothing and answers with a body.
func say[I, O any](a huma.API, r route, h func(ctx context.Context, caller identity.Principal, in *I) (O, error)) {
	doWith(a, r, http.StatusOK, h)
}

func doWith[I, O any](a huma.API, r route, status int, h func(ctx context.Context, caller identity.Principal, in *I) (O, error)) {
	op := huma.Operation{Method: r.method, Path: prefix + r.path, OperationID: r.id, Summary: r.summary, DefaultStatus: status}
	huma.Register(a, op, func(ctx context.Context, in *I) (*body[O], error) {
		out, err := h(ctx, request.From(ctx).Caller, in)
		if err != nil {
			return nil, refusal(ctx, err)
		}
		return &body[O]{out}, nil
	})
}

// act registers an operation that answers with nothing but success.
func act[I any](a huma.API, r route, h func(ctx context.Context, caller identity.Principal, in *I) error) {
	op := huma.Operation{Method: r.method, Path: prefix + r.path, OperationID: r.id, Summary: r.summary, DefaultStatus: http.StatusNoContent}
	huma.Register(a, op, func(ctx context.Context, in *I) (*none, error) {
		if err := h(ctx, request.From(ctx).Caller, in); err != nil {
			return nil, refusal(ctx, err)
		}
		return nil, nil
	})
}

// paged turns a service's page into the wire's.
func paged[S, W any](items []S, next string, err error, wire func(S) W) (api.Page[W], error) {
	if err != nil {
		return api.Page[W]{}, err
	}
	out := api.Page[W]{Items: make([]W, 0, len(items)), Next: next}
	for _, item := range items {
		out.Items = append(out.Items, wire(item))
	}
	return out, nil
}

// refuseAsProblems makes huma's own refusals (validation, decoding) look like all others. Huma offers only a
// package-level hook for it, so it is set once.
var refuseAsProblems = sync.OnceFunc(func() { huma.NewError = newError })
