package catalog

import (
	"context"

	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// SetState deprecates a version, yanks it, or makes it active again, with a note for those who use it. Who published the
// version and the admins of the tenant may. The reference must have a version.
func (s *Service) SetState(ctx context.Context, p identity.Principal, ref string, state State, note string) (Version, error) {
	r, err := ParseRef("package", ref)
	if err != nil {
		return Version{}, err
	}
	if r.Version == "" {
		return Version{}, fault.Invalid("package", "must name the version: NAME@VERSION")
	}
	switch state {
	case Active, Deprecated, Yanked:
	default:
		return Version{}, fault.Invalid("state", "must be active, deprecated or yanked")
	}
	if err := checkText("note", note, 500); err != nil {
		return Version{}, err
	}
	pkg, err := s.visible(ctx, p, r)
	if err != nil {
		return Version{}, err
	}
	v, err := s.records.PackageVersion(ctx, pkg.ID, r.Version)
	if err != nil {
		return Version{}, err
	}
	if !p.Administers(pkg.Tenant) && (v.CreatedBy != p.ID || !p.Belongs(pkg.Tenant)) {
		return Version{}, fault.New(fault.Forbidden, "only who published the version, an admin of its tenant or an operator may do this")
	}
	if v.State == state && v.Note == note {
		return v, nil
	}
	from := v.State
	v.State, v.Note = state, note
	detail := string(from) + " -> " + string(state)
	if note != "" {
		detail += ": " + note
	}
	return v, s.records.SetVersionState(ctx, v, from, s.entry(p, pkg.Tenant, "package."+string(state), v.Ref(), detail))
}

// SetPublic shows a package to every tenant, or hides it again, if its revision still is the expected one. Queued Runs of
// other tenants do not start once it is hidden. Admins of the tenant only.
func (s *Service) SetPublic(ctx context.Context, p identity.Principal, ref string, expected int64, public bool) (Package, error) {
	pkg, err := s.Package(ctx, p, ref)
	if err != nil {
		return Package{}, err
	}
	if !p.Administers(pkg.Tenant) {
		return Package{}, fault.New(fault.Forbidden, "only an admin of the tenant or an operator may show a package to other tenants")
	}
	if pkg.Revision != expected {
		return Package{}, identity.RevisionMismatch("package", pkg.Revision)
	}
	if pkg.Public == public {
		return pkg, nil
	}
	pkg.Public = public
	pkg.Revision++
	action := "package.hidden"
	if public {
		action = "package.shown"
	}
	return pkg, s.records.ChangePackage(ctx, pkg, expected, s.entry(p, pkg.Tenant, action, pkg.Name, ""))
}
