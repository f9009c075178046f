package catalog

import (
	"context"

	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/audit"
)

// Filter says which packages to list: those of a tenant, or with an empty tenant the public ones of all.
type Filter struct {
	Tenant string // id
	Kind   Kind   // empty: both
}

// Records is what the catalog must not forget. Each method is one transaction, safe from many goroutines and processes
// at once. A thing that is not there is fault not_found.
type Records interface {
	VersionRecords
	PackageRecords
}

// VersionRecords keeps versions.
type VersionRecords interface {
	// PublishVersion stores v, and p unless there is a package of that name in the tenant, and a reference that keeps
	// the object alive. A version that is there with v's digest is the answer, with created false and nothing written;
	// with another digest, or under a package of another kind, the fault is conflict.
	PublishVersion(ctx context.Context, p Package, v Version, e audit.Entry) (stored Version, created bool, err error)
	// PackageVersion finds one version with its manifest.
	PackageVersion(ctx context.Context, pkg, version string) (Version, error)
	// ListVersions lists a package's versions, highest first, below the precedence before unless that is empty.
	ListVersions(ctx context.Context, pkg, before string, limit int) ([]Version, error)
	// SetVersionState changes state and note if the stored state still is from; otherwise fault revision_mismatch.
	SetVersionState(ctx context.Context, v Version, from State, e audit.Entry) error
	// VersionByDigest finds a version with the digest whose package is the tenant's own or public; its own first.
	VersionByDigest(ctx context.Context, tenant, digest string) (Version, error)
}

// PackageRecords keeps packages.
type PackageRecords interface {
	// PackageByName finds a package by its tenant's id or name.
	PackageByName(ctx context.Context, tenant, name string) (Package, error)
	// ListPackages lists by name, then id, past both.
	ListPackages(ctx context.Context, f Filter, afterName, afterID string, limit int) ([]Package, error)
	// ChangePackage replaces public and revision if the stored revision still is expected; otherwise revision_mismatch.
	ChangePackage(ctx context.Context, p Package, expected int64, e audit.Entry) error
	// PackageInbox makes the repository for a tenant's uploads unless it is there, and gives the account the role in it
	// unless it has one. r's name is a prefix to the tenant's. An empty account is given nothing.
	PackageInbox(ctx context.Context, r artifacts.Repository, account string, e audit.Entry) (name string, err error)
}
