package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/attempts"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/serve/request"
)

// RunnerPrefix begins the paths that a runner calls with its own key.
const RunnerPrefix = prefix + "/runner/"

// PathRegister is where a runner registers itself with a token.
const PathRegister = prefix + "/runners/register"

// Attempts hears what runners say. A call with an old fence is fault conflict with the reason lease_lost.
type Attempts interface {
	// Exchange blocks for as long as the runner asked, at most a heartbeat.
	Exchange(ctx context.Context, c attempts.Caller, in api.Exchange) (api.Exchanged, error)
	Start(ctx context.Context, c attempts.Caller, attempt string, fence int64) (api.Job, error)
	Launched(ctx context.Context, c attempts.Caller, attempt string, fence int64) error
	Secrets(ctx context.Context, c attempts.Caller, attempt string, fence int64) (api.JobSecrets, error)
	Logs(ctx context.Context, c attempts.Caller, attempt string, in api.JobLogs) error
	GrantUpload(ctx context.Context, c attempts.Caller, attempt string, in api.NewGrant) (api.UploadGrant, error)
	Report(ctx context.Context, c attempts.Caller, attempt string, in api.JobReport) (api.JobReported, error)
}

type attemptPost[T any] struct {
	Attempt string `path:"attempt"`
	Body    T
}

func (o *operations) runner(a huma.API) {
	const path = "/runner/attempts/{attempt}"
	caller := func(ctx context.Context) attempts.Caller { return request.From(ctx).Runner }
	say(a, route{"POST", "/runner/exchange", "exchange", "For runners: renew every lease, acknowledge assignments, wait for news"},
		func(ctx context.Context, _ identity.Principal, in *input[api.Exchange]) (api.Exchanged, error) {
			return o.Attempts.Exchange(ctx, caller(ctx), in.Body)
		})
	say(a, route{"POST", path + "/starting", "startAttempt", "For runners: ask leave to start the payload, and hear what it is"},
		func(ctx context.Context, _ identity.Principal, in *attemptPost[api.Fenced]) (api.Job, error) {
			return o.Attempts.Start(ctx, caller(ctx), in.Attempt, in.Body.Fence)
		})
	act(a, route{"POST", path + "/running", "launchAttempt", "For runners: the payload was started"},
		func(ctx context.Context, _ identity.Principal, in *attemptPost[api.Fenced]) error {
			return o.Attempts.Launched(ctx, caller(ctx), in.Attempt, in.Body.Fence)
		})
	say(a, route{"POST", path + "/secrets", "attemptSecrets", "For runners: the values of the Attempt's secrets"},
		func(ctx context.Context, _ identity.Principal, in *attemptPost[api.Fenced]) (api.JobSecrets, error) {
			return o.Attempts.Secrets(ctx, caller(ctx), in.Attempt, in.Body.Fence)
		})
	act(a, route{"POST", path + "/logs", "attemptLogs", "For runners: lines that the payload wrote, and its progress"},
		func(ctx context.Context, _ identity.Principal, in *attemptPost[api.JobLogs]) error {
			return o.Attempts.Logs(ctx, caller(ctx), in.Attempt, in.Body)
		})
	say(a, route{"POST", path + "/grants", "grantUpload", "For runners: leave to upload one object"},
		func(ctx context.Context, _ identity.Principal, in *attemptPost[api.NewGrant]) (api.UploadGrant, error) {
			return o.Attempts.GrantUpload(ctx, caller(ctx), in.Attempt, in.Body)
		})
	say(a, route{"POST", path + "/report", "reportAttempt", "For runners: how the payload ended"},
		func(ctx context.Context, _ identity.Principal, in *attemptPost[api.JobReport]) (api.JobReported, error) {
			return o.Attempts.Report(ctx, caller(ctx), in.Attempt, in.Body)
		})
}
