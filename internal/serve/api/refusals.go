package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/serve/problem"
	"github.com/roadstead/roadstead/internal/serve/request"
)

// Problem is api.Problem as huma wants an error to be.
type Problem struct{ api.Problem }

func (p *Problem) Error() string             { return p.Message }
func (p *Problem) GetStatus() int            { return p.Status }
func (p *Problem) ContentType(string) string { return problem.ContentType }

// GetHeaders are the headers that go with the refusal.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	problem.SetHeaders(h, p.Problem)
	return h
}

// refusal renders a service's error and keeps its cause for the log.
func refusal(ctx context.Context, err error) error {
	request.From(ctx).Cause = err
	return &Problem{problem.Of(err)}
}

// newError renders huma's own refusals. Whatever is wrong with the input is invalid_input 400 with the fields.
func newError(status int, msg string, errs ...error) huma.StatusError {
	f := fault.New(fault.InvalidInput, "%s", msg)
	switch status {
	case http.StatusRequestEntityTooLarge:
		f = fault.New(fault.TooLarge, "the request body is too large")
	case http.StatusInternalServerError:
		f = fault.New(fault.Internal, "internal error")
		errs = nil
	}
	for _, err := range errs {
		detail := fault.Detail{Field: "body"}
		if d, ok := err.(huma.ErrorDetailer); ok {
			detail.Problem = d.ErrorDetail().Message
			detail.Field = field(d.ErrorDetail().Location)
		} else if err != nil {
			detail.Problem = err.Error()
		}
		f.Details = append(f.Details, detail)
	}
	if len(f.Details) > 0 {
		f.Message = f.Details[0].Field + ": " + f.Details[0].Problem
	}
	return &Problem{problem.Of(f)}
}

// field is the input's name without the part of the request it stood in.
func field(location string) string {
	for _, part := range []string{"body.", "query.", "path.", "header."} {
		if name, ok := strings.CutPrefix(location, part); ok {
			return name
		}
	}
	if location == "" {
		return "body"
	}
	return location
}

// addRequestID puts the request's id into every refusal.
func addRequestID(ctx huma.Context, _ string, v any) (any, error) {
	if p, ok := v.(*Problem); ok {
		p.RequestID = request.From(ctx.Context()).ID
	}
	return v, nil
}
