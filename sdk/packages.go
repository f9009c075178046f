package sdk

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/roadstead/roadstead/api"
)

// PackageFilter says which packages to list.
type PackageFilter struct {
	Tenant string // id; empty: the caller's own
	Kind   string // archive or image; empty: both
	Public bool   // instead of a tenant's: those that every tenant may run
}

// Packages lists packages by name.
func (c *Client) Packages(ctx context.Context, f PackageFilter) iter.Seq2[api.Package, error] {
	query := url.Values{}
	for name, value := range map[string]string{"tenant": f.Tenant, "kind": f.Kind} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if f.Public {
		query.Set("public", "true")
	}
	return pages[api.Package](ctx, c, "packages", query)
}

// Package finds a package of a tenant, by the tenant's id or name; empty: the caller's own.
func (c *Client) Package(ctx context.Context, tenant, name string) (out api.Package, err error) {
	err = c.call(ctx, http.MethodGet, c.packageURL(tenant, name, ""), nil, &out)
	return out, err
}

// PackageVersions lists the versions of a package, highest first.
func (c *Client) PackageVersions(ctx context.Context, tenant, name string) iter.Seq2[api.PackageVersion, error] {
	return pages[api.PackageVersion](ctx, c, "packages/"+url.PathEscape(name)+"/versions", inTenant(tenant))
}

// PackageVersion finds one version with its manifest; an empty version is the one that the name alone means.
func (c *Client) PackageVersion(ctx context.Context, tenant, name, version string) (out api.PackageVersion, err error) {
	if version == "" {
		version = "latest"
	}
	err = c.call(ctx, http.MethodGet, c.packageURL(tenant, name, "/versions/"+url.PathEscape(version)), nil, &out)
	return out, err
}

// PackageInbox is the repository to upload a tenant's packages to; empty: the caller's own tenant.
func (c *Client) PackageInbox(ctx context.Context, tenant string) (string, error) {
	var out api.PackageInbox
	err := c.call(ctx, http.MethodPost, c.at(apiRoot+"packages/inbox", nil), api.PackageInboxQuery{Tenant: tenant}, &out)
	return out.Repository, err
}

// PublishPackage makes an uploaded object a version of a package. Repeating it changes nothing; other bytes under the
// same version are refused with the Code conflict. The server reads all of the object before it answers.
func (c *Client) PublishPackage(ctx context.Context, in api.PublishPackage) (out api.PackageVersion, err error) {
	patient := *c
	patient.retry.AttemptTimeout = max(c.retry.AttemptTimeout, commitTimeout)
	err = patient.call(ctx, http.MethodPost, c.at(apiRoot+"packages", nil), in, &out)
	return out, err
}

// SetPackageState deprecates a version, yanks it, or makes it active again.
func (c *Client) SetPackageState(ctx context.Context, tenant, name, version string, in api.PackageVersionState) (out api.PackageVersion, err error) {
	err = c.call(ctx, http.MethodPut, c.packageURL(tenant, name, "/versions/"+url.PathEscape(version)+"/state"), in, &out)
	return out, err
}

// ShowPackage lets every tenant run a package, or hides it again, if it still has the revision; otherwise the error's
// Code is revision_mismatch.
func (c *Client) ShowPackage(ctx context.Context, tenant, name string, revision int64, public bool) (out api.Package, err error) {
	in := api.PackageChange{ExpectedRevision: revision, Public: &public}
	err = c.call(ctx, http.MethodPatch, c.packageURL(tenant, name, ""), in, &out)
	return out, err
}

func (c *Client) packageURL(tenant, name, rest string) string {
	return c.at(apiRoot+"packages/"+url.PathEscape(name)+rest, inTenant(tenant))
}
