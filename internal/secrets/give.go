package secrets

import (
	"context"
	"fmt"
	"slices"

	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/fault"
)

// Need says which secrets an Attempt wants.
type Need struct {
	Tenant  string // id of the Run's tenant: nobody gets another's
	Package string // NAME in the own tenant, TENANT/NAME of a public one; empty for a command without a package
	Attempt string // id, for the audit
	Names   []string
}

// Given is one secret in an Attempt's hands.
type Given struct {
	Secret  string // id
	Version int64
}

// Check refuses, with the field secrets.NAME, what an Attempt would not get: a secret that the tenant doesn't have, or
// one that is for other packages. A submit asks it, so that a Run doesn't wait for what fails at its start. The two
// refusals are told apart: who may submit may list the secrets anyway.
func (s *Service) Check(ctx context.Context, tenant, packageName string, names []string) error {
	_, err := s.allowed(ctx, Need{Tenant: tenant, Package: packageName, Names: names})
	return err
}

func (s *Service) allowed(ctx context.Context, n Need) ([]Sealed, error) {
	if n.Tenant == "" {
		return nil, fault.Missing("tenant")
	}
	if len(n.Names) > MaxAtOnce {
		return nil, fault.Invalid("secrets", "must be at most %d", MaxAtOnce)
	}
	if len(n.Names) == 0 {
		return nil, nil
	}
	known, values, err := s.records.SealedSecrets(ctx, n.Tenant, n.Names)
	if err != nil {
		return nil, err
	}
	for _, name := range n.Names {
		i := slices.IndexFunc(known, func(k Secret) bool { return k.Name == name })
		if i < 0 {
			return nil, fault.Invalid("secrets."+name[:min(len(name), 100)], "is no secret of the tenant")
		}
		if of := known[i].Packages; len(of) > 0 && !slices.Contains(of, n.Package) {
			return nil, fault.Invalid("secrets."+name, "is for certain packages only, and this is none of them")
		}
	}
	return values, nil
}

// ForAttempt opens the secrets of an Attempt that starts, and writes to the audit that it got them before it does: a
// hand-over that can't be noted doesn't happen. The caller has made sure that the Attempt holds its lease.
func (s *Service) ForAttempt(ctx context.Context, n Need) (values map[string][]byte, given map[string]Given, err error) {
	sealed, err := s.allowed(ctx, n)
	if err != nil {
		return nil, nil, err
	}
	values, given = map[string][]byte{}, map[string]Given{}
	var lines []audit.Entry
	for _, v := range sealed {
		value, err := s.open(v)
		if err != nil {
			return nil, nil, err
		}
		values[v.Name], given[v.Name] = value, Given{Secret: v.Secret, Version: v.Version}
		lines = append(lines, s.entry("", n.Tenant, "secret.given", v.Name, fmt.Sprintf("version %d to attempt %s", v.Version, n.Attempt)))
	}
	if len(lines) > 0 {
		if err := s.records.NoteGiven(ctx, lines); err != nil {
			return nil, nil, err
		}
	}
	return values, given, nil
}

// MasksOf makes the masker of an Attempt from the newest values, for when nobody remembers which it was given.
func (s *Service) MasksOf(ctx context.Context, n Need) (*Masker, error) {
	sealed, err := s.allowed(ctx, n)
	if err != nil {
		return nil, err
	}
	var values [][]byte
	for _, v := range sealed {
		value, err := s.open(v)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return NewMasker(values...), nil
}

// Masks makes the masker of an Attempt that was given these, after a restart too. A value that is forgotten since, by
// deletion or by five rotations, is left out and missing says so: what the Attempt prints then can't be masked here.
func (s *Service) Masks(ctx context.Context, given map[string]Given) (m *Masker, missing bool, err error) {
	var values [][]byte
	for _, g := range given {
		v, err := s.records.SealedVersion(ctx, g.Secret, g.Version)
		if fault.Is(err, fault.NotFound) {
			missing = true
			continue
		}
		if err != nil {
			return nil, false, err
		}
		value, err := s.open(v)
		if err != nil {
			return nil, false, err
		}
		values = append(values, value)
	}
	return NewMasker(values...), missing, nil
}
