package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/serve/request"
)

// Links keeps share links. The token of a link exists only in the answer of CreateLink.
type Links interface {
	CreateLink(ctx context.Context, p identity.Principal, repository, path string, expires time.Time) (artifacts.ShareLink, string, error)
	ListLinks(ctx context.Context, p identity.Principal, repository, after string, limit int) ([]artifacts.ShareLink, string, error)
	RevokeLink(ctx context.Context, p identity.Principal, repository, id string) error
}

type linkPost struct {
	InRepository
	Body api.NewLink
}

type linkOf struct {
	InRepository
	ID string `path:"id"`
}

func (o *operations) links(a huma.API) {
	do(a, route{"GET", "/repositories/{repository}/links", "listLinks", "List the share links of a repository"},
		func(ctx context.Context, caller identity.Principal, in *RepositoryPage) (api.Page[api.ShareLink], error) {
			items, next, err := o.Links.ListLinks(ctx, caller, in.Repository, in.After, in.Limit)
			return paged(items, next, err, wireLink)
		})
	do(a, route{"POST", "/repositories/{repository}/links", "createLink", "Share the current revision of a file; its URL is shown in this answer only"},
		func(ctx context.Context, caller identity.Principal, in *linkPost) (api.ShareLink, error) {
			made, token, err := o.Links.CreateLink(ctx, caller, in.Repository, in.Body.Path, orZero(in.Body.ExpiresAt))
			out := wireLink(made)
			out.URL = request.From(ctx).BaseURL() + api.PathLinks + token
			return out, err
		})
	act(a, route{"DELETE", "/repositories/{repository}/links/{id}", "revokeLink", "Revoke a share link at once and for good"},
		func(ctx context.Context, caller identity.Principal, in *linkOf) error {
			return o.Links.RevokeLink(ctx, caller, in.Repository, in.ID)
		})
}
