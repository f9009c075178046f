// Package catalog keeps packages: named things to run, each in immutable versions, private to their tenant unless it
// shows them to others.
package catalog

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// Kind is what the bytes of a package are.
type Kind string

// The kinds of package.
const (
	Archive Kind = "archive" // a tar, gzipped or not, that becomes the working folder
	Image   Kind = "image"   // an OCI image layout as tar, that becomes the root
)

// State is whether a version is still to be used. It never touches the bytes.
type State string

// The states of a version.
const (
	Active     State = "active"
	Deprecated State = "deprecated" // resolves, with its note; the name alone means it only when no other is left
	Yanked     State = "yanked"     // is resolved no more; what was resolved before still starts
)

// Package is a name in a tenant that versions are published under.
type Package struct {
	ID         string
	Tenant     string // id
	TenantName string
	Kind       Kind
	Name       string
	Public     bool   // every tenant may run it
	Latest     string // the version that the name alone means; empty when there is none
	Revision   int64  // counts the changes of Public
	CreatedAt  time.Time
	CreatedBy  string // account id
}

// Version is one version of a package. Only State and Note ever change.
type Version struct {
	Package    string // id
	Name       string // of the package
	Tenant     string // id
	TenantName string // empty in listings
	Kind       Kind
	Version    string
	Precedence string // sorts as versions do, in byte order
	Prerelease bool
	Digest     string // sha256:<hex>
	Size       int64  // bytes
	Text       string // the manifest as JSON; empty in listings
	State      State
	Note       string
	CreatedAt  time.Time
	CreatedBy  string // account id
}

// Ref names the version as a Run keeps it.
func (v Version) Ref() string { return v.Name + "@" + v.Version }

// NameIn is the package's name as a tenant refers to it: that of another tenant's follows that tenant's name.
func (v Version) NameIn(tenant string) string {
	if v.Tenant == tenant {
		return v.Name
	}
	return v.TenantName + "/" + v.Name
}

// Objects finds and opens what was uploaded, as artifacts does.
type Objects interface {
	// StatDigest is fault not_found when the caller can't see the repository, or the object isn't in it.
	StatDigest(ctx context.Context, p identity.Principal, repository, digest string) (artifacts.File, error)
	// Open gives a descriptor of its own to each caller, who closes it.
	Open(ctx context.Context, f artifacts.File) (*os.File, error)
}

// Config bounds the catalog.
type Config struct {
	NewID        func() string           // makes unique ids
	CheckArchive func(r io.Reader) error // refuses an archive with links, "..", absolute or device entries, or too much of it
	CheckImage   func(r io.Reader) error // the same of an image layout
	MaxArchive   int64                   // bytes of a package's archive; default 1 GiB
	MaxImage     int64                   // bytes of an image; default 16 GiB
	Checks       int                     // publishes that are checked at once; default 2
}

// Validate fills defaults and refuses what makes no sense, naming the field.
func (c *Config) Validate() error {
	if c.MaxArchive == 0 {
		c.MaxArchive = 1 << 30
	}
	if c.MaxImage == 0 {
		c.MaxImage = 16 << 30
	}
	if c.Checks == 0 {
		c.Checks = 2
	}
	switch {
	case c.NewID == nil:
		return fault.Invalid("NewID", "must be set")
	case c.CheckArchive == nil:
		return fault.Invalid("CheckArchive", "must be set")
	case c.CheckImage == nil:
		return fault.Invalid("CheckImage", "must be set")
	case c.MaxArchive < 0:
		return fault.Invalid("MaxArchive", "must be above 0")
	case c.MaxImage < 0:
		return fault.Invalid("MaxImage", "must be above 0")
	case c.Checks < 0:
		return fault.Invalid("Checks", "must be above 0")
	}
	return nil
}

// Service is the one door to packages. What the caller may not see is fault not_found.
type Service struct {
	cfg     Config
	records Records
	objects Objects
	clock   clock.Clock
	checks  chan struct{} // one place for each check of an object that is under way
}

// New makes the catalog over its stores.
func New(cfg Config, records Records, objects Objects, clk clock.Clock) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Service{cfg: cfg, records: records, objects: objects, clock: clk, checks: make(chan struct{}, cfg.Checks)}, nil
}

// now is the wall time to store, in the store's resolution.
func (s *Service) now() time.Time { return s.clock.Wall().UTC().Truncate(time.Millisecond) }

func (s *Service) entry(p identity.Principal, tenant, action, target, detail string) audit.Entry {
	return audit.Entry{ID: s.cfg.NewID(), At: s.now(), Tenant: tenant, Actor: p.ID, Action: action, Target: target, Detail: detail}
}

// tenantOf is the tenant a caller asks about: its own unless an operator names another one.
func tenantOf(p identity.Principal, asked string) (string, error) {
	if asked == "" {
		asked = p.Tenant
	}
	if !p.Belongs(asked) {
		return "", fault.Missing("tenant")
	}
	return asked, nil
}
