package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// Publish makes an uploaded object a version of a package. The manifest is the one inside the archive, so that what was
// reviewed is what runs; an image has none inside and brings it along. Any member of the tenant may publish. The same
// version with the same digest again changes nothing and created is false; with another digest the fault is conflict: a
// version never changes.
func (s *Service) Publish(ctx context.Context, p identity.Principal, in api.PublishPackage) (v Version, created bool, err error) {
	tenant, err := tenantOf(p, in.Tenant)
	if err != nil {
		return Version{}, false, err
	}
	f, err := s.objects.StatDigest(ctx, p, in.Repository, in.Digest)
	if err != nil {
		return Version{}, false, err
	}
	m, err := s.inspect(ctx, f, in.Manifest)
	if err != nil {
		return Version{}, false, err
	}
	if in.Version != "" {
		m.Version = in.Version
	}
	if m.Version == "" {
		return Version{}, false, fault.Invalid("version", "must be in the manifest or in the publish")
	}
	if err := CheckVersion("version", m.Version); err != nil {
		return Version{}, false, err
	}
	text, err := json.Marshal(m)
	if err != nil {
		return Version{}, false, fmt.Errorf("writing the manifest: %w", err)
	}
	pkg := Package{ID: s.cfg.NewID(), Tenant: tenant, Kind: Kind(m.Kind), Name: m.Name, Revision: 1, CreatedAt: s.now(), CreatedBy: p.ID}
	v = Version{
		Package: pkg.ID, Name: m.Name, Tenant: tenant, Kind: pkg.Kind, Version: m.Version, Digest: f.Digest, Size: f.Size,
		Text: string(text), State: Active, CreatedAt: pkg.CreatedAt, CreatedBy: p.ID,
	}
	v.Precedence, v.Prerelease = precedence(v.Version)
	return s.records.PublishVersion(ctx, pkg, v, s.entry(p, tenant, "package.published", v.Ref(), v.Digest))
}

// inspect checks the object and finds its manifest. Few are checked at once: reading a large archive takes the disk and
// a CPU for a while.
func (s *Service) inspect(ctx context.Context, f artifacts.File, beside *Manifest) (m Manifest, err error) {
	most, check := s.cfg.MaxArchive, s.cfg.CheckArchive
	if beside != nil {
		if beside.Kind != string(Image) {
			return m, fault.Invalid("manifest", "is for images only; an archive has its own in %s", api.ManifestFile)
		}
		m = *beside
		m.Image = "" // where it lay for the publisher means nothing here
		if err := CheckManifest(&m); err != nil {
			return m, under("manifest.", err)
		}
		most, check = s.cfg.MaxImage, s.cfg.CheckImage
	}
	if f.Size > most {
		return m, fault.New(fault.TooLarge, "the object has %d bytes; a package of this kind may have %d", f.Size, most)
	}
	select {
	case s.checks <- struct{}{}:
		defer func() { <-s.checks }()
	case <-ctx.Done():
		return m, fmt.Errorf("waiting to check the object: %w", ctx.Err())
	}
	file, err := s.objects.Open(ctx, f)
	if err != nil {
		return m, err
	}
	defer func() { _ = file.Close() }() // only read
	if err := check(interruptible{ctx.Err, file}); err != nil {
		return m, err
	}
	if beside != nil {
		return m, nil
	}
	return s.inside(file)
}

// inside reads the manifest of a checked archive.
func (s *Service) inside(file *os.File) (m Manifest, err error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return m, fmt.Errorf("reading the archive again: %w", err)
	}
	text, err := readManifest(file)
	if err != nil {
		return m, err
	}
	if m, err = ParseManifest(text); err != nil {
		return m, err
	}
	if m.Kind != string(Archive) {
		return m, fault.Invalid("kind", "is image, but the object is an archive with a manifest; publish the image's own tar")
	}
	return m, nil
}

var errGone = errors.New("the publisher went away")

// interruptible ends a long read when nobody waits for it any more.
type interruptible struct {
	gone func() error
	r    io.Reader
}

func (i interruptible) Read(b []byte) (int, error) {
	if err := i.gone(); err != nil {
		return 0, errors.Join(errGone, err)
	}
	return i.r.Read(b)
}

// Inbox is the repository that a tenant's packages are uploaded to unless the publisher names another one. It is made at
// the first call, and every member that asks may write to it.
func (s *Service) Inbox(ctx context.Context, p identity.Principal, tenant string) (string, error) {
	tenant, err := tenantOf(p, tenant)
	if err != nil {
		return "", err
	}
	role, account := identity.Write, p.ID
	if p.Role == identity.TenantAdmin {
		role = identity.Admin
	}
	if p.Tenant != tenant {
		account = "" // an operator from elsewhere, who needs no role
	}
	r := artifacts.Repository{ID: s.cfg.NewID(), Name: "packages-", Tenant: tenant, Role: role, CreatedAt: s.now()}
	return s.records.PackageInbox(ctx, r, account, s.entry(p, tenant, "package_inbox.opened", "", account+" "+string(role)))
}

// under names a wrong field by where its object stood in the request.
func under(prefix string, err error) error {
	refused, ok := errors.AsType[*fault.Error](err)
	if !ok || len(refused.Details) != 1 {
		return err
	}
	return fault.Invalid(prefix+refused.Details[0].Field, "%s", refused.Details[0].Problem)
}
