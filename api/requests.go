package api

import "time"

// NewTenant is the body of POST /api/v1/tenants.
type NewTenant struct {
	Name string `json:"name" doc:"1 to 63 of a-z 0-9 -, beginning with a letter or digit."`
}

// NewAccount is the body of POST /api/v1/users and /api/v1/service-accounts.
type NewAccount struct {
	Tenant   string `json:"tenant,omitempty" doc:"Tenant id; the caller's own when absent."`
	Name     string `json:"name" doc:"1 to 63 of a-z 0-9 . _ -, beginning with a letter or digit."`
	Class    string `json:"class,omitempty" doc:"The highest class its downloads may use; the highest of its kind when absent."`
	Operator bool   `json:"operator,omitempty" doc:"Users only: may do everything in every tenant."`
}

// AccountChange is the body of PATCH on an account; what is absent stays.
type AccountChange struct {
	ExpectedRevision int64   `json:"expectedRevision" doc:"The revision this change was made from; another one is answered revision_mismatch."`
	Class            *string `json:"class,omitempty"`
	Disabled         *bool   `json:"disabled,omitempty"`
	Role             *string `json:"tenantRole,omitempty" enum:"member,admin" doc:"An admin says what its tenant keeps, such as its secrets."`
}

// NewKey is the body of POST /api/v1/keys.
type NewKey struct {
	Account   string     `json:"account,omitempty" doc:"Account id; the caller's own when absent."`
	Name      string     `json:"name" doc:"For people: what the key is for."`
	ExpiresAt *time.Time `json:"expiresAt,omitempty" doc:"Never when absent."`
}

// NewRepository is the body of POST /api/v1/repositories.
type NewRepository struct {
	Name string `json:"name" doc:"1 to 128 of a-z 0-9 . _ -, beginning with a letter or digit; unique on the server."`
}

// GrantRole is the body of PUT /api/v1/repositories/{repository}/grants/{account}.
type GrantRole struct {
	Role string `json:"role" enum:"read,write,admin"`
}

// NewLink is the body of POST /api/v1/repositories/{repository}/links.
type NewLink struct {
	Path      string     `json:"path"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty" doc:"Never when absent."`
}
