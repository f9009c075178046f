package api

import (
	"encoding/json"
	"time"
)

// ManifestFile is the name of the file, at the top of a package's folder, that holds its PackageManifest as JSON.
const ManifestFile = "roadstead.json"

// PackageManifest says how a package runs. Numbers that are absent or 0 take the default.
type PackageManifest struct {
	Name        string         `json:"name" doc:"1 to 100 of a-z 0-9 . _ -, beginning with a letter or digit; unique in the tenant."`
	Version     string         `json:"version,omitempty" doc:"Semantic version such as 1.4.0 or 2.0.0-rc.1; the publish may name another one."`
	Kind        string         `json:"kind,omitempty" enum:"archive,image" doc:"archive (the default): a tar.gz that becomes the working folder; image: an OCI image layout as tar that is the root."`
	Image       string         `json:"image,omitempty" doc:"Of an image, in the manifest file: the layout's tar beside it."`
	Description string         `json:"description,omitempty" maxLength:"2000"`
	Entry       []string       `json:"entry,omitempty" maxItems:"256" doc:"Program and arguments; an image may leave it to its own entry point."`
	Class       string         `json:"class,omitempty" enum:"interactive,background,periodic,build" doc:"Workload class unless the Run says another one; background when absent."`
	Resources   Resources      `json:"resources,omitempty"`
	Inputs      []PackageInput `json:"inputs,omitempty" maxItems:"100"`
	Outputs     []Output       `json:"outputs,omitempty" maxItems:"100"`
	Secrets     []string       `json:"secrets,omitempty" maxItems:"100" doc:"Names of secrets of the Run's tenant that it needs, given as files."`
	Policy      PackagePolicy  `json:"policy,omitempty"`
}

// PackageInput is one input that a Run of the package gives.
type PackageInput struct {
	Name     string          `json:"name" doc:"1 to 100 of A-Z a-z 0-9 . _ -, beginning with a letter or digit."`
	Type     string          `json:"type" enum:"string,int,number,bool,file,json" doc:"file: a file of the store or the result of another Run."`
	Required bool            `json:"required,omitempty"`
	Default  json.RawMessage `json:"default,omitempty" doc:"A value of the type; of a file, its repository/path as a string."`
	Help     string          `json:"help,omitempty" maxLength:"2000"`
}

// PackagePolicy bounds the Runs of a package.
type PackagePolicy struct {
	TimeoutSeconds    int64 `json:"timeoutSeconds,omitempty" doc:"Time the payload may take unless the Run says otherwise; the pool's default when absent."`
	MaxTimeoutSeconds int64 `json:"maxTimeoutSeconds,omitempty" doc:"The most a Run may ask for; the pool's when absent."`
	GraceSeconds      int64 `json:"graceSeconds,omitempty" doc:"Between TERM and KILL; 10 when absent."`
	Retry             Retry `json:"retry,omitempty" doc:"Unless the Run says otherwise."`
	Network           bool  `json:"network,omitempty" doc:"It wants the network; the pool's operator permits it or not."`
}

// Package is a package of a tenant.
type Package struct {
	Name       string    `json:"name"`
	Tenant     string    `json:"tenant" doc:"Id of the tenant."`
	TenantName string    `json:"tenantName" doc:"Others refer to a public package as tenantName/name."`
	Kind       string    `json:"kind" enum:"archive,image"`
	Public     bool      `json:"public,omitempty" doc:"Every tenant may run it."`
	Latest     string    `json:"latest,omitempty" doc:"The version that the name alone means; absent when there is none to resolve."`
	Revision   int64     `json:"revision" doc:"Of what can be changed; a change names the one it replaces."`
	CreatedAt  time.Time `json:"createdAt"`
	CreatedBy  string    `json:"createdBy"`
}

// PackageVersion is one version of a package. What runs never changes; only its state does.
type PackageVersion struct {
	Package   string           `json:"package"`
	Tenant    string           `json:"tenant"`
	Version   string           `json:"version"`
	Kind      string           `json:"kind" enum:"archive,image"`
	Digest    string           `json:"digest" doc:"sha256:<hex> of the archive or image."`
	Size      int64            `json:"size"`
	State     string           `json:"state" enum:"active,deprecated,yanked" doc:"deprecated: resolves, with its note; yanked: is resolved no more, what was submitted before still runs."`
	Note      string           `json:"note,omitempty"`
	CreatedAt time.Time        `json:"createdAt"`
	CreatedBy string           `json:"createdBy"`
	Manifest  *PackageManifest `json:"manifest,omitempty" doc:"Not in listings."`
}

// PublishPackage is the body of POST /api/v1/packages. It answers 201 for a new version, 200 when the version is there
// with the same digest, and conflict when it is there with another one.
type PublishPackage struct {
	Tenant     string           `json:"tenant,omitempty" doc:"Tenant id, for operators; the caller's own when absent."`
	Repository string           `json:"repository" doc:"Where the object was uploaded to; the caller needs to read it."`
	Digest     string           `json:"digest" doc:"sha256:<hex> of the uploaded object."`
	Version    string           `json:"version,omitempty" doc:"Instead of the manifest's."`
	Manifest   *PackageManifest `json:"manifest,omitempty" doc:"Of an image. An archive has its own in roadstead.json."`
}

// PackageInbox is the repository that packages of a tenant are uploaded to unless the publisher names another one.
type PackageInbox struct {
	Repository string `json:"repository"`
}

// PackageInboxQuery is the body of POST /api/v1/packages/inbox.
type PackageInboxQuery struct {
	Tenant string `json:"tenant,omitempty" doc:"Tenant id, for operators; the caller's own when absent."`
}

// PackageChange is the body of PATCH on a package; what is absent stays.
type PackageChange struct {
	ExpectedRevision int64 `json:"expectedRevision" doc:"The revision this change was made from; another one is answered revision_mismatch."`
	Public           *bool `json:"public,omitempty"`
}

// PackageVersionState is the body of PUT on the state of a version.
type PackageVersionState struct {
	State string `json:"state" enum:"active,deprecated,yanked"`
	Note  string `json:"note,omitempty" maxLength:"500" doc:"Told to those who use it: why, and what to use instead."`
}
