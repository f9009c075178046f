package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/catalog"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/serve/request"
)

// Packages keeps the catalog. What the caller may not see is not_found. A reference is [TENANT/]NAME[@VERSION].
type Packages interface {
	PackageReaders
	PackageWriters
}

// PackageReaders finds packages and versions.
type PackageReaders interface {
	Packages(ctx context.Context, p identity.Principal, f catalog.Filter, public bool, after string, limit int) ([]catalog.Package, string, error)
	Package(ctx context.Context, p identity.Principal, ref string) (catalog.Package, error)
	Versions(ctx context.Context, p identity.Principal, ref, after string, limit int) ([]catalog.Version, string, error)
	Version(ctx context.Context, p identity.Principal, ref string) (catalog.Version, error)
}

// PackageWriters publishes and changes them.
type PackageWriters interface {
	Inbox(ctx context.Context, p identity.Principal, tenant string) (string, error)
	Publish(ctx context.Context, p identity.Principal, in api.PublishPackage) (v catalog.Version, created bool, err error)
	SetState(ctx context.Context, p identity.Principal, ref string, state catalog.State, note string) (catalog.Version, error)
	SetPublic(ctx context.Context, p identity.Principal, ref string, expected int64, public bool) (catalog.Package, error)
}

type packageQuery struct {
	PageQuery
	Tenant string `query:"tenant" doc:"Tenant id, for operators; the caller's own when absent."`
	Kind   string `query:"kind" enum:"archive,image"`
	Public bool   `query:"public" doc:"Instead of a tenant's: those that every tenant may run."`
}

// InPackage names a package in a path.
type InPackage struct {
	Name   string `path:"name"`
	Tenant string `query:"tenant" doc:"Id or name of the tenant whose package it is; the caller's own when absent."`
}

func (i InPackage) ref() string {
	if i.Tenant == "" {
		return i.Name
	}
	return i.Tenant + "/" + i.Name
}

// InPackageVersion names a version in a path.
type InPackageVersion struct {
	InPackage
	Version string `path:"version"`
}

func (i InPackageVersion) ref() string { return i.InPackage.ref() + "@" + i.Version }

type packagePatch struct {
	InPackage
	Body api.PackageChange
}

type versionPage struct {
	InPackage
	PageQuery
}

type statePut struct {
	InPackageVersion
	Body api.PackageVersionState
}

func (o *operations) packages(a huma.API) {
	do(a, route{"GET", "/packages", "listPackages", "List packages by name"},
		func(ctx context.Context, caller identity.Principal, in *packageQuery) (api.Page[api.Package], error) {
			items, next, err := o.Packages.Packages(ctx, caller, catalog.Filter{Tenant: in.Tenant, Kind: catalog.Kind(in.Kind)}, in.Public, in.After, in.Limit)
			return paged(items, next, err, wirePackage)
		})
	o.publish(a)
	do(a, route{"POST", "/packages/inbox", "openPackageInbox", "The repository to upload packages to; it is made at the first call, and the caller may write to it"},
		func(ctx context.Context, caller identity.Principal, in *input[api.PackageInboxQuery]) (api.PackageInbox, error) {
			repository, err := o.Packages.Inbox(ctx, caller, in.Body.Tenant)
			return api.PackageInbox{Repository: repository}, err
		})
	do(a, route{"GET", "/packages/{name}", "getPackage", "One package"},
		func(ctx context.Context, caller identity.Principal, in *InPackage) (api.Package, error) {
			p, err := o.Packages.Package(ctx, caller, in.ref())
			return wirePackage(p), err
		})
	do(a, route{"PATCH", "/packages/{name}", "changePackage", "Show a package to every tenant, or hide it again; for admins of its tenant"},
		func(ctx context.Context, caller identity.Principal, in *packagePatch) (api.Package, error) {
			if in.Body.Public == nil {
				return api.Package{}, fault.Invalid("public", "must be given: there is nothing else to change")
			}
			p, err := o.Packages.SetPublic(ctx, caller, in.ref(), in.Body.ExpectedRevision, *in.Body.Public)
			return wirePackage(p), err
		})
	o.packageVersions(a)
}

func (o *operations) packageVersions(a huma.API) {
	do(a, route{"GET", "/packages/{name}/versions", "listPackageVersions", "List the versions of a package, highest first"},
		func(ctx context.Context, caller identity.Principal, in *versionPage) (api.Page[api.PackageVersion], error) {
			items, next, err := o.Packages.Versions(ctx, caller, in.ref(), in.After, in.Limit)
			return paged(items, next, err, wireVersion)
		})
	do(a, route{"GET", "/packages/{name}/versions/{version}", "getPackageVersion", "One version with its manifest; latest is the one that the name alone means"},
		func(ctx context.Context, caller identity.Principal, in *InPackageVersion) (api.PackageVersion, error) {
			ref := in.ref()
			if in.Version == "latest" {
				ref = in.InPackage.ref()
			}
			v, err := o.Packages.Version(ctx, caller, ref)
			return wireWhole(v, err)
		})
	do(a, route{"PUT", "/packages/{name}/versions/{version}/state", "setPackageVersionState", "Deprecate a version, yank it, or make it active again"},
		func(ctx context.Context, caller identity.Principal, in *statePut) (api.PackageVersion, error) {
			v, err := o.Packages.SetState(ctx, caller, in.ref(), catalog.State(in.Body.State), in.Body.Note)
			return wireWhole(v, err)
		})
}

// published is the answer of a publish: 201 for a new version, 200 for one that is there already.
type published struct {
	Status int
	Body   api.PackageVersion
}

func (o *operations) publish(a huma.API) {
	op := huma.Operation{
		Method: http.MethodPost, Path: prefix + "/packages", OperationID: "publishPackage", DefaultStatus: http.StatusCreated,
		Summary: "Make an uploaded object a version of a package; 200 if it is one already",
	}
	huma.Register(a, op, func(ctx context.Context, in *input[api.PublishPackage]) (*published, error) {
		v, created, err := o.Packages.Publish(ctx, request.From(ctx).Caller, in.Body)
		out, err := wireWhole(v, err)
		if err != nil {
			return nil, refusal(ctx, err)
		}
		if created {
			return &published{http.StatusCreated, out}, nil
		}
		return &published{http.StatusOK, out}, nil
	})
}

func wirePackage(p catalog.Package) api.Package {
	return api.Package{
		Name: p.Name, Tenant: p.Tenant, TenantName: p.TenantName, Kind: string(p.Kind), Public: p.Public, Latest: p.Latest,
		Revision: p.Revision, CreatedAt: p.CreatedAt, CreatedBy: p.CreatedBy,
	}
}

func wireVersion(v catalog.Version) api.PackageVersion {
	return api.PackageVersion{
		Package: v.Name, Tenant: v.Tenant, Version: v.Version, Kind: string(v.Kind), Digest: v.Digest, Size: v.Size,
		State: string(v.State), Note: v.Note, CreatedAt: v.CreatedAt, CreatedBy: v.CreatedBy,
	}
}

// wireWhole is the same with the manifest.
func wireWhole(v catalog.Version, err error) (api.PackageVersion, error) {
	if err != nil {
		return api.PackageVersion{}, err
	}
	m, err := v.Manifest()
	out := wireVersion(v)
	out.Manifest = &m
	return out, err
}
