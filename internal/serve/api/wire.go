package api

import (
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

func wireAccount(a identity.Account) api.Account {
	return api.Account{
		ID: a.ID, Kind: string(a.Kind), Tenant: a.Tenant, Name: a.Name, Class: a.Class.String(),
		Operator: a.Operator, Disabled: a.Disabled, Role: string(a.Role), Revision: a.Revision, CreatedAt: a.CreatedAt,
	}
}

func wireKey(k identity.Key) api.Key {
	return api.Key{
		ID: k.ID, Account: k.Account, Name: k.Name, CreatedAt: k.CreatedAt,
		ExpiresAt: orNil(k.ExpiresAt), RevokedAt: orNil(k.RevokedAt), LastUsed: orNil(k.LastUsed),
	}
}

func wireRepository(r artifacts.Repository) api.Repository {
	return api.Repository{Name: r.Name, Tenant: r.Tenant, Role: string(r.Role), CreatedAt: r.CreatedAt}
}

func wireFile(f artifacts.File) api.File {
	return api.File{
		Repository: f.Repository, Path: f.Path, Revision: f.Revision, Digest: f.Digest, Size: f.Size,
		MediaType: f.MediaType, CreatedAt: f.CreatedAt, CreatedBy: f.CreatedBy, Deleted: f.Deleted,
	}
}

func wireLink(l artifacts.ShareLink) api.ShareLink {
	return api.ShareLink{
		ID: l.ID, Repository: l.Repository, Path: l.Path, Revision: l.Revision, CreatedAt: l.CreatedAt,
		CreatedBy: l.CreatedBy, ExpiresAt: orNil(l.ExpiresAt), RevokedAt: orNil(l.RevokedAt),
	}
}

func missingAccount() error { return fault.Missing("account") }

func orSelf(account string, caller identity.Principal) string {
	if account == "" {
		return caller.ID
	}
	return account
}

// orNil is how the wire says "never".
func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// orZero is how an absent time goes further down. A zero time that was given is no absent one: it is long past, and
// refused where that is wrong, instead of meaning never.
func orZero(t *time.Time) time.Time {
	switch {
	case t == nil:
		return time.Time{}
	case t.IsZero():
		return time.Unix(0, 0)
	}
	return *t
}
