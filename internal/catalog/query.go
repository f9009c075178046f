package catalog

import (
	"context"
	"os"
	"strings"

	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// visible finds the package of a reference if p may see it: the own tenant's, a public one, for an operator any.
func (s *Service) visible(ctx context.Context, p identity.Principal, r Ref) (Package, error) {
	if p.Kind == identity.Link || p.Tenant == "" {
		return Package{}, fault.Missing("package")
	}
	tenant := r.Tenant
	if tenant == "" {
		tenant = p.Tenant
	}
	pkg, err := s.records.PackageByName(ctx, tenant, r.Name)
	if err != nil {
		return Package{}, err
	}
	if !pkg.Public && !p.Belongs(pkg.Tenant) {
		return Package{}, fault.Missing("package")
	}
	return pkg, nil
}

// Package finds a package that the caller may see; a version in the reference is passed over.
func (s *Service) Package(ctx context.Context, p identity.Principal, ref string) (Package, error) {
	r, err := ParseRef("package", ref)
	if err != nil {
		return Package{}, err
	}
	return s.visible(ctx, p, r)
}

// Packages lists by name the packages of a tenant (empty: the caller's own), or with public those that every tenant may
// run. next is empty on the last page.
func (s *Service) Packages(ctx context.Context, p identity.Principal, f Filter, public bool, after string, limit int) (page []Package, next string, err error) {
	if f.Kind != "" && f.Kind != Archive && f.Kind != Image {
		return nil, "", fault.Invalid("kind", "must be archive or image")
	}
	if public {
		if f.Tenant != "" {
			return nil, "", fault.Invalid("tenant", "makes no sense for the public packages of all tenants")
		}
		if p.Kind == identity.Link {
			return nil, "", nil
		}
	} else if f.Tenant, err = tenantOf(p, f.Tenant); err != nil {
		return nil, "", err
	}
	name, id, _ := strings.Cut(after, "/")
	limit = identity.PageSize(limit)
	page, err = s.records.ListPackages(ctx, f, name, id, limit+1)
	if err != nil {
		return nil, "", err
	}
	if len(page) > limit {
		page = page[:limit]
		next = page[limit-1].Name + "/" + page[limit-1].ID
	}
	return page, next, nil
}

// Versions lists a package's versions, highest first, without their manifests. after is the version the page before
// ended with; next is empty on the last page.
func (s *Service) Versions(ctx context.Context, p identity.Principal, ref, after string, limit int) (page []Version, next string, err error) {
	pkg, err := s.Package(ctx, p, ref)
	if err != nil {
		return nil, "", err
	}
	before := ""
	if after != "" {
		if err := CheckVersion("after", after); err != nil {
			return nil, "", err
		}
		before, _ = precedence(after)
	}
	limit = identity.PageSize(limit)
	page, err = s.records.ListVersions(ctx, pkg.ID, before, limit+1)
	if err != nil {
		return nil, "", err
	}
	if len(page) > limit {
		page = page[:limit]
		next = page[limit-1].Version
	}
	return page, next, nil
}

// Version finds one version for people to look at, yanked ones too.
func (s *Service) Version(ctx context.Context, p identity.Principal, ref string) (Version, error) {
	r, err := ParseRef("package", ref)
	if err != nil {
		return Version{}, err
	}
	pkg, err := s.visible(ctx, p, r)
	if err != nil {
		return Version{}, err
	}
	return s.versionOf(ctx, pkg, r)
}

func (s *Service) versionOf(ctx context.Context, pkg Package, r Ref) (Version, error) {
	if r.Version == "" {
		r.Version = pkg.Latest
	}
	if r.Version == "" {
		return Version{}, fault.Missing("package version")
	}
	v, err := s.records.PackageVersion(ctx, pkg.ID, r.Version)
	v.TenantName = pkg.TenantName
	return v, err
}

// Resolve is the version that a Run of p's tenant gets for a reference. Without a version it is the highest in the order
// of semantic versions: releases before prereleases, deprecated ones only when no other is left, yanked ones never. A
// yanked version is fault conflict with its note. An operator has no more rights here than the tenant: what a Run is
// pinned to must still be usable by its tenant when it starts.
func (s *Service) Resolve(ctx context.Context, p identity.Principal, ref string) (Version, error) {
	r, err := ParseRef("package", ref)
	if err != nil {
		return Version{}, err
	}
	tenantOnly := p
	tenantOnly.Operator = false
	pkg, err := s.visible(ctx, tenantOnly, r)
	if err != nil {
		return Version{}, err
	}
	v, err := s.versionOf(ctx, pkg, r)
	if err != nil {
		return Version{}, err
	}
	if v.State == Yanked {
		text := "version " + v.Version + " of package " + v.Name + " was withdrawn"
		if v.Note != "" {
			text += ": " + v.Note
		}
		return Version{}, fault.New(fault.Conflict, "%s", text)
	}
	return v, nil
}

// Usable says whether the tenant may run the package object of the digest now: it, or a public package, has a version of
// it. Whoever starts a pinned Run, or serves the object from a cache, asks this each time. A
// version that was yanked since is still usable. Everything else is not found.
func (s *Service) Usable(ctx context.Context, tenant, digest string) error {
	_, err := s.use(ctx, tenant, digest)
	return err
}

func (s *Service) use(ctx context.Context, tenant, digest string) (Version, error) {
	if _, err := artifacts.ParseDigest("digest", digest); err != nil {
		return Version{}, err
	}
	if tenant == "" {
		return Version{}, fault.Missing("package")
	}
	return s.records.VersionByDigest(ctx, tenant, digest)
}

// Open opens a package's object for a Run of the tenant if it is usable now. The caller closes it.
func (s *Service) Open(ctx context.Context, tenant, digest string) (*os.File, error) {
	v, err := s.use(ctx, tenant, digest)
	if err != nil {
		return nil, err
	}
	return s.objects.Open(ctx, artifacts.File{Digest: v.Digest, Size: v.Size})
}
