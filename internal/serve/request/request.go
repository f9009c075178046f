// Package request carries what the edge learned about one HTTP request to everything that handles it.
package request

import (
	"context"

	"github.com/roadstead/roadstead/internal/attempts"
	"github.com/roadstead/roadstead/internal/identity"
)

// Info belongs to one request and is used by its goroutine only.
type Info struct {
	ID     string             // request id, in the log and in every refusal
	Client string             // address of the client, as trusted proxies report it; without a port
	Scheme string             // "http" or "https", as the client sees it
	Host   string             // host the client asked for
	Caller identity.Principal // who asks; the zero value before and without authentication
	Runner attempts.Caller    // the runner that asks with its own key, on its own routes
	Grant  string             // the secret of a grant to upload, on the route for it
	Cause  error              // why the request was refused; for the log only
	Poll   bool               // a download that waits was told its place: its log line is for debugging
}

type key struct{}

// With attaches info to the context of its request.
func With(ctx context.Context, info *Info) context.Context {
	return context.WithValue(ctx, key{}, info)
}

// From gives the request's info; outside a request, an empty one that nobody reads.
func From(ctx context.Context) *Info {
	if info, ok := ctx.Value(key{}).(*Info); ok {
		return info
	}
	return &Info{}
}

// BaseURL is the server's address as the client sees it, without a trailing slash.
func (i *Info) BaseURL() string { return i.Scheme + "://" + i.Host }
