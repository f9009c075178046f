package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/identity"
)

// Accounts keeps tenants, people and service accounts. What the caller may not see is not_found; what it may see but
// not do is forbidden. Limits are bounded by the service.
type Accounts interface {
	CreateTenant(ctx context.Context, actor identity.Principal, name string) (identity.Tenant, error)
	ListTenants(ctx context.Context, actor identity.Principal, after string, limit int) ([]identity.Tenant, string, error)
	CreateAccount(ctx context.Context, actor identity.Principal, n identity.NewAccount) (identity.Account, error)
	Account(ctx context.Context, actor identity.Principal, id string) (identity.Account, error)
	ListAccounts(ctx context.Context, actor identity.Principal, tenant, after string, limit int) ([]identity.Account, string, error)
	ChangeAccount(ctx context.Context, actor identity.Principal, id string, expected int64, change identity.AccountChange) (identity.Account, error)
}

// Keys keeps API keys. The text of a key exists only in the answer of CreateKey.
type Keys interface {
	CreateKey(ctx context.Context, actor identity.Principal, account, name string, expires time.Time) (identity.Key, string, error)
	ListKeys(ctx context.Context, actor identity.Principal, account string) ([]identity.Key, error)
	RevokeKey(ctx context.Context, actor identity.Principal, id string) error
}

func (o *operations) identity(a huma.API) {
	do(a, route{"GET", "/whoami", "whoami", "Who the API key belongs to"},
		func(_ context.Context, caller identity.Principal, _ *none) (api.Whoami, error) {
			return api.Whoami{
				ID: caller.ID, Kind: string(caller.Kind), Name: caller.Name, Tenant: caller.Tenant,
				Class: caller.Ceiling.String(), Operator: caller.Operator, Role: string(caller.Role), Version: o.version,
			}, nil
		})
	o.tenants(a)
	o.accounts(a, identity.User, "/users", "User", "a user")
	o.accounts(a, identity.Service, "/service-accounts", "ServiceAccount", "a service account")
	o.keys(a)
}

func (o *operations) tenants(a huma.API) {
	wire := func(t identity.Tenant) api.Tenant { return api.Tenant(t) }
	do(a, route{"GET", "/tenants", "listTenants", "List tenants"},
		func(ctx context.Context, caller identity.Principal, in *PageQuery) (api.Page[api.Tenant], error) {
			items, next, err := o.Accounts.ListTenants(ctx, caller, in.After, in.Limit)
			return paged(items, next, err, wire)
		})
	do(a, route{"POST", "/tenants", "createTenant", "Make a tenant"},
		func(ctx context.Context, caller identity.Principal, in *input[api.NewTenant]) (api.Tenant, error) {
			t, err := o.Accounts.CreateTenant(ctx, caller, in.Body.Name)
			return wire(t), err
		})
}

type accountPage struct {
	PageQuery
	Tenant string `query:"tenant" doc:"Tenant id, for operators; the caller's own when absent."`
}

type accountPatch struct {
	ID   string `path:"id"`
	Body api.AccountChange
}

// accounts registers one kind of account: the two differ in what their policy may say, not in how they are handled.
func (o *operations) accounts(a huma.API, kind identity.Kind, path, noun, words string) {
	do(a, route{"GET", path, "list" + noun + "s", "List accounts of this kind; a page may be short while next is set"},
		func(ctx context.Context, caller identity.Principal, in *accountPage) (api.Page[api.Account], error) {
			items, next, err := o.Accounts.ListAccounts(ctx, caller, in.Tenant, in.After, in.Limit)
			var own []identity.Account
			for _, item := range items {
				if item.Kind == kind {
					own = append(own, item)
				}
			}
			return paged(own, next, err, wireAccount)
		})
	do(a, route{"POST", path, "create" + noun, "Make " + words},
		func(ctx context.Context, caller identity.Principal, in *input[api.NewAccount]) (api.Account, error) {
			n := identity.NewAccount{Tenant: in.Body.Tenant, Kind: kind, Name: in.Body.Name, Operator: in.Body.Operator}
			if in.Body.Class != "" {
				c, err := class.Parse("class", in.Body.Class)
				if err != nil {
					return api.Account{}, err
				}
				n.Class = &c
			}
			made, err := o.Accounts.CreateAccount(ctx, caller, n)
			return wireAccount(made), err
		})
	do(a, route{"PATCH", path + "/{id}", "change" + noun, "Change the policy of " + words},
		func(ctx context.Context, caller identity.Principal, in *accountPatch) (api.Account, error) {
			return o.changeAccount(ctx, caller, kind, in)
		})
}

func (o *operations) changeAccount(ctx context.Context, caller identity.Principal, kind identity.Kind, in *accountPatch) (api.Account, error) {
	known, err := o.Accounts.Account(ctx, caller, in.ID)
	if err != nil {
		return api.Account{}, err
	}
	if known.Kind != kind {
		return api.Account{}, missingAccount()
	}
	change := identity.AccountChange{Disabled: in.Body.Disabled}
	if in.Body.Class != nil {
		c, err := class.Parse("class", *in.Body.Class)
		if err != nil {
			return api.Account{}, err
		}
		change.Class = &c
	}
	if in.Body.Role != nil {
		role, err := identity.ParseTenantRole("tenantRole", *in.Body.Role)
		if err != nil {
			return api.Account{}, err
		}
		change.Role = &role
	}
	changed, err := o.Accounts.ChangeAccount(ctx, caller, in.ID, in.Body.ExpectedRevision, change)
	return wireAccount(changed), err
}

func (o *operations) keys(a huma.API) {
	do(a, route{"GET", "/keys", "listKeys", "List the API keys of an account"},
		func(ctx context.Context, caller identity.Principal, in *struct {
			Account string `query:"account" doc:"Account id; the caller's own when absent."`
		}) (api.Page[api.Key], error) {
			items, err := o.Keys.ListKeys(ctx, caller, orSelf(in.Account, caller))
			return paged(items, "", err, wireKey)
		})
	do(a, route{"POST", "/keys", "createKey", "Make an API key; its secret is shown in this answer only"},
		func(ctx context.Context, caller identity.Principal, in *input[api.NewKey]) (api.Key, error) {
			k, secret, err := o.Keys.CreateKey(ctx, caller, orSelf(in.Body.Account, caller), in.Body.Name, orZero(in.Body.ExpiresAt))
			out := wireKey(k)
			out.Secret = secret
			return out, err
		})
	act(a, route{"DELETE", "/keys/{id}", "revokeKey", "Revoke an API key at once and for good"},
		func(ctx context.Context, caller identity.Principal, in *struct {
			ID string `path:"id"`
		}) error {
			return o.Keys.RevokeKey(ctx, caller, in.ID)
		})
}
