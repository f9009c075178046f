package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

func (o *operations) system(a huma.API) {
	do(a, route{"GET", "/system/downloads/queue", "downloadQueue", "The download queue by class, for operators"},
		func(_ context.Context, caller identity.Principal, _ *none) (api.Queue, error) {
			if !caller.Operator {
				return api.Queue{}, fault.New(fault.Forbidden, "only a system operator may see the queue")
			}
			return o.Queue(), nil
		})
}
