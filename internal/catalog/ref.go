package catalog

import (
	"regexp"
	"strings"

	"github.com/roadstead/roadstead/internal/fault"
)

var (
	packageName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,99}$`)
	tenantWord  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
)

// Ref names a version of a package: [TENANT/]NAME[@VERSION]. A name alone is one of the own tenant and never means
// another's: who publishes the same name elsewhere gains nothing by it.
type Ref struct {
	Tenant  string // id or name; empty: the own
	Name    string
	Version string // empty: the latest
}

// ParseRef reads a reference.
func ParseRef(field, s string) (r Ref, err error) {
	rest := s
	if tenant, after, found := strings.Cut(rest, "/"); found {
		if !tenantWord.MatchString(tenant) {
			return Ref{}, fault.Invalid(field, "must be [TENANT/]NAME[@VERSION]")
		}
		r.Tenant, rest = tenant, after
	}
	name, version, found := strings.Cut(rest, "@")
	if err := CheckName(field, name); err != nil {
		return Ref{}, err
	}
	if found {
		if err := CheckVersion(field, version); err != nil {
			return Ref{}, err
		}
	}
	r.Name, r.Version = name, version
	return r, nil
}

// CheckName refuses a package name that is not of the allowed form.
func CheckName(field, s string) error {
	if !packageName.MatchString(s) {
		return fault.Invalid(field, "must be 1 to 100 of a-z 0-9 . _ -, beginning with a letter or digit")
	}
	return nil
}
