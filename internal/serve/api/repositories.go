package api

import (
	"context"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/identity"
)

// Artifacts keeps repositories and their files.
type Artifacts interface {
	CreateRepository(ctx context.Context, p identity.Principal, name string) (artifacts.Repository, error)
	ListRepositories(ctx context.Context, p identity.Principal, after string, limit int) ([]artifacts.Repository, string, error)
	DeleteRepository(ctx context.Context, p identity.Principal, name string) error
	List(ctx context.Context, p identity.Principal, repository, prefix, after string, limit int) ([]artifacts.File, string, error)
	Revisions(ctx context.Context, p identity.Principal, repository, path string, before int64, limit int) ([]artifacts.File, int64, error)
}

// Grants keeps who has which role on a repository.
type Grants interface {
	SetGrant(ctx context.Context, actor identity.Principal, g identity.Grant) error
	RemoveGrant(ctx context.Context, actor identity.Principal, repository, account string) error
	ListGrants(ctx context.Context, actor identity.Principal, repository, after string, limit int) ([]identity.Grant, string, error)
}

// InRepository, like the others exported here, is embedded in inputs: huma passes over embedded types that are not.
type InRepository struct {
	Repository string `path:"repository"`
}

// RepositoryPage asks for a page of something in a repository.
type RepositoryPage struct {
	InRepository
	PageQuery
}

type filePage struct {
	RepositoryPage
	Prefix string `query:"prefix" doc:"Only paths that begin with it."`
}

type revisionPage struct {
	InRepository
	Path  string `query:"path" required:"true"`
	After string `query:"after" maxLength:"20" doc:"The next of the page before."`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

// GrantOf names one grant.
type GrantOf struct {
	InRepository
	Account string `path:"account"`
}

type grantPut struct {
	GrantOf
	Body api.GrantRole
}

func (o *operations) repositories(a huma.API) {
	do(a, route{"GET", "/repositories", "listRepositories", "List the repositories the caller has a role on"},
		func(ctx context.Context, caller identity.Principal, in *PageQuery) (api.Page[api.Repository], error) {
			items, next, err := o.Artifacts.ListRepositories(ctx, caller, in.After, in.Limit)
			return paged(items, next, err, wireRepository)
		})
	do(a, route{"POST", "/repositories", "createRepository", "Make a repository, with the caller as its admin"},
		func(ctx context.Context, caller identity.Principal, in *input[api.NewRepository]) (api.Repository, error) {
			made, err := o.Artifacts.CreateRepository(ctx, caller, in.Body.Name)
			return wireRepository(made), err
		})
	act(a, route{"DELETE", "/repositories/{repository}", "deleteRepository", "Delete an empty repository"},
		func(ctx context.Context, caller identity.Principal, in *InRepository) error {
			return o.Artifacts.DeleteRepository(ctx, caller, in.Repository)
		})
	do(a, route{"GET", "/repositories/{repository}/files", "listFiles", "List files in byte order of their paths"},
		func(ctx context.Context, caller identity.Principal, in *filePage) (api.Page[api.File], error) {
			items, next, err := o.Artifacts.List(ctx, caller, in.Repository, in.Prefix, in.After, in.Limit)
			return paged(items, next, err, wireFile)
		})
	do(a, route{"GET", "/repositories/{repository}/revisions", "listRevisions", "List the revisions of a path, newest first"}, o.revisions)
	o.grants(a)
}

func (o *operations) revisions(ctx context.Context, caller identity.Principal, in *revisionPage) (api.Page[api.File], error) {
	before, err := beforeRevision(in.After)
	if err != nil {
		return api.Page[api.File]{}, err
	}
	items, older, err := o.Artifacts.Revisions(ctx, caller, in.Repository, in.Path, before, in.Limit)
	next := ""
	if older > 0 {
		next = strconv.FormatInt(older, 10)
	}
	return paged(items, next, err, wireFile)
}

func (o *operations) grants(a huma.API) {
	wire := func(g identity.Grant) api.Grant {
		return api.Grant{Repository: g.Repository, Account: g.Account, Role: string(g.Role)}
	}
	do(a, route{"GET", "/repositories/{repository}/grants", "listGrants", "List who has which role on a repository"},
		func(ctx context.Context, caller identity.Principal, in *RepositoryPage) (api.Page[api.Grant], error) {
			items, next, err := o.Grants.ListGrants(ctx, caller, in.Repository, in.After, in.Limit)
			return paged(items, next, err, wire)
		})
	do(a, route{"PUT", "/repositories/{repository}/grants/{account}", "setGrant", "Give an account exactly this role"},
		func(ctx context.Context, caller identity.Principal, in *grantPut) (api.Grant, error) {
			g := identity.Grant{Repository: in.Repository, Account: in.Account, Role: identity.Role(in.Body.Role)}
			return wire(g), o.Grants.SetGrant(ctx, caller, g)
		})
	act(a, route{"DELETE", "/repositories/{repository}/grants/{account}", "removeGrant", "Take an account's role away"},
		func(ctx context.Context, caller identity.Principal, in *GrantOf) error {
			return o.Grants.RemoveGrant(ctx, caller, in.Repository, in.Account)
		})
}
