// Package identity says who asks: tenants, principals, their keys and their rights.
package identity

import (
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/fault"
)

// Kind is what sort of principal this is.
type Kind string

// The kinds of principal.
const (
	User    Kind = "user"    // a person; interactive at most
	Service Kind = "service" // a service account; release at most, its policy may say lower
	Link    Kind = "link"    // a share link: its own principal, not its issuer's; release at most
)

// Role is a right on one repository; each includes the ones before it.
type Role string

// The roles on a repository.
const (
	Read  Role = "read"
	Write Role = "write"
	Admin Role = "admin"
)

// Allows reports whether holding r is enough for need.
func (r Role) Allows(need Role) bool { return rank(r) >= rank(need) }

func rank(r Role) int {
	switch r {
	case Read:
		return 1
	case Write:
		return 2
	case Admin:
		return 3
	}
	return 0
}

// TenantRole is what an account may do in its tenant as a whole (D-11.4). Roles on single repositories are grants.
type TenantRole string

// The roles in a tenant.
const (
	Member      TenantRole = ""      // uses what the tenant has
	TenantAdmin TenantRole = "admin" // also says what the tenant keeps: its secrets, what it shows to other tenants
)

// String is the role's word on the wire.
func (r TenantRole) String() string {
	if r == Member {
		return "member"
	}
	return string(r)
}

// ParseTenantRole reads the word; an empty one is Member.
func ParseTenantRole(field, s string) (TenantRole, error) {
	switch s {
	case "", "member":
		return Member, nil
	case "admin":
		return TenantAdmin, nil
	}
	return Member, fault.Invalid(field, "must be member or admin")
}

// Principal is an authenticated caller.
type Principal struct {
	ID       string      // stable id; queue shares are counted by it (D-2.2)
	Kind     Kind        //
	Tenant   string      // tenant id
	Name     string      // for people and logs
	Ceiling  class.Class // the highest class this principal may use (D-4.1, D-4.3)
	Operator bool        // system operator: may do everything in every tenant
	Role     TenantRole  // in its tenant
}

// Belongs reports whether p may act in the tenant as one of its members. Operators may in every tenant; a link belongs
// nowhere: it holds its one file.
func (p Principal) Belongs(tenant string) bool {
	return p.ID != "" && p.Kind != Link && tenant != "" && (p.Operator || p.Tenant == tenant)
}

// Administers reports whether p may say what the tenant keeps (D-11.4).
func (p Principal) Administers(tenant string) bool {
	return p.Belongs(tenant) && (p.Operator || p.Role == TenantAdmin)
}
