package identity

import (
	"context"
	"time"

	"github.com/roadstead/roadstead/internal/audit"
)

// Store is what the directory must not forget. Each method is one transaction and safe to call from many goroutines and
// processes at once. A thing that is not there is fault not_found, a name that is taken is already_exists.
type Store interface {
	AccountStore
	KeyStore
	GrantStore
}

// AccountStore keeps tenants and accounts.
type AccountStore interface {
	// Bootstrap stores the first tenant, account and key unless there is a tenant already. It calls deliver after the
	// rows are written and before they are committed, and gives everything up if deliver fails.
	Bootstrap(ctx context.Context, first First, deliver func() error) (created bool, err error)
	CreateTenant(ctx context.Context, t Tenant, e audit.Entry) error
	// ListTenants lists by name past after; only, when not empty, is the id of the one to list.
	ListTenants(ctx context.Context, only, after string, limit int) ([]Tenant, error)
	CreateAccount(ctx context.Context, a Account, e audit.Entry) error
	Account(ctx context.Context, id string) (Account, error)
	ListAccounts(ctx context.Context, tenant, after string, limit int) ([]Account, error)
	// ChangeAccount replaces class, disabled, role and revision if the stored revision still is expected, and writes e in
	// the same transaction; otherwise fault revision_mismatch.
	ChangeAccount(ctx context.Context, a Account, expected int64, e audit.Entry) error
}

// KeyStore keeps API keys; of a secret it holds only the hash.
type KeyStore interface {
	CreateKey(ctx context.Context, k Key, e audit.Entry) error
	// Key finds a key and its account.
	Key(ctx context.Context, id string) (Key, Account, error)
	ListKeys(ctx context.Context, account string) ([]Key, error)
	// RevokeKey marks the key revoked at the instant, unless it is already: then nothing changes and e isn't written.
	RevokeKey(ctx context.Context, id string, at time.Time, e audit.Entry) error
	// TouchKeys raises the last use of the keys; unknown ones are passed over.
	TouchKeys(ctx context.Context, used map[string]time.Time) error
}

// GrantStore keeps roles on repositories.
type GrantStore interface {
	// Role finds the account's role on the repository: not_found without such a repository, an empty role without
	// a grant. tenant is the repository's.
	Role(ctx context.Context, account, repository string) (role Role, tenant string, err error)
	// SetGrant gives the account, which must be of the repository's tenant, exactly this role.
	SetGrant(ctx context.Context, g Grant, e audit.Entry) error
	RemoveGrant(ctx context.Context, repository, account string, e audit.Entry) error
	ListGrants(ctx context.Context, repository, after string, limit int) ([]Grant, error)
}

// First is what an empty store begins with.
type First struct {
	Tenant  Tenant
	Account Account
	Key     Key
	Entry   audit.Entry
}
