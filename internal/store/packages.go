package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/catalog"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

var _ catalog.Records = (*Store)(nil)

const (
	versionColumns = `v.package, p.name, p.tenant, p.kind, v.version, v.precedence, v.prerelease, v.digest, v.size, v.state, v.note, v.created_at, v.created_by`
	packageColumns = `p.id, p.tenant, t.name, p.kind, p.name, p.public, p.revision, p.created_at, p.created_by, COALESCE((
			SELECT v.version FROM package_versions v WHERE v.package = p.id AND v.state <> 'yanked'
			ORDER BY v.prerelease, v.state, v.precedence DESC LIMIT 1), '')`
)

func scanPackage(r row) (p catalog.Package, err error) {
	var created int64
	err = r.Scan(&p.ID, &p.Tenant, &p.TenantName, &p.Kind, &p.Name, &p.Public, &p.Revision, &created, &p.CreatedBy, &p.Latest)
	p.CreatedAt = instant(created)
	return p, err
}

func scanVersion(r row) (catalog.Version, error) { return scanVersionAnd(r) }

// scanVersionAnd scans a version and what is selected after its columns.
func scanVersionAnd(r row, more ...any) (v catalog.Version, err error) {
	var created int64
	err = r.Scan(append([]any{
		&v.Package, &v.Name, &v.Tenant, &v.Kind, &v.Version, &v.Precedence, &v.Prerelease, &v.Digest, &v.Size, &v.State, &v.Note, &created, &v.CreatedBy,
	}, more...)...)
	v.CreatedAt = instant(created)
	return v, err
}

