package secrets

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

var (
	secretName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
	packageRef = regexp.MustCompile(`^(?:[a-z0-9][a-z0-9-]{0,62}/)?[a-z0-9][a-z0-9._-]{0,99}$`)
)

// CheckName refuses a secret's name that is not of the allowed form.
func CheckName(field, s string) error {
	if !secretName.MatchString(s) {
		return fault.Invalid(field, "must be 1 to 100 of A-Z a-z 0-9 . _ -, beginning with a letter or digit")
	}
	return nil
}

// checkValue refuses a value that can't be kept, or can't be kept out of logs. It never repeats any of it.
func checkValue(value []byte) error {
	if len(value) > MaxValue {
		return fault.Invalid("value", "must be at most %d bytes", MaxValue)
	}
	if len(strings.Join(strings.Fields(string(value)), "")) < MinValue {
		return fault.Invalid("value", "must have at least %d bytes that are no spaces: a shorter one can't be masked in logs", MinValue)
	}
	return nil
}

// scope sorts the packages and refuses what is no reference.
func scope(packages []string) ([]string, error) {
	if len(packages) > MaxPackages {
		return nil, fault.Invalid("packages", "must be at most %d", MaxPackages)
	}
	for i, p := range packages {
		if !packageRef.MatchString(p) {
			return nil, fault.Invalid(fmt.Sprintf("packages[%d]", i), "must be NAME or TENANT/NAME of a package, without a version")
		}
	}
	packages = slices.Clone(packages)
	slices.Sort(packages)
	return slices.Compact(packages), nil
}

// Create makes a secret. tenant empty means the caller's own. Admins of the tenant only, as with all that changes one.
func (s *Service) Create(ctx context.Context, p identity.Principal, tenant, name string, value []byte, packages []string) (Secret, error) {
	tenant, err := adminOf(p, tenant)
	if err != nil {
		return Secret{}, err
	}
	if err := CheckName("name", name); err != nil {
		return Secret{}, err
	}
	if err := checkValue(value); err != nil {
		return Secret{}, err
	}
	if packages, err = scope(packages); err != nil {
		return Secret{}, err
	}
	made := Secret{
		ID: s.newID(), Tenant: tenant, Name: name, Packages: packages, Version: 1,
		CreatedAt: s.now(), CreatedBy: p.ID, RotatedAt: s.now(), RotatedBy: p.ID,
	}
	sealed, err := s.seal(made, value)
	if err != nil {
		return Secret{}, err
	}
	return made, s.records.CreateSecret(ctx, made, sealed, s.entry(p.ID, tenant, "secret.created", name, inWords(packages)))
}

func inWords(packages []string) string {
	if len(packages) == 0 {
		return "for every run"
	}
	return "for " + strings.Join(packages, ", ")
}

// Rotate gives a secret another value. Attempts that start from now on get it; those that run keep theirs.
func (s *Service) Rotate(ctx context.Context, p identity.Principal, tenant, name string, value []byte) (Secret, error) {
	tenant, err := adminOf(p, tenant)
	if err != nil {
		return Secret{}, err
	}
	if err := checkValue(value); err != nil {
		return Secret{}, err
	}
	known, err := s.records.Secret(ctx, tenant, name)
	if err != nil {
		return Secret{}, err
	}
	known.Version++
	known.RotatedAt, known.RotatedBy = s.now(), p.ID
	sealed, err := s.seal(known, value)
	if err != nil {
		return Secret{}, err
	}
	e := s.entry(p.ID, tenant, "secret.rotated", name, fmt.Sprintf("version %d", known.Version))
	return known, s.records.RotateSecret(ctx, known, sealed, keepValues, e)
}

// Scope says anew which packages get the secret; none: every Run of the tenant.
func (s *Service) Scope(ctx context.Context, p identity.Principal, tenant, name string, packages []string) (Secret, error) {
	tenant, err := adminOf(p, tenant)
	if err != nil {
		return Secret{}, err
	}
	if packages, err = scope(packages); err != nil {
		return Secret{}, err
	}
	known, err := s.records.Secret(ctx, tenant, name)
	if err != nil {
		return Secret{}, err
	}
	known.Packages = packages
	return known, s.records.ScopeSecret(ctx, known, s.entry(p.ID, tenant, "secret.scoped", name, inWords(packages)))
}

// Delete forgets a secret and every value it had, at once and for good. Attempts that run keep what they were given.
func (s *Service) Delete(ctx context.Context, p identity.Principal, tenant, name string) error {
	tenant, err := adminOf(p, tenant)
	if err != nil {
		return err
	}
	known, err := s.records.Secret(ctx, tenant, name)
	if err != nil {
		return err
	}
	return s.records.DeleteSecret(ctx, known, s.entry(p.ID, tenant, "secret.deleted", name, ""))
}

// Secret finds one, without its value. Every member of the tenant may: who submits a Run names secrets.
func (s *Service) Secret(ctx context.Context, p identity.Principal, tenant, name string) (Secret, error) {
	tenant, err := tenantOf(p, tenant)
	if err != nil {
		return Secret{}, err
	}
	return s.records.Secret(ctx, tenant, name)
}

// List lists a tenant's secrets by name past after, without their values; next is empty on the last page.
func (s *Service) List(ctx context.Context, p identity.Principal, tenant, after string, limit int) (page []Secret, next string, err error) {
	if tenant, err = tenantOf(p, tenant); err != nil {
		return nil, "", err
	}
	limit = identity.PageSize(limit)
	page, err = s.records.ListSecrets(ctx, tenant, after, limit+1)
	if err != nil {
		return nil, "", err
	}
	if len(page) > limit {
		page = page[:limit]
		next = page[limit-1].Name
	}
	return page, next, nil
}
