package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/identity"
)

// Pools keeps pools and their runners. What the caller may not see is not_found.
type Pools interface {
	// Register needs no caller: the token is the credential.
	Register(ctx context.Context, in api.RegisterRunner) (api.RegisteredRunner, error)
	NewToken(ctx context.Context, p identity.Principal, pool string) (api.RunnerToken, error)
}

type ofPool struct {
	Pool string `path:"pool"`
}

func (o *operations) pools(a huma.API) {
	do(a, route{"POST", "/runners/register", "registerRunner", "Make a runner of whoever has a token; needs no API key"},
		func(ctx context.Context, _ identity.Principal, in *input[api.RegisterRunner]) (api.RegisteredRunner, error) {
			return o.Pools.Register(ctx, in.Body)
		})
	do(a, route{"POST", "/pools/{pool}/runner-tokens", "newRunnerToken", "Let one runner register with the pool, once"},
		func(ctx context.Context, caller identity.Principal, in *ofPool) (api.RunnerToken, error) {
			return o.Pools.NewToken(ctx, caller, in.Pool)
		})
}