// PublishVersion is catalog.VersionRecords's. Two publishers meet at the unique names: an insert waits for the one under
// way and then does nothing, and the row that is there says who was first.
func (s *Store) PublishVersion(ctx context.Context, p catalog.Package, v catalog.Version, e audit.Entry) (stored catalog.Version, created bool, err error) {
	err = s.update(ctx, "publishing "+v.Ref(), func(tx *sql.Tx) error {
		created = false
		if _, err := exec(ctx, tx, `
			INSERT INTO packages (id, tenant, kind, name, public, revision, created_at, created_by)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (tenant, name) DO NOTHING`,
			p.ID, p.Tenant, string(p.Kind), p.Name, p.Public, p.Revision, millis(p.CreatedAt), p.CreatedBy); err != nil {
			return err
		}
		var kind string
		if err := tx.QueryRowContext(ctx, `SELECT id, kind FROM packages WHERE tenant = $1 AND name = $2`, p.Tenant, p.Name).Scan(&v.Package, &kind); err != nil {
			return err
		}
		if kind != string(p.Kind) {
			return fault.New(fault.Conflict, "package %s is of the kind %s and stays so; publish this under another name", p.Name, kind)
		}
		n, err := exec(ctx, tx, `
			INSERT INTO package_versions (package, version, precedence, prerelease, digest, size, manifest, state, note, created_at, created_by)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (package, version) DO NOTHING`,
			v.Package, v.Version, v.Precedence, v.Prerelease, v.Digest, v.Size, v.Text, string(v.State), v.Note, millis(v.CreatedAt), v.CreatedBy)
		if err != nil {
			return err
		}
		if stored, err = version(ctx, tx, v.Package, v.Version); err != nil {
			return err
		}
		if n == 0 {
			// The manifest of an archive is a part of it. That of an image is not, so it counts too.
			if stored.Digest != v.Digest || p.Kind == catalog.Image && stored.Text != v.Text {
				return fault.New(fault.Conflict, "version %s of package %s is there with other content (%s); a version never changes, publish a new one", v.Version, p.Name, stored.Digest)
			}
			return nil
		}
		created = true
		if _, err := exec(ctx, tx, `
			INSERT INTO object_references (digest, holder, created_at) VALUES ($1, $2, $3) ON CONFLICT (digest, holder) DO NOTHING`,
			v.Digest, "package "+v.Package+"@"+v.Version, millis(v.CreatedAt)); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
	return stored, created && err == nil, err
}

func version(ctx context.Context, q querier, pkg, name string) (catalog.Version, error) {
	var text string
	v, err := scanVersionAnd(q.QueryRowContext(ctx, `
		SELECT `+versionColumns+`, v.manifest FROM package_versions v JOIN packages p ON p.id = v.package
		WHERE v.package = $1 AND v.version = $2`, pkg, name), &text)
	v.Text = text
	return v, missing(err, "package version")
}

// PackageVersion is catalog.VersionRecords's.
func (s *Store) PackageVersion(ctx context.Context, pkg, name string) (catalog.Version, error) {
	v, err := version(ctx, s.read, pkg, name)
	return v, s.fail("reading a package version", err)
}

// ListVersions is catalog.VersionRecords's.
func (s *Store) ListVersions(ctx context.Context, pkg, before string, limit int) ([]catalog.Version, error) {
	if before == "" {
		before = "~" // above every precedence, which begins with a letter
	}
	page, err := list(ctx, s.read, scanVersion, `
		SELECT `+versionColumns+` FROM package_versions v JOIN packages p ON p.id = v.package
		WHERE v.package = $1 AND v.precedence < $2 ORDER BY v.precedence DESC LIMIT $3`, pkg, before, limit)
	return page, s.fail("listing package versions", err)
}

// SetVersionState is catalog.VersionRecords's.
func (s *Store) SetVersionState(ctx context.Context, v catalog.Version, from catalog.State, e audit.Entry) error {
	return s.update(ctx, "changing the state of "+v.Ref(), func(tx *sql.Tx) error {
		n, err := exec(ctx, tx, `
			UPDATE package_versions SET state = $1, note = $2 WHERE package = $3 AND version = $4 AND state = $5`,
			string(v.State), v.Note, v.Package, v.Version, string(from))
		if err != nil {
			return err
		}
		if n == 0 {
			now, err := version(ctx, tx, v.Package, v.Version)
			if err != nil {
				return err
			}
			return fault.New(fault.RevisionMismatch, "the version was changed meanwhile and is now %s; look again, then repeat", now.State)
		}
		return insertAudit(ctx, tx, e)
	})
}

// VersionByDigest is catalog.VersionRecords's.
func (s *Store) VersionByDigest(ctx context.Context, tenant, digest string) (catalog.Version, error) {
	v, err := scanVersion(s.read.QueryRowContext(ctx, `
		SELECT `+versionColumns+` FROM package_versions v JOIN packages p ON p.id = v.package
		WHERE v.digest = $1 AND (p.tenant = $2 OR p.public)
		ORDER BY CASE WHEN p.tenant = $2 THEN 0 ELSE 1 END, v.created_at DESC, v.package, v.version LIMIT 1`, digest, tenant))
	return v, s.fail("reading a package by its digest", missing(err, "package"))
}

// PackageByName is catalog.PackageRecords's. Where one tenant's id is another's name, the id counts.
func (s *Store) PackageByName(ctx context.Context, tenant, name string) (catalog.Package, error) {
	p, err := scanPackage(s.read.QueryRowContext(ctx, `
		SELECT `+packageColumns+` FROM packages p JOIN tenants t ON t.id = p.tenant
		WHERE (t.id = $1 OR t.name = $1) AND p.name = $2
		ORDER BY CASE WHEN t.id = $1 THEN 0 ELSE 1 END LIMIT 1`, tenant, name))
	return p, s.fail("reading a package", missing(err, "package"))
}

// ListPackages is catalog.PackageRecords's.
func (s *Store) ListPackages(ctx context.Context, f catalog.Filter, afterName, afterID string, limit int) ([]catalog.Package, error) {
	whose := `p.public AND $1 = ''`
	if f.Tenant != "" {
		whose = `p.tenant = $1`
	}
	page, err := list(ctx, s.read, scanPackage, `
		SELECT `+packageColumns+` FROM packages p JOIN tenants t ON t.id = p.tenant
		WHERE `+whose+` AND ($2 = '' OR p.kind = $2) AND (p.name > $3 OR p.name = $3 AND p.id > $4)
		ORDER BY p.name, p.id LIMIT $5`, f.Tenant, string(f.Kind), afterName, afterID, limit)
	return page, s.fail("listing packages", err)
}

// ChangePackage is catalog.PackageRecords's.
func (s *Store) ChangePackage(ctx context.Context, p catalog.Package, expected int64, e audit.Entry) error {
	return s.update(ctx, "changing package "+p.Name, func(tx *sql.Tx) error {
		n, err := exec(ctx, tx, `UPDATE packages SET public = $1, revision = $2 WHERE id = $3 AND revision = $4`, p.Public, p.Revision, p.ID, expected)
		if err != nil {
			return err
		}
		if n == 0 {
			var now int64
			if err := tx.QueryRowContext(ctx, `SELECT revision FROM packages WHERE id = $1`, p.ID).Scan(&now); err != nil {
				return missing(err, "package")
			}
			return identity.RevisionMismatch("package", now)
		}
		return insertAudit(ctx, tx, e)
	})
}

// PackageInbox is catalog.PackageRecords's.
func (s *Store) PackageInbox(ctx context.Context, r artifacts.Repository, account string, e audit.Entry) (name string, err error) {
	err = s.update(ctx, "opening the inbox of packages", func(tx *sql.Tx) error {
		var tenant string
		err := tx.QueryRowContext(ctx, `SELECT name FROM tenants WHERE id = $1`, r.Tenant).Scan(&tenant)
		if errors.Is(err, sql.ErrNoRows) {
			return fault.Missing("tenant")
		}
		if err != nil {
			return err
		}
		name = r.Name + tenant
		made, err := exec(ctx, tx, `
			INSERT INTO repositories (id, name, tenant, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO NOTHING`,
			r.ID, name, r.Tenant, millis(r.CreatedAt))
		if err != nil {
			return err
		}
		var id, owner string
		if err := tx.QueryRowContext(ctx, `SELECT id, tenant FROM repositories WHERE name = $1`, name).Scan(&id, &owner); err != nil {
			return err
		}
		if owner != r.Tenant {
			return fault.New(fault.AlreadyExists, "the name %s is taken; upload to another repository and name that", name)
		}
		if account != "" {
			given, err := exec(ctx, tx, `
				INSERT INTO grants (repository, account, role) VALUES ($1, $2, $3) ON CONFLICT (repository, account) DO NOTHING`,
				id, account, string(r.Role))
			if err != nil {
				return err
			}
			made += given
		}
		if made == 0 {
			return nil
		}
		e.Target = name
		return insertAudit(ctx, tx, e)
	})
	return name, err
}
