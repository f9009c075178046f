// Package identity says who asks: tenants, principals, their keys and their rights.
package identity

import "github.com/roadstead/roadstead/internal/class"

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

// Principal is an authenticated caller.
type Principal struct {
	ID       string      // stable id; queue shares are counted by it (D-2.2)
	Kind     Kind        //
	Tenant   string      // tenant id
	Name     string      // for people and logs
	Ceiling  class.Class // the highest class this principal may use (D-4.1, D-4.3)
	Operator bool        // system operator: may do everything in every tenant
}
